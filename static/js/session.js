// The open session: patches from the server, following, history, read marks.

import { all, fragment, morph, morphChildren, one, parse, post, say } from "./dom.js";
import { connection } from "./connection.js";
import { keepPlace } from "./control.js";
import { fillAsks } from "./family.js";
import { dayKey, dayName, localize, noteServerTime } from "./times.js";
import { isNews as zoneIsNews } from "./zone.js";

const NEAR_PIXELS = 48;

class LiveSession extends HTMLElement {
  connectedCallback() {
    this.id_ = this.dataset.session;
    this.seq = Number(this.dataset.head);
    this.scroller = one("[data-scroll]", this);
    this.transcript = one("[data-transcript]", this);
    this.pill = one("[data-new-pill]", this);
    this.fresh = new Set();
    this.isStill = this.hasAttribute("data-still");
    this.isFollowing = !this.isStill;
    this.frame = 0;
    localize(this);
    if (zoneIsNews) this.markDaysAnew();
    this.addEventListener("click", (event) => this.clicked(event));
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    addEventListener("pagehide", () => this.noteTheirPlace());
    const hasReturned = this.returnTo(history.state?.place);
    if (this.isStill) return;
    if (!hasReturned && !this.goToTarget()) this.toEnd();
    new ResizeObserver(() => { if (this.isFollowing) this.toEnd(); }).observe(this.scroller);
    this.baseTitle = document.title;
    document.addEventListener("visibilitychange", () => { if (!document.hidden) { document.title = this.baseTitle; this.markRead(); } });
    connection.watchSession(this.id_, this);
    this.markRead();
  }

  // ── Frames ──
  hear(seq, html, event) {
    if (seq <= this.seq) return;
    this.seq = seq;
    if (event?.created_at) noteServerTime(event.created_at);
    if (html) this.enqueue(html.patches);
    if (event && /^turn\.(completed|failed)$/.test(event.type)) this.ended(event.type);
  }

  // Patches of one moment are put on the page together, once a frame.
  enqueue(patches) {
    this.waiting = [...(this.waiting || []), ...patches];
    if (this.frame) return;
    const run = () => { this.frame = 0; this.flush(); };
    this.frame = document.hidden ? setTimeout(run, 100) : requestAnimationFrame(run);
  }

  flush() {
    const patches = this.waiting || [];
    this.waiting = [];
    const before = this.isFollowing ? null : this.anchor();
    patches.forEach((patch) => this.apply(patch));
    if (this.isFollowing) this.toEnd();
    else { this.hold(before); this.showPill(); }
    this.markRead();
  }

  apply(patch) {
    if (patch.op === "put") this.put(patch);
    else if (patch.op === "grow") this.grow(patch);
    else if (patch.op === "drop") this.item(patch.key)?.remove();
    else if (patch.op === "region") this.region(patch);
    else if (patch.op === "say") say(patch.text);
  }

  item(key) { return one(`[data-key="${CSS.escape(key)}"]`, this.transcript); }

  put({ key, html, after }) {
    const node = parse(html).firstElementChild;
    localize(parseHost(node));
    one("[data-empty]", this)?.remove();
    const old = this.item(key);
    if (old) {
      const hadFocus = old.contains(document.activeElement);
      const kept = morph(old, node);
      if (hadFocus && !kept.contains(document.activeElement)) kept.focus();  // a card that was decided
      kept.classList.remove("is-optimistic");
      this.place(kept, after);
      return;
    }
    this.place(node, after);
    this.markDay(node);
    if (!this.isFollowing) this.fresh.add(key);
  }

  // The server's order counts: also for a prompt that was shown before it was accepted.
  place(node, after) {
    const above = after && this.item(after);
    if (above) {
      let next = above.nextElementSibling;
      while (next?.classList.contains("day")) next = next.nextElementSibling;
      if (above.nextElementSibling !== node && next !== node) above.after(node);
      return;
    }
    if (!node.isConnected) this.transcript.insertBefore(node, one(".is-optimistic", this.transcript));
  }

  grow({ key, keep, html }) {
    const box = one("[data-grows]", this.item(key) || document.createElement("i"));
    if (!box) return;
    const wanted = [...parse(html).childNodes];
    const stay = box.children[keep - 1];
    const first = keep && stay ? [...box.childNodes].indexOf(stay) + 1 : 0;
    morphChildren(box, keep ? [document.createTextNode("\n"), ...wanted] : wanted, first);
  }

