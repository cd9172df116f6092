// Children under their parent in the list: opened on demand, remembered in the tab.

import { all, fragment, morph, one, parse, say } from "./dom.js";
import { connection } from "./connection.js";
import { localize } from "./times.js";

const KEY = "unfolded";
const remembered = () => new Set(JSON.parse(sessionStorage.getItem(KEY) || "[]"));
const link = (item) => one(":scope > [data-unfold]", item);
export const opened = (item) => one(":scope > [data-children]", item);
export const rowsOf = (list) => [...list.children].filter((child) => child.matches(".row-item"));

export function markFolds(root) {
  for (const fold of all("[data-unfold]:not([aria-expanded])", root)) fold.setAttribute("aria-expanded", "false");
}

// The row as it is now; what is opened below it is not touched.
export function morphRow(old, node) {
  const list = opened(old);
  if (list && link(node)) {
    node.append(list.cloneNode(true));
    link(node).setAttribute("aria-expanded", "true");
  }
  return morph(old, node);
}

export class Folds {
  constructor(sidebar) { this.sidebar = sidebar; }

  restore() {
    markFolds(this.sidebar);
    const kept = remembered();
    for (const item of all(".row-item", this.sidebar.groups)) if (kept.has(item.dataset.key) && link(item)) this.unfold(item);
    this.watch();
  }

  toggle(item) {
    if (!opened(item)) { this.unfold(item); return; }
    opened(item).remove();
    link(item).setAttribute("aria-expanded", "false");
    this.remember(item.dataset.key, false);
  }

  async unfold(item) {
    const fold = link(item);
    if (!fold || fold.ariaBusy) return;
    fold.ariaBusy = "true";
    const html = await fragment(`/s/${item.dataset.key}/children/`).catch(() => null);
    fold.ariaBusy = null;
    if (html === null) { say("The child sessions could not be read. Try again."); return; }
    const content = parse(html);
    for (const row of all(".row-item", content)) this.sidebar.prepare(row);
    localize(content);
    markFolds(content);
    opened(item)?.remove();
    item.append(content.firstElementChild);
    link(item)?.setAttribute("aria-expanded", "true");
    this.remember(item.dataset.key, true);
    this.sidebar.showFiltered();
    const kept = remembered();
    for (const row of rowsOf(opened(item))) if (kept.has(row.dataset.key)) this.unfold(row);
  }

  // What is opened, read again: rows may have come and gone meanwhile.
  reread() {
    for (const list of all("[data-rows] > .row-item > [data-children]", this.sidebar.groups)) this.unfold(list.parentNode);
  }

  // A child's row, where its parent is open.
  take(row, node) {
    const old = this.sidebar.row(row.id);
    if (old) { if (Number(old.dataset.seq) <= row.seq) morphRow(old, node); return; }
    const list = one(`[data-children="${row.parent_id}"]`, this.sidebar.groups);
    if (!list || one(":scope > .load-older", list)) return;
    one(":scope > .side-empty", list)?.remove();
    list.append(node);
  }

  remember(id, isOpen) {
    const kept = remembered();
    if (isOpen) kept.add(id); else kept.delete(id);
    sessionStorage.setItem(KEY, JSON.stringify([...kept].slice(-50)));
    this.watch();
  }

  // The server tells of what is below these roots.
  watch() {
    const roots = all("[data-rows] > .row-item", this.sidebar.groups).filter(opened).map((item) => item.dataset.key);
    const own = one("live-session")?.dataset.root || one("[data-tree-page]")?.dataset.treePage;
    const named = all("[data-family]").map((card) => card.dataset.family);  // a fork's cards are of other trees
    connection.watchTrees([...new Set([...(own ? [own] : []), ...roots, ...named])].slice(0, 50));
  }
}
