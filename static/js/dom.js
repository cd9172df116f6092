// Small helpers: parsing markup, changing only what differs, posting forms.

export const one = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

export function cookie(name) {
  const found = document.cookie.split("; ").find((part) => part.startsWith(name + "="));
  return found ? decodeURIComponent(found.slice(name.length + 1)) : "";
}

export function keepCookie(name, value) {
  const secure = location.protocol === "https:" ? ";secure" : "";
  document.cookie = `${name}=${encodeURIComponent(value)};path=/;max-age=31536000;samesite=lax${secure}`;
}

// What the reader opened stays open, whatever the server says.
const KEPT = new Set(["open", "data-kept"]);

function morphAttributes(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !(KEPT.has(name) && from.localName === "details")) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !(name === "value" && from === document.activeElement)) from.setAttribute(name, value);
  }
}

// Makes `from` equal to `to` by the fewest steps; equal nodes are not touched, so a selection,
// an opened fold and the focus survive.
export function morph(from, to) {
  if (from.isEqualNode(to)) return from;
  if (from.nodeType !== 1 || to.nodeType !== 1 || from.localName !== to.localName ||
      (from.dataset && from.dataset.key !== to.dataset.key)) {
    from.replaceWith(to);
    return to;
  }
  morphAttributes(from, to);
  morphChildren(from, [...to.childNodes], 0);
  return from;
}

// Children from the `first` node on become `wanted`.
export function morphChildren(parent, wanted, first) {
  const present = [...parent.childNodes].slice(first);
  wanted.forEach((node, place) => {
    const old = present[place];
    if (!old) parent.append(node);
    else if (old.nodeType === 3 && node.nodeType === 3) { if (old.data !== node.data) old.data = node.data; }
    else morph(old, node);
  });
  present.slice(wanted.length).forEach((node) => node.remove());
}

// The rows of a list by their `data-row`, in the wanted order; those that stay are not touched.
export function mergeRows(list, wanted) {
  const keys = new Set(wanted.map((row) => row.dataset.row));
  for (const row of all("[data-row]", list)) if (!keys.has(row.dataset.row)) row.remove();
  let place = list.firstElementChild;
  for (const row of wanted) {
    const old = one(`[data-row="${CSS.escape(row.dataset.row)}"]`, list);
    if (!old) list.insertBefore(row, place);
    else if (old === place) place = place.nextElementSibling;
    else list.insertBefore(old, place);
  }
}

export class Refused extends Error {
  constructor(status, body) {
    super(body?.error?.message || "The server did not answer.");
    this.status = status;
    this.code = body?.error?.code || "";
    this.details = body?.error?.details || {};
  }
}

// A form post that answers JSON. Throws Refused for a no, TypeError or AbortError for no answer.
export async function post(url, fields = {}, { key = "", seconds = 10, keepalive = false } = {}) {
  const body = new URLSearchParams(fields);
  body.set("csrfmiddlewaretoken", one("[name=csrfmiddlewaretoken]")?.value || cookie("csrftoken"));
  const headers = { Accept: "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  const answer = await fetch(url, { method: "POST", body, headers, keepalive, signal: AbortSignal.timeout(seconds * 1000) });
  const data = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(answer.status, data);
  return data;
}

export async function fragment(url) {
  const answer = await fetch(url, { headers: { "X-Fragment": "1" }, signal: AbortSignal.timeout(15000) });
  if (!answer.ok) throw new Refused(answer.status, null);
  return answer.text();
}

export function say(text) {
  const region = one("[data-status]");
  if (region && region.textContent !== text) region.textContent = text;
}

export function alarm(text) {
  const region = one("[data-alert]");
  if (region) region.textContent = text;
}

export function copyText(text, button) {
  navigator.clipboard?.writeText(text).then(() => {
    say("Copied.");
    if (!button) return;
    button.classList.add("is-copied");
    button.title = "Copied";
    setTimeout(() => { button.classList.remove("is-copied"); button.title = "Copy"; }, 1500);
  });
}
