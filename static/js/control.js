// Turns under control: pause, resume, stop, retry, cancel, and the queue by buttons and keys.

import { alarm, all, fragment, one, parse, post, Refused, say } from "./dom.js";
import { connection } from "./connection.js";
import { toast } from "./toast.js";

const page = () => one("live-session");

export function tell(problem) {
  const why = problem instanceof Refused ? problem.message : "The server did not answer. Look whether it was done, and try again.";
  alarm(why);
  toast({ text: why, seconds: 8 });
}

// A fork leads to a page of its own; pressed twice it is still one.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-fork]")) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "1";
});
addEventListener("pageshow", () => { delete one("[data-fork]")?.dataset.sent; });

// One after the other: each carries the version of the queue that the one before it left.
let line = Promise.resolve();
const inTurn = (work) => { line = line.then(work).catch(tell); };

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!page() || !form.matches("[data-control], [data-queue]")) return;
  event.preventDefault();
  const button = event.submitter || one("button", form);
  if (button.ariaDisabled) return;
  const row = button.closest("[data-queued]");
  const menu = form.closest("details.menu");
  if (menu) { menu.open = false; one("summary", menu).focus(); }
  inTurn(() => (row ? changeQueue(row.dataset.queued, button.dataset.do) : command(form, button)));
});

// Not `disabled` meanwhile: that would take the focus away.
async function command(form, button) {
  const fields = button.name ? { [button.name]: button.value } : {};
  const hadFocus = document.activeElement === button && matchMedia("(pointer: fine)").matches;
  button.ariaDisabled = "true";
  try { await post(button.getAttribute("formaction") || form.getAttribute("action"), fields); }
  catch (problem) { tell(problem); }
  finally { button.ariaDisabled = null; await look(); }
  if (hadFocus && !button.isConnected) one("textarea")?.focus();
}

// The row is found again: an act before this one may have moved it.
async function changeQueue(turn, act) {
  const button = one(`[data-queued="${turn}"] [data-do="${act}"]`);
  if (!button || button.disabled) return;
  const box = one("composer-box");
  const fields = { expected_version: one("[name=expected_version]", button.form).value };
  if (button.name) fields[button.name] = button.value;
  if (act === "edit") await box?.settled();
  try {
    const answer = await post(button.getAttribute("formaction"), fields);
    if (act === "edit") box?.takeBack(answer);
    else say({ up: "Moved up.", down: "Moved down.", delete: "Deleted.", promote: "Sent now." }[act]);
  } catch (problem) { tell(problem); }
  await look();
}

// To a place counted from 1, of the queue that the mover saw: a newer one refuses it.
export function moveTo(turn, position, version) {
  inTurn(async () => {
    const url = one(`[data-queued="${turn}"] [data-do="up"]`)?.getAttribute("formaction");
    try {
      if (url) {
        await post(url, { position, expected_version: version });
        say(`Moved to place ${position}.`);
      }
    } catch (problem) { tell(problem); }
    await look();
  });
}

// The strip as it is now, whatever the socket has brought so far.
async function look() {
  await page()?.refreshStrip();
  if (!connection.isOpen) page()?.pull();
}

// ── Keys: a queued prompt moves with Alt and the arrows, wherever in its row the focus is ──
document.addEventListener("keydown", (event) => {
  const act = event.altKey && { ArrowUp: "up", ArrowDown: "down" }[event.key];
  const row = act && event.target.closest("[data-queued]");
  if (!row) return;
  event.preventDefault();
  inTurn(() => changeQueue(row.dataset.queued, act));
});

// ── Cancel: final, so it is asked, with what ends by name ──
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-cancel]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const menu = link.closest("details.menu");
  const dialog = one('[data-dialog="cancel"]');
  try { one("[data-says]", dialog).replaceChildren(parse(await fragment(link.href))); }
  catch { location.href = link.href; return; }
  if (menu) menu.open = false;
  dialog.showModal();
  one("[data-keep]", dialog).focus();
  one("[data-keep]", dialog).onclick = () => dialog.close("keep");
  one("[data-go]", dialog).onclick = () => dialog.close("go");
  dialog.onclose = () => {
    one("summary", menu || document)?.focus();
    if (dialog.returnValue === "go") inTurn(async () => { await post(link.getAttribute("href")); await look(); });
    dialog.returnValue = "";
  };
});

// What had the focus in the strip keeps it, and what was open stays open, when rows move or go.
export function keepPlace(strip) {
  const active = strip.contains(document.activeElement) ? document.activeElement : null;
  const opened = all(".queue-acts[open]", strip).map((acts) => acts.closest("[data-queued]").dataset.queued);
  const row = active?.closest("[data-queued]");
  const turn = row?.dataset.queued;
  const place = row ? all("[data-queued]", strip).indexOf(row) : -1;
  const act = active?.dataset.do;
  return () => {
    for (const id of opened) { const acts = one(`[data-queued="${id}"] .queue-acts`, strip); if (acts) acts.open = true; }
    if (!active || (strip.contains(document.activeElement) && !document.activeElement.disabled)) return;
    const rows = all("[data-queued]", strip);
    const next = one(`[data-queued="${turn}"]`, strip) || rows[Math.min(place, rows.length - 1)];
    const wanted = next && (one(`[data-do="${act}"]:enabled`, next) || one("button:enabled", next));
    (isShown(wanted) ? wanted : (next && one("summary", next)) || one("textarea"))?.focus();
  };
}

const isShown = (node) => !!node && (node.checkVisibility?.({ contentVisibilityAuto: true }) ?? true);
