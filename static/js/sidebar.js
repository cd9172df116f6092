// The list of sessions: live rows that move only while the pointer is elsewhere.

import { all, fragment, morph, one, parse } from "./dom.js";
import { connection } from "./connection.js";
import { dayKey, localize, now } from "./times.js";
import { openRowMenu } from "./acts.js";
import { keepFold, openFolderMenu } from "./folders.js";
import { hearRemoved, hearRow, lookAround } from "./family.js";
import { Folds, markFolds, morphRow, rowsOf } from "./folds.js";
import { waitsChanged } from "./waits.js";

const DAY_MS = 86400000;

class SessionSidebar extends HTMLElement {
  connectedCallback() {
    this.groups = one("[data-groups]", this);
    this.workspace = this.dataset.workspace;
    this.later = new Map();
    localize(this);
    this.showRead();
    document.addEventListener("visibilitychange", () => this.showRead());
    this.ager = setInterval(() => localize(this), 10000);
    this.groups.addEventListener("pointerleave", () => this.settle());
    this.groups.addEventListener("focusout", () => setTimeout(() => this.settle(), 0));
    this.addEventListener("click", (event) => this.clicked(event));
    one("[data-filter]", this)?.addEventListener("input", (event) => this.filter(event.target.value));
    one("[data-filter]", this)?.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.target.value = ""; this.filter(""); event.target.blur(); }
      if (event.key === "Enter") one(".row-item:not([hidden]) .row", this)?.click();
    });
    one('.row[aria-current="page"]', this)?.scrollIntoView({ block: "nearest" });
    connection.watchWorkspace(this.workspace, this);
    this.folds = new Folds(this);
    this.folds.restore();
  }

  get isHeld() { return this.groups.matches(":hover") || this.groups.contains(document.activeElement) || !!one('[aria-expanded="true"]', this.groups); }

  hear(rows, removed) {
    for (const id of removed) { this.remove(id); hearRemoved(id); }
    for (const row of rows) this.take(row);
    this.showFiltered();
  }

  // A row that is new here, before it is shown.
  prepare(node) {
    if (node.dataset.key === this.openId) one(".row", node).setAttribute("aria-current", "page");
    this.showRead(node);
  }

  take(row) {
    const { id, seq, html } = row;
    const node = parse(html).firstElementChild;
    const old = this.row(id);
    hearRow(row, node);
    if (old && Number(old.dataset.seq) > seq) return;
    if (!old || old.dataset.waits !== node.dataset.waits) waitsChanged();
    this.prepare(node);
    localize(wrap(node));
    markFolds(wrap(node));
    if (row.parent_id) { this.folds.take(row, node); return; }
    if (old) {
      const to = groupOf(node);
      const stays = old.closest("[data-group]").dataset.group === to && !(old.dataset.at < node.dataset.at && old.previousElementSibling);
      const kept = morphRow(old, node);
      if (stays) return;
      if (this.isHeld) this.later.set(id, to); else this.move(kept, to);
      return;
    }
    if (this.isHeld) this.later.set(id, node); else this.insert(node, groupOf(node));
  }

  settle() {
    if (this.isHeld) return;
    for (const [id, waiting] of this.later) {
      const row = this.row(id);
      if (row) this.move(row, groupOf(row));
      else if (waiting instanceof Node) this.insert(waiting, groupOf(waiting));
    }
    this.later.clear();
    this.showFiltered();
    if (this.wantsResync) this.resync();
  }

  get openId() { return one("live-session")?.dataset.session; }

  // What is on the screen is not unread; the server's mark follows within seconds.
  showRead(row = this.row(this.openId)) {
    if (!row || document.hidden || row.dataset.key !== this.openId) return;
    one(".row", row).classList.remove("is-unread");
    one(".mark.is-unread", row)?.remove();
    one(".row-state .sr", row)?.remove();
    const word = one(".row-note .state", row);
    if (word?.textContent === "Unread") word.remove();
  }

  move(row, to) {
    const from = row.closest("[data-group]");
    if (from?.dataset.group !== to) this.count(from, -1);
    const moved = from?.dataset.group !== to;
    row.remove();
    this.insert(row, to, moved);
    this.dropEmpty(from);
  }

  insert(row, key, counts = true) {
    one("[data-no-sessions]", this)?.remove();
    const group = this.group(key);
    if (!group) { this.resync(); return; } // a folder that is new
    const rows = one("[data-rows]", group);
    const next = [...rows.children].find((child) => child.dataset.older !== undefined || child.dataset.at < row.dataset.at);
    rows.insertBefore(row, key === "pinned" && !row.isConnected ? rows.firstChild : next || null);
    if (counts) this.count(group, 1);
  }

  remove(id) {
    this.later.delete(id);
    const row = this.row(id);
    if (!row) return;
    const group = row.closest("[data-group]");
    row.remove();
    if (row.matches(".is-child")) return;
    this.count(group, -1);
    this.dropEmpty(group);
  }

  row(id) { return one(`[data-key="${id}"]`, this.groups); }

  group(key) {
    const found = one(`[data-group="${key}"]`, this.groups);
    if (found || !TITLES[key]) return found;
    const node = parse(`<details class="group" data-group="${key}" open><summary class="group-head"></summary><ul data-rows></ul></details>`).firstElementChild;
    const icon = one(".group-head .icon", this)?.cloneNode(true);
    const name = Object.assign(document.createElement("span"), { textContent: TITLES[key] });
    const count = parse('<span class="count" data-total>0</span>');
    name.dataset.name = "";
    one("summary", node).append(...(icon ? [icon] : []), name, count);
    const next = all("[data-group]", this.groups).find((group) => rank(group.dataset.group) > rank(key));
    this.groups.insertBefore(node, next || null);
    return node;
  }

  count(group, by) {
    if (!group) return;
    for (const name of ["[data-total]", "[data-shown]", "[data-of]"]) {
      const place = one(name, group);
      if (place) place.textContent = Math.max(0, Number(place.textContent) + by);
    }
  }

  dropEmpty(group) { if (group?.isConnected && !group.hasAttribute("data-is-folder") && !one(".row-item", group) && !one("[data-older]", group)) group.remove(); }

  // The list as it is now; what was loaded below the first pages stays.
  async resync() {
    if (this.isHeld) { this.wantsResync = true; return; }
    this.wantsResync = false;
    const html = await fragment(`/w/${this.workspace}/sidebar/`).catch(() => null);
    if (html === null) return;
    waitsChanged();
    lookAround();
    this.later.clear();
    const content = parse(html);
    for (const row of all(".row-item", content)) this.prepare(row);
    localize(content);
    markFolds(content);
    const fresh = all("[data-group]", content);
    if (fresh.length) one("[data-no-sessions]", this)?.remove();
    const keys = fresh.map((group) => group.dataset.group);
    let place = null;
    for (const group of fresh) {
      const present = this.group(group.dataset.group) || this.adopt(group);
      this.merge(present, group);
      if (place ? place.nextElementSibling !== present : this.groups.firstElementChild !== present) this.groups.insertBefore(present, place ? place.nextElementSibling : this.groups.firstElementChild);
      place = present;
    }
    for (const group of all("[data-group]", this.groups)) if (!keys.includes(group.dataset.group)) group.remove();
    this.folds.reread();
    this.showFiltered();
  }

  // A folder that was made elsewhere, without its rows.
  adopt(fresh) {
    const node = fresh.cloneNode(true);
    one("[data-rows]", node).replaceChildren();
    this.groups.append(node);
    return node;
  }

  merge(group, fresh) {
    if (group.hasAttribute("data-is-folder")) {
      for (const part of ["summary", "[data-folder-menu]"]) morph(one(part, group), one(part, fresh).cloneNode(true));
    }
    const rows = one("[data-rows]", group);
    const wanted = all(".row-item", fresh);
    const ids = new Set(wanted.map((row) => row.dataset.key));
    const older = one("[data-older]", fresh);
    const oldest = wanted.at(-1)?.dataset.at || "";
    for (const row of rowsOf(rows)) if (!ids.has(row.dataset.key) && (!older || row.dataset.at >= oldest)) row.remove();
    let place = rows.firstElementChild;
    for (const node of wanted) {
      const old = this.row(node.dataset.key);
      const row = old ? morphRow(old, node) : node;
      if (row === place) place = place.nextElementSibling;
      else rows.insertBefore(row, place);
    }
    const total = one("[data-total]", fresh).textContent;
    one("[data-total]", group).textContent = total;
    const shown = rowsOf(rows).length;
    const present = one("[data-older]", rows);
    if (shown > wanted.length && present) one("[data-of]", present).textContent = total;
    else { present?.remove(); if (older) rows.append(older); }
  }

  async clicked(event) {
    const more = event.target.closest("[data-row-menu]");
    if (more) { event.preventDefault(); openRowMenu(more, more.closest(".row-item")); return; }
    const folder = event.target.closest("[data-folder-menu]");
    if (folder) { event.preventDefault(); openFolderMenu(folder); return; }
    const head = event.target.closest(".group-head");
    if (head) { setTimeout(() => keepFold(head.parentNode), 0); return; }
    const fold = event.target.closest("[data-unfold]");
    if (fold && !event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); this.folds.toggle(fold.closest(".row-item")); return; }
    const older = event.target.closest("[data-load-older]");
    if (!older) return;
    event.preventDefault();
    if (older.ariaDisabled) return;
    older.ariaDisabled = "true";
    const place = older.closest("[data-older]");
    try {
      const content = parse(await fragment(older.href));
      localize(content);
      markFolds(content);
      for (const row of all(".row-item", content)) if (this.row(row.dataset.key)) row.remove();
      const first = one(".row", content);
      const hadFocus = document.activeElement === older;
      place.replaceWith(content);
      this.showFiltered();
      if (hadFocus) first?.focus();
    } catch { older.ariaDisabled = null; older.textContent = "Load older: try again"; }
  }

  filter(text) {
    this.wanted = text.trim().toLowerCase();
    for (const row of all(".row-item", this.groups)) row.hidden = !all(".row-title", row).some((title) => title.textContent.toLowerCase().includes(this.wanted));
    for (const group of all("[data-group]", this.groups)) {
      const matched = all("[data-rows] > .row-item:not([hidden])", group).length;
      group.hidden = this.wanted !== "" && !matched;
      const total = one("[data-total]", group);
      total.hidden = this.wanted !== "";
      const place = one("[data-matched]", group) || total.parentNode.appendChild(Object.assign(document.createElement("span"), { className: "count" }));
      place.dataset.matched = "";
      place.hidden = !this.wanted;
      place.textContent = matched;
    }
  }

  showFiltered() { if (this.wanted) this.filter(this.wanted); }
}

const TITLES = { pinned: "Pinned", active: "Active", today: "Today", yesterday: "Yesterday", week: "Previous 7 days", older: "Older" };

// Folders stand behind what is pinned, in their own order.
const rank = (key) => (TITLES[key] ? Object.keys(TITLES).indexOf(key) * 2 : 1);

function groupOf(row) {
  if (row.hasAttribute("data-pinned")) return "pinned";
  if (row.dataset.folder) return row.dataset.folder;
  if (row.hasAttribute("data-working")) return "active";
  const at = new Date(row.dataset.at);
  const today = new Date(now());
  if (dayKey(at) >= dayKey(today)) return "today";
  if (dayKey(at) === dayKey(new Date(now() - DAY_MS))) return "yesterday";
  return dayKey(at) >= dayKey(new Date(now() - 7 * DAY_MS)) ? "week" : "older";
}

const wrap = (node) => { const host = document.createDocumentFragment(); host.append(node); return host; };

customElements.define("session-sidebar", SessionSidebar);
