// One socket per tab. It says where the page is, and the server goes on from there; where no
// socket gets through, a stream of hints (SSE) and patches over HTTP do the same.

import { one } from "./dom.js";

const HANDSHAKE_SECONDS = 10;
const SILENCE_SECONDS = 45;
const BLOCKED_AFTER = 2; // handshakes without an answer

class Connection extends EventTarget {
  sessions = new Map(); // id → element with .seq, .apply(frame), .refused(code)
  workspace = null;
  roots = []; // whose children's rows are told too
  tries = 0;
  failed = 0;
  stopped = false;
  wasOpen = false;

  watchSession(id, follower) { this.sessions.set(id, follower); this.tell(subscription(id, follower)); }
  watchTrees(roots) { this.roots = roots; if (this.workspace) this.tell(trees(this.workspace.id, roots)); }
  watchWorkspace(id, follower) { this.workspace = { id, follower }; this.tell(listing(id)); }

  start() {
    addEventListener("online", () => this.retryNow());
    addEventListener("pageshow", (event) => { if (event.persisted) this.retryNow(); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden && !this.isOpen) this.retryNow(); });
    one("[data-try-now]")?.addEventListener("click", () => this.retryNow());
    this.open();
  }

  get isOpen() { return this.socket?.readyState === WebSocket.OPEN; }

  tell(message) { if (this.isOpen && message) this.socket.send(JSON.stringify(message)); }

  open() {
    if (this.stopped) return;
    clearTimeout(this.timer);
    this.socket?.close();
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v1/ws`);
    this.socket = socket;
    const handshake = setTimeout(() => { this.failed += 1; socket.close(); this.lost(socket, 0); }, HANDSHAKE_SECONDS * 1000);
    socket.onopen = () => { clearTimeout(handshake); if (socket === this.socket) this.opened(); };
    socket.onmessage = (message) => { if (socket === this.socket) this.hear(JSON.parse(message.data)); };
    socket.onclose = (event) => { clearTimeout(handshake); this.lost(socket, event.code); };
  }

  opened() {
    this.failed = 0;
    for (const [id, follower] of this.sessions) this.tell(subscription(id, follower));
    if (this.workspace) { this.tell(listing(this.workspace.id)); this.tell(trees(this.workspace.id, this.roots)); }
    this.wasOpen = true;
    this.heard();
  }

  heard() {
    clearTimeout(this.silence);
    clearTimeout(this.pinger);
    this.pinger = setTimeout(() => this.tell({ type: "ping" }), 20000);
    const socket = this.socket;
    this.silence = setTimeout(() => { socket.close(); this.lost(socket, 0); }, SILENCE_SECONDS * 1000);
  }

  hear(frame) {
    this.heard();
    if (frame.type === "ready" || frame.type === "pong") { this.tries = 0; this.show(""); }
    const follower = this.sessions.get(frame.session);
    if (frame.type === "event") follower?.hear(frame.seq, frame.html, frame.event);
    else if (frame.type === "draft") follower?.draftChanged?.(frame.revision);
    else if (frame.type === "inbox") this.inboxChanged?.();
    else if (frame.type === "caught_up") follower?.caughtUp?.(frame.seq);
    else if (frame.type === "error" && follower) follower.refused?.(frame.code);
    else if (frame.type === "sidebar") this.workspace?.follower.hear(frame.rows, frame.removed);
    else if (frame.type === "resync") this.workspace?.follower.resync();
  }

  lost(socket, code) {
    if (socket !== this.socket || this.stopped) return;
    clearTimeout(this.silence);
    clearTimeout(this.pinger);
    this.socket = null;
    if (code === 4401) { this.stop(); return; }
    if (!this.wasOpen && code === 1006) this.failed += 1;
    if (this.failed >= BLOCKED_AFTER) this.fallBack();
    this.tries += 1;
    if (this.tries > 1 || !this.wasOpen || code !== 1012) this.show("reconnecting");
    const pause = Math.min(30000, 400 * 2 ** Math.min(this.tries, 7)) * (0.5 + Math.random() / 2);
    this.timer = setTimeout(() => this.open(), this.source ? 60000 : pause);
  }

  retryNow() {
    if (this.stopped || this.isOpen || this.socket?.readyState === WebSocket.CONNECTING) return;
    this.tries = 0;
    this.open();
  }

  stop() {
    this.stopped = true;
    this.source?.close();
    this.show("signed-out");
  }

  // SSE says that something is new; the patches come by an ordinary request.
  fallBack() {
    const [entry] = this.sessions;
    if (this.source || !entry) return;
    const [id, follower] = entry;
    this.source = new EventSource(`/v1/sessions/${id}/events/stream?after=${follower.seq}`);
    this.source.onopen = () => this.show("");
    this.source.onerror = () => this.show("reconnecting");
    const pull = () => follower.pull();
    for (const type of FALLBACK_TYPES) this.source.addEventListener(type, pull);
    follower.pull();
  }

  show(state) {
    const banner = one("[data-connection]");
    if (!banner) return;
    clearTimeout(this.shower);
    if ((banner.dataset.state || "") === state) return;
    const put = () => {
      banner.dataset.state = state;
      banner.hidden = !state;
      const text = one("[data-connection-text]", banner);
      const button = one("[data-try-now]", banner);
      if (state === "signed-out") {
        text.innerHTML = "<b>You are signed out.</b> Sign in again to go on; your text is kept here.";
        const link = document.createElement("a");
        link.className = "button is-small";
        link.href = `/sign-in/?next=${encodeURIComponent(location.pathname)}`;
        link.textContent = "Sign in again";
        button.replaceWith(link);
      } else if (state) {
        const [follower] = this.sessions.values();
        text.innerHTML = "<b>Reconnecting…</b> ";
        text.append(follower ? `You have everything up to #${follower.seq}. The work goes on without this tab.` : "The list may be behind.");
      }
    };
    if (state === "reconnecting") this.shower = setTimeout(put, 700);
    else put();
  }
}

const FALLBACK_TYPES = ["user.message", "turn.started", "turn.completed", "turn.failed", "turn.cancelled", "turn.recovering", "turn.withdrawn", "turn.superseded", "queue.changed",
  "attempt.started", "step.checkpoint", "agent.message_delta", "agent.message", "agent.thinking_delta", "agent.thinking", "agent.tool_use",
  "agent.tool_result", "session.updated", "session.archived", "session.unarchived", "session.status_idle", "session.status_rescheduled", "session.status_running",
  "session.status_terminated", "session.visibility_changed", "session.paused", "session.resumed", "agent.question", "agent.question_closed", "user.tool_confirmation",
  "user.question_response", "turn.waiting", "child.started", "child.awaited", "child.result"];

const subscription = (id, follower) => ({ type: "subscribe", session: id, after: follower.seq, as: "html" });

// A cursor always: rows may have changed between the page's making and now.
const listing = (id) => ({ type: "sidebar", workspace: id, cursor: "page" });

const trees = (id, roots) => ({ type: "trees", workspace: id, sessions: roots });

export const connection = new Connection();
