// The page's own start: theme, panels, menus, keys.

import { all, copyText, keepCookie, one } from "./dom.js";
import { connection } from "./connection.js";
import { learnServerTime, localize } from "./times.js";
import { closeMenus, perform, showUndo } from "./acts.js";
import { hasToast, undoLast } from "./toast.js";
import "./zone.js";
import "./control.js";
import "./composer.js";
import "./session.js";
import "./family.js";
import "./sidebar.js";
import "./drag.js";
import "./waits.js";

const app = document.body;
localize(app); // before the zone is known to the server, it tells UTC
learnServerTime();
connection.start();

const kept = sessionStorage.getItem("undo");
if (kept) { sessionStorage.removeItem("undo"); showUndo(JSON.parse(kept)); }

// ── Panels: beside the page where there is room, over it where not ──
const wide = { side: matchMedia("(min-width: 1024px)"), drawer: matchMedia("(min-width: 1280px)") };

function togglePanel(name) {
  if (wide[name].matches) {
    const next = app.dataset[name] === "closed" ? "open" : "closed";
    app.dataset[name] = next;
    keepCookie(name, next);
  } else {
    const over = `${name}Over`;
    if (app.dataset[over]) delete app.dataset[over];
    else app.dataset[over] = "open";
  }
  tellPanels();
}

function tellPanels() {
  const shown = wide.drawer.matches ? app.dataset.drawer === "open" : app.dataset.drawerOver === "open";
  all(".head [data-toggle-drawer]").forEach((button) => button.setAttribute("aria-pressed", String(shown)));
}
wide.drawer.addEventListener("change", tellPanels);
tellPanels();

function closeOver() {
  const was = app.dataset.sideOver || app.dataset.drawerOver;
  delete app.dataset.sideOver;
  delete app.dataset.drawerOver;
  tellPanels();
  return !!was;
}

// ── Clicks that many places share ──
document.addEventListener("click", (event) => {
  const hit = (selector) => event.target.closest(selector);
  const inMenu = hit("details.menu");
  if (!hit(".menu-panel.is-fixed") && !hit("[data-row-menu], [data-folder-menu]")) closeMenus(inMenu);
  if (hit("[data-toggle-side]")) togglePanel("side");
  else if (hit("[data-toggle-drawer]")) togglePanel("drawer");
  else if (hit("[data-close-side]")) closeOver();
  else if (hit("[data-copy-code]")) copyText(one("code", hit(".code")).textContent, hit("[data-copy-code]"));
  else if (hit("[data-theme-choice]")) chooseTheme(hit("[data-theme-choice]"));
  else if (hit("[data-show-keys]")) { closeMenus(); showKeys(); }
  else if (hit("[data-rename]")) { event.preventDefault(); actOnPage("rename"); }
  else if (hit(".head .menu-panel [data-act]")) { event.preventDefault(); closeMenus(); actOnPage(hit("[data-act]").dataset.act, hit("[data-act]")); }
});

function actOnPage(act, source) {
  const session = one("live-session");
  if (!session) return;
  const title = one("h1", session)?.textContent || "";
  const field = source && one("[name=pinned]", source);
  perform(act, { id: session.dataset.session, title, isPinned: field ? field.value === "0" : false });
  if (act === "pin" && field) {
    field.value = field.value === "1" ? "0" : "1";
    one("button", source).lastChild.textContent = field.value === "1" ? "Pin" : "Unpin";
  }
}

function chooseTheme(button) {
  const choice = button.dataset.themeChoice;
  document.documentElement.dataset.theme = choice;
  keepCookie("theme", choice);
  all("[data-theme-choice]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
}

function showKeys() {
  const dialog = one('[data-dialog="keys"]');
  const before = document.activeElement;
  dialog.showModal();
  one("[data-keep]", dialog).onclick = () => dialog.close();
  dialog.onclose = () => before?.focus?.();
}

// ── Keys ──
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = one("details.menu[open]");
    if (menu) { menu.open = false; one("summary", menu).focus(); return; }
    closeOver();
    return;
  }
  const writes = event.target.closest("input, textarea, select, [contenteditable]");
  if (writes || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || one("dialog[open]")) return;
  if (event.key === "n" || event.key === "N") { const link = one("[data-new]"); if (link) { event.preventDefault(); location.href = link.href; } }
  else if (event.key === "/") { const filter = one("[data-filter]"); if (filter) { event.preventDefault(); if (!filter.offsetParent) togglePanel("side"); filter.focus(); } }
  else if (event.key === "?") { event.preventDefault(); showKeys(); }
  else if ((event.key === "z" || event.key === "Z") && hasToast()) { event.preventDefault(); undoLast(); }
});