  region({ name, html }) { all(`[data-region="${name}"]`).forEach((region) => this.fill(region, name, html)); }

  fill(region, name, html) {
    if (name === "title" && one("form", region)) return;
    if (name === "asks") { fillAsks(region, html); return; }
    if (name === "foot" && one("[data-composer]", region) && html.includes("data-composer")) return;
    const settle = name === "strip" && keepPlace(region);
    morphChildren(region, [...parse(html).childNodes], 0);
    localize(region);
    if (settle) { settle(); this.dropQueued(region); }
    if (name === "title") this.baseTitle = document.title = `${one("h1", region)?.textContent.slice(0, 80)} · Sederunt`;
  }

  async refreshStrip() {
    const html = await fragment(`/s/${this.id_}/queue/`).catch(() => null);
    if (html !== null) this.region({ name: "strip", html: html.trim() });
  }

  // A prompt that waits stands in the queue, not also in the transcript.
  dropQueued(strip) {
    for (const row of all("[data-queued]:not(.is-next)", strip)) {
      const shown = this.item(row.dataset.queued);
      if (shown?.classList.contains("is-optimistic")) shown.remove();
    }
  }

  // ── Where the reader is ──
  get isAtEnd() { return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < NEAR_PIXELS; }

  scrolled() {
    this.isFollowing = this.isAtEnd && !this.isStill;
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.noteTheirPlace(), 200);
    if (this.isFollowing) { this.fresh.clear(); this.showPill(); this.markRead(); }
  }

  // Who opens another session and comes back finds the page where they left it.
  noteTheirPlace() {
    const before = this.isFollowing ? null : this.anchor();
    const place = before && { key: before.shown.dataset.key, offset: before.offset - this.top };
    history.replaceState({ ...history.state, place }, "");
  }

  get top() { return this.scroller.getBoundingClientRect().top; }

  returnTo(place) {
    if (!place) return false;
    this.isFollowing = false;
    this.findAgain(place);
    return true;
  }

  async findAgain({ key, offset }) {
    for (let link; !this.item(key) && (link = one("[data-load-earlier]", this));) if (!await this.loadEarlier(link)) break;
    const item = this.item(key);
    if (!item) { if (!this.isStill) this.toEnd(); return; }
    this.scroller.scrollTop += item.getBoundingClientRect().top - this.top - offset;
    this.isFollowing = this.isAtEnd && !this.isStill;
  }

  toEnd() { this.isFollowing = true; this.scroller.scrollTop = this.scroller.scrollHeight; }

  anchor() {
    const top = this.scroller.getBoundingClientRect().top;
    const shown = all("[data-key]", this.transcript).find((child) => child.getBoundingClientRect().bottom > top);
    return shown && { shown, offset: shown.getBoundingClientRect().top };
  }

  hold(before) {
    if (!before?.shown.isConnected) return;
    const moved = before.shown.getBoundingClientRect().top - before.offset;
    if (moved) this.scroller.scrollTop += moved;
  }

  showPill() {
    if (!this.pill) return;
    this.pill.hidden = this.fresh.size === 0;
    one("[data-new-count]", this.pill).textContent = `${this.fresh.size} new`;
  }

  goToTarget() {
    const target = /^#(m|ask-)/.test(location.hash) && document.getElementById(location.hash.slice(1));
    if (!target) return false;
    target.classList.add("is-target");
    target.scrollIntoView({ block: "center" });
    this.isFollowing = this.isAtEnd;
    return true;
  }

  async clicked(event) {
    if (event.target.closest("a[href]")) this.noteTheirPlace();
    const earlier = event.target.closest("[data-load-earlier]");
    if (earlier) {
      event.preventDefault();
      if (!earlier.ariaDisabled) await this.loadEarlier(earlier);
      return;
    }
    if (event.target.closest("[data-new-pill]")) { this.fresh.clear(); this.toEnd(); this.showPill(); this.markRead(); }
  }

  async loadEarlier(link) {
    link.ariaDisabled = "true";
    try {
      const content = parse(await fragment(link.href));
      localize(content);
      const before = this.anchor();
      const box = link.closest("[data-earlier]");
      this.isFollowing = false;
      const day = all(".day", content).pop();
      if (day && box.nextElementSibling?.dataset.day === day.dataset.day) box.nextElementSibling.remove();
      box.replaceWith(content);
      this.hold(before);
      return true;
    } catch {
      link.ariaDisabled = null;
      link.textContent = "Load earlier: try again";
      return false;
    }
  }

  // A day mark above the first prompt of a new day.
  markDay(node) {
    if (node.dataset.kind !== "prompt") return;
    const moment = new Date(one("time", node)?.dateTime || Date.now());
    const key = dayKey(moment);
    const shown = all(".day", this.transcript).pop();
    if (shown?.dataset.day >= key) return;
    node.before(this.dayMark(moment));
  }

  dayMark(moment) {
    const mark = document.createElement("div");
    mark.className = "day";
    mark.dataset.day = dayKey(moment);
    mark.append(Object.assign(document.createElement("span"), { textContent: dayName(moment) }));
    return mark;
  }

  // As the server marks them: above the first item, and above each prompt of a new day.
  markDaysAnew() {
    const marks = all(".day", this.transcript);
    const first = marks[0]?.nextElementSibling;
    const at = first && one("time", first)?.dateTime;
    if (!at) return;
    marks.forEach((mark) => mark.remove());
    first.before(this.dayMark(new Date(at)));
    let shown = dayKey(new Date(at));
    for (const prompt of all('[data-kind="prompt"]', this.transcript)) {
      const moment = new Date(one("time", prompt)?.dateTime || Date.now());
      if (prompt !== first && dayKey(moment) !== shown) prompt.before(this.dayMark(moment));
      shown = dayKey(moment);
    }
  }

  // ── Read marks, title ──
  markRead() {
    if (document.hidden || !this.isFollowing || this.seq <= Number(this.dataset.read) || this.reader) return;
    this.reader = setTimeout(async () => {
      this.reader = 0;
      const seq = this.seq;
      if (seq <= Number(this.dataset.read)) return;
      this.dataset.read = seq;
      await post(`/s/${this.id_}/read`, { seq }).catch(() => {});
    }, connection.isOpen ? 1200 : 4000);
  }

  ended(type) { if (document.hidden) document.title = `${type === "turn.failed" ? "Failed" : "Done"} · ${this.baseTitle}`; }

  draftChanged(revision) { one("composer-box", this)?.refresh(this.id_, revision); }

  refused(code) {
    if (code === "cursor_ahead") location.reload();
    else if (code === "not_found" || code === "session_deleted") { this.seq = 0; location.href = "/"; }
  }

  // The way without a socket.
  async pull() {
    if (this.pulling) { this.pullAgain = true; return; }
    this.pulling = true;
    try {
      do {
        this.pullAgain = false;
        const answer = await fetch(`/s/${this.id_}/live?after=${this.seq}`, { headers: { Accept: "application/json" } });
        if (!answer.ok) break;
        const { patches, seq, more } = await answer.json();
        this.seq = Math.max(this.seq, seq);
        this.enqueue(patches);
        this.pullAgain ||= more;
        await new Promise((done) => setTimeout(done, 80));
      } while (this.pullAgain);
    } catch { /* the next hint tries again */ } finally { this.pulling = false; }
  }

  // ── Sending ──
  // The prompt as the sender sees it until the server has it.
  showSending(text) {
    const node = one('[data-template="prompt"]').content.firstElementChild.cloneNode(true);
    one(".prompt-text", node).textContent = text;
    one("[data-empty]", this)?.remove();
    this.transcript.append(node);
    this.fresh.clear();
    this.showPill();
    this.toEnd();
    return node;
  }

  accepted(node, { turn, seq }) {
    const shown = this.item(turn);
    if (shown && shown !== node) { node.remove(); return; }
    node.dataset.key = turn;
    if (!node.isConnected) return;
    const isQueued = one(`[data-queued="${turn}"]:not(.is-next)`, this);
    if (isQueued) { node.remove(); return; }
    one("[data-word]", node).textContent = one("[data-busy]", this) ? "Queued" : "Sent";
    if (seq <= this.seq && !shown) setTimeout(() => { if (node.classList.contains("is-optimistic")) this.pull(); }, 2000);
  }
}

const parseHost = (node) => { const host = document.createDocumentFragment(); host.append(node); return host; };

customElements.define("live-session", LiveSession);
