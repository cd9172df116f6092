// What can be done to a session, from its row or its page: rename, pin, archive with Undo, copy.

import { alarm, copyText, one, post, Refused } from "./dom.js";
import { chooseFolder } from "./folders.js";
import { toast } from "./toast.js";

export function openRowMenu(button, row) {
  const panel = one('[data-template="row-menu"]').content.firstElementChild.cloneNode(true);
  if (row.matches(".is-child")) for (const act of ["pin", "move"]) one(`[data-act="${act}"]`, panel).remove(); // a child stands with its parent
  else one("[data-pin-word]", panel).textContent = row.hasAttribute("data-pinned") ? "Unpin" : "Pin";
  showMenu(panel, button, (act) => {
    const title = one(".row-title", row).textContent;
    if (act === "move") chooseFolder(button, row);
    else perform(act, { id: row.dataset.key, title, isPinned: row.hasAttribute("data-pinned") });
  });
}

export function openMenu(button, items, choose) {
  const panel = Object.assign(document.createElement("div"), { className: "menu-panel is-fixed", role: "menu" });
  for (const { key, text } of items) {
    const item = Object.assign(document.createElement("button"), { className: "menu-item", type: "button", textContent: text, role: "menuitem", dir: "auto" });
    item.dataset.act = key;
    panel.append(item);
  }
  showMenu(panel, button, choose);
}

function showMenu(panel, button, choose) {
  closeMenus();
  document.body.append(panel);
  button.setAttribute("aria-expanded", "true");
  const place = button.getBoundingClientRect();
  panel.style.left = `${Math.min(place.left, innerWidth - panel.offsetWidth - 8)}px`;
  panel.style.top = `${Math.min(place.bottom + 2, innerHeight - panel.offsetHeight - 8)}px`;
  const items = [...panel.querySelectorAll("[role=menuitem]")];
  items[0].focus();
  panel.closeMenu = (focus) => { panel.remove(); button.setAttribute("aria-expanded", "false"); if (focus) button.focus(); };
  panel.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus(); }
    if (event.key === "Escape" || event.key === "Tab") { event.stopPropagation(); event.preventDefault(); panel.closeMenu(true); }
  });
  panel.addEventListener("click", (event) => {
    const act = event.target.closest("[data-act]")?.dataset.act;
    if (act === undefined) return;
    event.stopPropagation(); // what it opens stays open
    panel.closeMenu(true);
    choose(act);
  });
}

export function closeMenus(except) {
  document.querySelectorAll("details.menu[open]").forEach((menu) => { if (menu !== except) menu.open = false; });
  document.querySelectorAll(".menu-panel.is-fixed").forEach((panel) => panel.closeMenu?.(false));
}

export async function perform(act, { id, title, isPinned }) {
  try {
    if (act === "rename") rename(id, title);
    else if (act === "pin") await post(`/s/${id}/pin`, { pinned: isPinned ? 0 : 1 });
    else if (act === "archive") await archive(id, title);
    else if (act === "copy-id") copyText(id);
    else if (act === "copy-link") copyText(`${location.origin}/s/${id}/`);
  } catch (problem) {
    const why = problem instanceof Refused ? problem.message : "The server did not answer. Nothing was changed.";
    alarm(why);
    toast({ text: why, seconds: 8 });
  }
}

function rename(id, title) {
  const open = one("live-session")?.dataset.session === id;
  if (!open) { location.href = `/s/${id}/?rename`; return; }
  const region = one('[data-region="title"]');
  const shown = [...region.childNodes];
  const form = document.createElement("form");
  form.className = "title-form";
  const input = Object.assign(document.createElement("input"), { className: "input", maxLength: 120, value: one("h1", region).dataset.title ?? title });
  input.setAttribute("aria-label", "Title");
  form.append(input);
  region.replaceChildren(form);
  input.focus();
  input.select();
  let isDone = false;
  const finish = async (save) => {
    if (isDone) return;
    isDone = true;
    region.replaceChildren(...shown);
    const heading = one("h1", region);
    const wanted = input.value.trim();
    one("[data-rename]", region)?.focus();
    if (!save || wanted === heading.dataset.title) return;
    const before = heading.textContent;
    if (wanted) heading.textContent = wanted;
    try { await post(`/s/${id}/rename`, { title: wanted }); heading.dataset.title = wanted; }
    catch (problem) { heading.textContent = before; toast({ text: problem.message, seconds: 8 }); }
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); finish(true); });
  input.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); finish(false); } });
  input.addEventListener("blur", () => finish(true));
}

async function archive(id, title, stop = 0) {
  const page = one(`live-session[data-session="${id}"]`);
  let answer;
  try {
    // What stands on the page was seen: nobody archives it from there unread.
    answer = await post(`/s/${id}/archive`, { stop, ...(page && { seen: page.seq }) });
  } catch (problem) {
    if (!(problem instanceof Refused) || problem.code !== "target_working" || stop) throw problem;
    if (await confirmStop(title, problem.details)) await archive(id, title, 1);
    return;
  }
  const count = answer.is_root && one("[data-archived-count]");
  if (count) count.textContent = Number(count.textContent) + 1;
  const notice = { id, title, isRoot: answer.is_root, below: answer.below, until: Date.now() + 8000, wasOpen: !!page };
  if (page) {
    sessionStorage.setItem("undo", JSON.stringify(notice));
    location.href = answer.home;
  } else showUndo(notice);
}

export function showUndo({ id, title, isRoot, below, until, wasOpen }) {
  const seconds = Math.min(8, (until - Date.now()) / 1000);
  if (seconds <= 0) return;
  toast({
    text: "Archived ", strong: title, more: `${below ? `With ${children(below)}. ` : ""}Nothing was deleted.`, seconds,
    undo: async () => {
      await post(`/s/${id}/restore`);
      const count = isRoot && one("[data-archived-count]");
      if (count) count.textContent = Math.max(0, Number(count.textContent) - 1);
      if (wasOpen) location.href = `/s/${id}/`;
    },
  });
}

const withdrawn = (queued) => (queued ? `, and ${queued} queued prompt${queued === 1 ? " is" : "s are"} withdrawn` : "");
const children = (below) => `${below} child session${below === 1 ? "" : "s"}`;

function confirmStop(title, { queued_prompts: queued = 0, sessions_below: below = 0 }) {
  const dialog = one('[data-dialog="stop-and-archive"]');
  const along = below ? ` ${children(below)} ${below === 1 ? "goes" : "go"} with it: what works there stops too.` : "";
  const ends = `“${title}” ${below ? "or one below it " : ""}is working. ${below ? "Unfinished turns end" : "Its turn ends"} here${withdrawn(queued)}.`;
  one("[data-says]", dialog).textContent = `${ends}${along} What was written is kept.`;
  const before = document.activeElement;
  dialog.showModal();
  one("[data-keep]", dialog).focus();
  return new Promise((decide) => {
    one("[data-keep]", dialog).onclick = () => dialog.close("keep");
    one("[data-go]", dialog).onclick = () => dialog.close("go");
    dialog.onclose = () => { before?.focus?.(); decide(dialog.returnValue === "go"); dialog.returnValue = ""; };
  });
}
