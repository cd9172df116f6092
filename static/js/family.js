// Kin of what is on the page: how child sessions stand, told by their rows, wherever they are
// named; and the parts of the open session's page that tell of those below it.

import { all, mergeRows, morph, morphChildren, one, parse } from "./dom.js";
import { connection } from "./connection.js";
import { localize } from "./times.js";

const page = () => one("live-session");
const places = (name, id) => all(`[data-${name}-of="${id}"]`);
const inTree = (id) => one(`[data-region="tree"] [data-relative="${id}"]`);
const waiting = new Map(); // session → how much waits there or below

export function hearRow(row, node) {
  show(row, node);
  const isOwn = row.id === page()?.dataset.session;
  const isNew = !inTree(row.id) && inTree(row.parent_id) && !one('[data-region="tree"] [data-cut]');
  const before = waiting.get(row.id) ?? 0;
  waiting.set(row.id, row.waiting);
  if (isNew || (before !== row.waiting && (isOwn || inTree(row.id)))) lookAround();
}

export function hearRemoved(id) { if (inTree(id)) lookAround(); }

// One markup says how a session stands; its row's is taken over by card, tree and breadcrumb.
function show(row, node) {
  const mark = one(".row-mark", node);
  const state = one(".row-state", node).cloneNode(true);
  one(".sr", state)?.remove();
  state.classList.remove("row-state");
  for (const place of places("state", row.id)) {
    const shown = one(".mark.is-unread", mark) ? [] : mark.cloneNode(true).childNodes;
    morphChildren(one(".mark-box", place), [...shown], 0);
    morph(one(".state", place), state.cloneNode(true));
  }
  const title = one(".row-title", node).textContent;
  for (const place of places("title", row.id)) if (place.textContent !== title) place.textContent = title;
  for (const place of places("note", row.id)) if (row.preview_text !== title) place.textContent = row.preview_text;
}

// ── What stands on the open session's page, as it is now ──
let timer = 0;
export function lookAround() {
  if (timer || !one('[data-region="tree"] *')) return;
  timer = setTimeout(async () => {
    timer = 0;
    const open = page();
    const answer = await fetch(`/s/${open.dataset.session}/around/`, { headers: { Accept: "application/json" } }).catch(() => null);
    if (answer?.ok) open.enqueue((await answer.json()).patches);
  }, 150);
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
