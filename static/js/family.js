// Kin of what is on the page: how child sessions stand, told by their rows, wherever they are
// named; and the parts of the open session's page that tell of those below it.

import { all, mergeRows, morph, morphChildren, one, parse } from "./dom.js";
import { connection } from "./connection.js";
import { localize } from "./times.js";

const page = () => one("live-session");
const places = (name, id) => all(`[data-${name}-of="${id}"]`);
const inTree = (id) => one(`[data-region="tree"] [data-relative="${id}"]`);
const isNamed = (id) => places("state", id).length + places("title", id).length > 0;
const named = () => [...new Set(all("[data-state-of], [data-title-of]").map(({ dataset }) => dataset.stateOf || dataset.titleOf))];
const KIN_NAMED = 100; // the newest on the page, in one question
const waiting = new Map(); // session → how much waits there or below

export function hearRow(row, node) {
  show(row, node);
  const isOwn = row.id === page()?.dataset.session;
  const isNew = !inTree(row.id) && inTree(row.parent_id) && !one('[data-region="tree"] [data-cut]');
  const before = waiting.get(row.id) ?? 0;
  waiting.set(row.id, row.waiting);
  if (isNew || (before !== row.waiting && (isOwn || inTree(row.id)))) lookAround();
}

// It was archived or deleted, or may no longer be seen.
export function hearRemoved(id) {
  if (inTree(id)) lookAround();
  if (isNamed(id)) readKin([id]);
}

// One markup says how a session stands; its row's is taken over by card, tree and breadcrumb.
function show(row, node) {
  const mark = one(".row-mark", node);
  const state = one(".row-state", node).cloneNode(true);
  one(".sr", state)?.remove();
  state.classList.remove("row-state");
  const shown = one(".mark.is-unread", mark) ? [] : [...mark.cloneNode(true).childNodes];
  showStanding(row.id, shown, state);
  const title = one(".row-title", node).textContent;
  showWords(row.id, title, row.preview_text === title ? "" : row.preview_text);
}

function showStanding(id, marks, state) {
  for (const place of places("state", id)) {
    morphChildren(one(".mark-box", place), marks.map((node) => node.cloneNode(true)), 0);
    morph(one(".state", place), state.cloneNode(true));
  }
}

function showWords(id, title, note) {
  for (const place of places("title", id)) if (place.textContent !== title) place.textContent = title;
  if (note) for (const place of places("note", id)) place.textContent = note;
}

// ── What stands on the page, as it is now ──
let timer = 0;
export function lookAround() {
  if (timer) return;
  timer = setTimeout(() => {
    timer = 0;
    readAround();
    if (!connection.isOpen) readKin(named());
  }, 150);
}

async function readAround() {
  const open = page();
  if (!open || !one('[data-region="tree"] *')) return;
  const told = await ask(`/s/${open.dataset.session}/around/`);
  if (told) open.enqueue(told.patches);
}

// By name: of these no row is told.
async function readKin(ids) {
  if (!ids.length) return;
  const told = await ask(`/kin/?${new URLSearchParams(ids.slice(-KIN_NAMED).map((id) => ["id", id]))}`);
  for (const { id, title, note, html } of told?.kin || []) {
    const fresh = parse(html);
    showStanding(id, [...one(".mark-box", fresh).childNodes], one(".state", fresh));
    showWords(id, title, note);
  }
}

async function ask(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } }).catch(() => null);
  return answer?.ok ? answer.json() : null;
}

// Where no socket gets through nobody tells of the others.
setInterval(() => { if (!connection.isOpen && !document.hidden) lookAround(); }, 5000);

// Cards that stay are not touched, so what is typed in them stays too.
export function fillAsks(region, html) {
  const fresh = parse(html);
  localize(fresh);
  const hadFocus = region.contains(document.activeElement);
  const list = one("[data-asks]", region);
  const wanted = one("[data-asks]", fresh);
  if (list && wanted) mergeRows(list, all("[data-row]", wanted));
  else if (list || wanted) region.replaceChildren(fresh);
  if (hadFocus && !region.contains(document.activeElement)) (one("[data-ask] a", region) || one("[data-scroll]")).focus();
}
