// The composer: grows, keeps its draft on the server, sends, and keeps the text when that fails.

import { alarm, one, post, Refused, say } from "./dom.js";

const SAVE_AFTER_MS = 600;
const tabs = "BroadcastChannel" in window ? new BroadcastChannel("drafts") : null;

class ComposerBox extends HTMLElement {
  connectedCallback() {
    this.form = one("form", this);
    this.area = one("textarea", this);
    this.note = one("[data-note]", this);
    this.revision = Number(this.dataset.revision);
    this.saved = this.area.value;
    this.hint = this.note.textContent;
    this.area.addEventListener("input", () => this.changed());
    this.area.addEventListener("keydown", (event) => this.pressed(event));
    this.form.addEventListener("submit", (event) => this.submitted(event));
    addEventListener("pagehide", () => this.save(true));
    tabs?.addEventListener("message", ({ data }) => this.fromOtherTab(data));
    this.grow();
  }

  get session() { return this.closest("live-session"); }

  grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.area.style.height = "auto";
    this.area.style.height = `${this.area.scrollHeight}px`;
  }

  pressed(event) {
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    if (event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    const steer = (event.ctrlKey || event.metaKey) && one("[data-steer]", this);
    this.form.requestSubmit(steer?.offsetParent ? steer : undefined);
  }

  changed() {
    this.grow();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  // Another tab of this person wrote: take it, unless something newer stands here.
  fromOtherTab({ place, text, revision }) {
    if (place !== this.dataset.draftUrl || revision <= this.revision) return;
    const untouched = this.area.value === this.saved;
    this.revision = revision;
    this.saved = text;
    if (untouched) { this.area.value = text; this.grow(); }
  }

  // Written on another device: read it, unless it is our own write that comes back.
  async refresh(session, revision) {
    if (revision <= this.revision || this.saving || this.isSending) return;
    const answer = await fetch(`/v1/sessions/${session}/draft`).catch(() => null);
    if (answer?.ok) this.fromOtherTab({ ...(await answer.json()), place: this.dataset.draftUrl });
  }

  // All that was sent or written here is on the server.
  async settled() {
    await this.line;
    while (this.saving) await new Promise((done) => setTimeout(done, 30));
    for (let tries = 0; tries < 3 && this.area.value !== this.saved; tries += 1) await this.save();
  }

  // A queued prompt that is edited: its text stands here, before what was written meanwhile.
  takeBack({ text, revision }) {
    if (revision > this.revision) {
      const since = this.area.value.startsWith(this.saved) ? this.area.value.slice(this.saved.length) : "";
      this.area.value = text + (since && !this.saved ? "\n\n" : "") + since;
      Object.assign(this, { revision, saved: text });
      this.tellTabs();
      this.changed();
    }
    this.hint = "Keeps its place";
    this.note.textContent = this.hint;
    this.area.focus();
  }

  tellTabs() { tabs?.postMessage({ place: this.dataset.draftUrl, text: this.saved, revision: this.revision }); }

  async save(isLast = false) {
    clearTimeout(this.timer);
    const text = this.area.value;
    if (text === this.saved || this.saving || this.isSending) return;
    this.saving = true;
    try {
      const { revision } = await post(this.dataset.draftUrl, { text, revision: this.revision }, { keepalive: isLast });
      this.revision = revision;
      this.saved = text;
      if (!text.trim()) this.hint = "";
      this.note.textContent = this.hint;
      this.tellTabs();
    } catch (problem) {
      if (problem instanceof Refused && problem.code === "stale_version") this.merge(problem.details.current);
      else this.note.textContent = "Kept here. The server has it later.";
    } finally {
      this.saving = false;
    }
    if (!isLast && this.area.value !== this.saved) this.changed();
  }

  merge(current) {
    this.revision = current.revision;
    this.saved = current.text;
    if (!this.area.value) { this.area.value = current.text; this.grow(); }
  }

  submitted(event) {
    const session = this.session;
    const text = this.area.value;
    if (!text.trim()) { event.preventDefault(); return; }
    one("[name=draft_revision]", this.form).value = this.revision;
    if (!session) { this.isSending = true; return; }
    event.preventDefault();
    clearTimeout(this.timer);
    const attempt = { text, key: crypto.randomUUID?.() || String(Math.random()).slice(2), revision: this.revision,
      delivery: event.submitter?.value === "steer" ? "steer" : "queue" };
    this.area.value = this.saved = this.hint = this.note.textContent = "";
    this.grow();
    this.sendInTurn(session, session.showSending(text), attempt);
  }

  // One after the other: the order of sending is the order of the queue.
  sendInTurn(session, node, attempt) {
    this.line = (this.line || Promise.resolve()).then(() => this.send(session, node, attempt));
  }

  async send(session, node, attempt) {
    this.mark(node, "Sending", "");
    this.isSending = true;
    try {
      const fields = { text: attempt.text, draft_revision: attempt.revision, delivery: attempt.delivery };
      const receipt = await post(this.form.action, fields, { key: attempt.key });
      // What was never saved was not spent: then the revision is what it was.
      this.revision = Math.max(this.revision, Math.min(receipt.revision, attempt.revision + 1));
      this.tellTabs();
      session.accepted(node, receipt);
    } catch (problem) {
      this.notSent(session, node, attempt, problem);
    } finally {
      this.isSending = false;
    }
  }

  notSent(session, node, attempt, problem) {
    const why = problem instanceof Refused ? problem.message : "The server did not answer in 10 s.";
    this.mark(node, "Not sent", why);
    alarm(`Not sent. ${why}`);
    node.classList.add("is-not-sent");
    one(".actions", node).hidden = false;
    one("[data-retry]", node).onclick = () => {
      node.classList.remove("is-not-sent");
      one(".actions", node).hidden = true;
      this.sendInTurn(session, node, attempt);
    };
    one("[data-edit]", node).onclick = () => {
      this.area.value = [attempt.text, this.area.value].filter(Boolean).join("\n\n");
      node.remove();
      this.area.focus();
      this.changed();
    };
  }

  mark(node, word, why) {
    one("[data-word]", node).textContent = word;
    one("[data-why]", node).textContent = why;
    one(".sending", node).hidden = word !== "Sending";
    one(".failed", node).hidden = word !== "Not sent";
    if (word === "Sending") say("Sending.");
  }
}
customElements.define("composer-box", ComposerBox);
