// The owner's admin works as plain links and forms. This adds copying, themes, and local times.

import { all, copyText, keepCookie, one } from "./dom.js";
import { learnServerTime, localize } from "./times.js";
import "./zone.js";

localize(document.body); // before the zone is known to the server, it tells UTC
learnServerTime();
// On a phone the links are a row that scrolls: the current one shall be seen.
one(".owner-links [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

document.addEventListener("click", (event) => {
  const hit = (selector) => event.target.closest(selector);
  const inMenu = hit("details.menu");
  all("details.menu[open]").forEach((menu) => { if (menu !== inMenu) menu.open = false; });
  const copy = hit("[data-copy]");
  if (copy) copyText(one("[data-once]").textContent, copy);
  const theme = hit("[data-theme-choice]");
  if (theme) {
    document.documentElement.dataset.theme = theme.dataset.themeChoice;
    keepCookie("theme", theme.dataset.themeChoice);
    all("[data-theme-choice]").forEach((other) => other.setAttribute("aria-pressed", String(other === theme)));
  }
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && one("details.menu[open]");
  if (menu) { menu.open = false; one("summary", menu).focus(); }
});

// A second click would make a second key, whose answer would take the place of the first one's.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-send-once]")) return;
  if (event.target.dataset.isSent) event.preventDefault();
  event.target.dataset.isSent = "1";
});
addEventListener("pageshow", () => all("[data-send-once]").forEach((form) => delete form.dataset.isSent));
