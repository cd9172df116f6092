// The queue by pointer and touch: a prompt is taken by its number and dropped at another place.

import { all, one, say } from "./dom.js";
import { moveTo } from "./control.js";

const EDGE_PIXELS = 24;
const SLACK_PIXELS = 4;
let drag = null;

document.addEventListener("pointerdown", (event) => {
  const grip = event.button === 0 && event.isPrimary && event.target.closest("live-session [data-grip]");
  if (!grip) return;
  event.preventDefault(); // no text is selected
  const form = grip.closest("[data-queue]");
  drag = {
    pointer: event.pointerId,
    turn: grip.closest("[data-queued]").dataset.queued,
    version: one("[name=expected_version]", form).value,
    from: event.clientY,
    form,
    place: 0,
  };
});

document.addEventListener("pointermove", (event) => {
  if (event.pointerId !== drag?.pointer) return;
  if (!drag.isMoving && Math.abs(event.clientY - drag.from) < SLACK_PIXELS) return;
  drag.isMoving = true;
  const row = rowOf(drag.turn);
  if (!row) { finish(); return; } // it has started, or somebody took it
  scrollAtEdge(event.clientY);
  const others = shown().filter((each) => each !== row);
  const before = others.filter((each) => middle(each) < event.clientY).length;
  mark(row, others, before);
  const now = shown().indexOf(row);
  drag.place = before === now ? 0 : before + 1;
});

document.addEventListener("pointerup", (event) => {
  if (event.pointerId !== drag?.pointer) return;
  const { turn, place, version } = drag;
  finish();
  if (place) moveTo(turn, place, version);
});

document.addEventListener("pointercancel", (event) => { if (event.pointerId === drag?.pointer) finish(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !drag) return;
  event.stopImmediatePropagation();
  finish();
  say("Not moved.");
}, true);

const rowOf = (turn) => one(`[data-queued="${turn}"]`, drag.form);
const shown = () => all("[data-queued]", drag.form).filter((row) => row.offsetParent && row.getBoundingClientRect().height > 0);
const middle = (row) => { const box = row.getBoundingClientRect(); return box.top + box.height / 2; };

function mark(row, others, before) {
  clear();
  row.classList.add("is-dragged");
  if (others[before]) others[before].classList.add("is-drop-above");
  else others.at(-1)?.classList.add("is-drop-below");
}

function clear() {
  for (const row of all("[data-queued]")) row.classList.remove("is-dragged", "is-drop-above", "is-drop-below");
}

function scrollAtEdge(y) {
  const box = drag.form.getBoundingClientRect();
  if (y < box.top + EDGE_PIXELS) drag.form.scrollTop -= EDGE_PIXELS / 2;
  else if (y > box.bottom - EDGE_PIXELS) drag.form.scrollTop += EDGE_PIXELS / 2;
}

function finish() {
  clear();
  drag = null;
}
