// What waits for people: the cards' forms, the list of all of them, and how many there are.

import { all, fragment, mergeRows, one, parse, post, Refused, say } from "./dom.js";
import { connection } from "./connection.js";
import { tell } from "./control.js";
import { lookAround } from "./family.js";
import { localize } from "./times.js";

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-wait]")) return;
  event.preventDefault();
  const card = form.closest("[data-ask]");
  if (card.ariaBusy === "true") return;
  card.ariaBusy = "true";
  const button = event.submitter || one("button", form);
  const fields = new FormData(form);
  fields.set(button.name, button.value);
  for (const place of all("[data-problem]", form)) place.textContent = "";
  for (const field of all("[aria-invalid]", form)) field.removeAttribute("aria-invalid");
  try {
    await post(form.getAttribute("action"), fields);
    say("Decided.");
  } catch (problem) {
    const place = problem instanceof Refused && problem.details.place;
    if (place) showProblem(form, place, problem.message);
    else tell(problem);
  } finally {
    card.ariaBusy = null;
    look();
  }
});

function showProblem(form, place, message) {
  const said = one(`[data-problem="${place}"]`, form);
  said.textContent = message;
  const field = one(`[name="q${place}"], [name="q${place}-other"]`, form);
  if (field.localName === "textarea") field.setAttribute("aria-invalid", "true");
  field.focus();
  say(message);
}

// The page as it is now, whatever the socket has brought so far.
function look() {
  recount();
  one("wait-inbox")?.refresh();
  lookAround();
  if (!connection.isOpen) one("live-session")?.pull();
}

document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-other]") || !event.target.value) return;
  const radio = one('input[type="radio"]', event.target.closest(".ask-other"));
  if (radio) radio.checked = true;
});

document.addEventListener("toggle", (event) => {
  if (event.target.matches?.(".deny[open]") && event.target.contains(document.activeElement)) one(".input", event.target).focus();
}, true);

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.closest("[data-questions]")) {
    event.preventDefault();
    const form = event.target.closest("form");
    form.requestSubmit(one("button", form));
  }
});

// How many wait: read again when a row says that something was asked or decided.
let counting = 0;
export function waitsChanged() {
  if (counting) return;
  counting = setTimeout(() => { counting = 0; recount(); one("wait-inbox")?.refresh(); }, 300);
}

connection.inboxChanged = () => { waitsChanged(); lookAround(); };

async function recount() {
  const answer = await fetch("/inbox/count", { headers: { Accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) return;
  const { count } = await answer.json();
  for (const badge of all("[data-waiting-count]")) {
    badge.textContent = count > 99 ? "99+" : count;
    badge.hidden = count === 0;
  }
}

// The list as it is now: cards that stay are not touched, so what is typed in them stays too.
class WaitInbox extends HTMLElement {
  connectedCallback() { localize(this); }

  async refresh() {
    if (this.isBusy) { this.again = true; return; }
    this.isBusy = true;
    try {
      do {
        this.again = false;
        this.merge(parse(await fragment(`/inbox/${location.search}`)));
      } while (this.again);
    } catch { /* the next change tries again */ } finally { this.isBusy = false; }
  }

  merge(fresh) {
    localize(fresh);
    const hadFocus = this.contains(document.activeElement);
    const list = one(".inbox", this);
    const wanted = all("[data-row]", fresh);
    if (!list || !wanted.length) {
      if (list || wanted.length) this.replaceChildren(fresh);
    } else mergeRows(list, wanted);
    if (hadFocus && !this.contains(document.activeElement)) (one("[data-ask]", this) || this).focus();
  }
}

customElements.define("wait-inbox", WaitInbox);
