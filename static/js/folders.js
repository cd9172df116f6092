// Folders in the list of sessions: made, renamed, ordered, filled; by menus and by dragging.

import { alarm, all, one, post, Refused } from "./dom.js";
import { openMenu } from "./acts.js";
import { toast } from "./toast.js";

const SESSION = "application/x-sederunt-session";
const FOLDER = "application/x-sederunt-folder";
const side = () => one("session-sidebar");
const groups = () => all("[data-is-folder]", side());
const nameOf = (group) => one("[data-name]", group).textContent;
const folderUrl = (key) => `/w/${side().dataset.workspace}/folders/${key}`;

async function attempt(act) {
  try { return await act(); }
  catch (problem) {
    const why = problem instanceof Refused ? problem.message : "The server did not answer. Nothing was changed.";
    alarm(why);
    toast({ text: why, seconds: 8 });
    return null;
  }
}

// Where a row stands is told by the server, to this tab as to the others.
export const moveSession = (id, folder) => attempt(() => post(`/s/${id}/move`, { folder }));

function ask(title, label, value = "") {
  const dialog = one('[data-dialog="folder"]');
  one("[data-title]", dialog).textContent = title;
  const input = one("input", dialog);
  input.value = value;
  one("[data-go]", dialog).textContent = label;
  const before = document.activeElement;
  dialog.showModal();
  input.focus();
  input.select();
  return new Promise((decide) => {
    one("form", dialog).onsubmit = (event) => { event.preventDefault(); if (input.value.trim()) dialog.close("go"); };
    one("[data-keep]", dialog).onclick = () => dialog.close("");
    dialog.onclose = () => { before?.focus?.(); decide(dialog.returnValue === "go" ? input.value.trim() : ""); dialog.returnValue = ""; };
  });
}

async function create() {
  const name = await ask("New folder", "Create folder");
  return name ? attempt(() => post(`/w/${side().dataset.workspace}/folders`, { name })) : null;
}

export function chooseFolder(button, row) {
  const choices = groups().map((group) => ({ key: group.dataset.group, text: nameOf(group) }));
  const present = row.dataset.folder || "";
  const items = [
    ...choices.filter(({ key }) => key !== present),
    ...(present ? [{ key: "", text: "No folder" }] : []),
    { key: "new", text: "New folder…" },
  ];
  openMenu(button, items, async (key) => {
    if (key !== "new") { moveSession(row.dataset.key, key); return; }
    const made = await create();
    if (made) moveSession(row.dataset.key, made.folder);
  });
}

export function openFolderMenu(button) {
  const group = button.closest("[data-group]");
  const key = group.dataset.group;
  const place = groups().indexOf(group) + 1;
  const items = [
    { key: "rename", text: "Rename" },
    ...(place > 1 ? [{ key: "up", text: "Move up" }] : []),
    ...(place < groups().length ? [{ key: "down", text: "Move down" }] : []),
    { key: "delete", text: "Delete folder" },
  ];
  openMenu(button, items, async (act) => {
    if (act === "rename") {
      const name = await ask("Rename folder", "Rename", nameOf(group));
      if (name) attempt(() => post(folderUrl(key), { name }));
    } else if (act === "delete") {
      if (await attempt(() => post(`${folderUrl(key)}/delete`))) toast({ text: "Folder deleted. Its sessions stay.", seconds: 8 });
    } else attempt(() => post(folderUrl(key), { position: place + (act === "up" ? -1 : 1) }));
  });
}

export function keepFold(group) {
  attempt(() => post(`/w/${side().dataset.workspace}/fold`, { group: group.dataset.group, folded: group.open ? 0 : 1 }));
}

// What may be dropped where: a session into a folder or out of it, a folder before another.
function target(event) {
  const group = event.target.closest?.("session-sidebar [data-group]");
  const types = event.dataTransfer.types;
  if (!group || group.dataset.group === "pinned") return null;
  if (types.includes(FOLDER)) return group.hasAttribute("data-is-folder") ? group : null;
  return types.includes(SESSION) ? group : null;
}

const unmark = () => { for (const each of all(".is-drop")) each.classList.remove("is-drop"); };

document.addEventListener("dragstart", (event) => {
  const row = event.target.closest?.("session-sidebar [data-rows] > .row-item");
  const head = event.target.closest?.("session-sidebar [data-is-folder] > summary");
  if (row) event.dataTransfer.setData(SESSION, row.dataset.key);
  else if (head) event.dataTransfer.setData(FOLDER, head.parentNode.dataset.group);
});
document.addEventListener("dragover", (event) => {
  const group = target(event);
  unmark();
  if (!group) return;
  event.preventDefault();
  group.classList.add("is-drop");
});
document.addEventListener("drop", (event) => {
  const group = target(event);
  unmark();
  if (!group) return;
  event.preventDefault();
  const folder = event.dataTransfer.getData(FOLDER);
  if (folder) { if (folder !== group.dataset.group) attempt(() => post(folderUrl(folder), { position: groups().indexOf(group) + 1 })); }
  else moveSession(event.dataTransfer.getData(SESSION), group.hasAttribute("data-is-folder") ? group.dataset.group : "");
});
document.addEventListener("dragend", unmark);
document.addEventListener("click", (event) => { if (event.target.closest("[data-new-folder]")) create(); });
