// One notice at the bottom right. Its time stands still while it is hovered or focused.

import { one, say } from "./dom.js";

class ToastArea extends HTMLElement {
  show({ text, strong = "", more = "", seconds, undo }) {
    this.close();
    const node = one('[data-template="toast"]').content.firstElementChild.cloneNode(true);
    one("[data-text]", node).append(text, Object.assign(document.createElement("b"), { textContent: strong }));
    one("[data-more]", node).textContent = more;
    const button = one("[data-undo]", node);
    button.hidden = !undo;
    node.classList.toggle("is-notice", !undo);
    button.addEventListener("click", () => this.undo());
    one("[data-close]", node).addEventListener("click", () => this.close());
    node.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
    this.current = { node, undo, left: seconds, total: Math.max(seconds, 8) };
    this.append(node);
    say(`${text}${strong}. ${undo ? "Undo is offered." : ""}`);
    this.last = performance.now();
    this.tick();
    this.timer = setInterval(() => this.tick(), 100);
  }

  get isHeld() { return this.current.node.matches(":hover, :focus-within"); }

  tick() {
    const moment = performance.now();
    if (!this.isHeld) this.current.left -= (moment - this.last) / 1000;
    this.last = moment;
    const { node, left, total } = this.current;
    if (left <= 0) { this.close(); return; }
    one("[data-seconds]", node).textContent = `${Math.ceil(left)} s`;
    one("progress", node).value = (100 * left) / total;
  }

  async undo() {
    const { undo, node } = this.current || {};
    if (!undo) return;
    clearInterval(this.timer);
    try { await undo(); this.close(); say("Undone."); }
    catch (problem) { one("[data-more]", node).textContent = `${problem.message || "The server did not answer."} Try again.`; this.current.left = 8; this.last = performance.now(); this.timer = setInterval(() => this.tick(), 100); }
  }

  close() {
    clearInterval(this.timer);
    const hadFocus = this.current?.node.contains(document.activeElement);
    this.current?.node.remove();
    this.current = null;
    if (hadFocus) (one("textarea") || one("#main"))?.focus();
  }
}
customElements.define("toast-area", ToastArea);

export const toast = (notice) => one("toast-area").show(notice);
export const undoLast = () => one("toast-area").undo();
export const hasToast = () => !!one("toast-area")?.current?.undo;
