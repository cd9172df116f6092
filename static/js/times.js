// Times in the reader's zone. They come from the server; this clock only counts how long ago.

const DAY = 86400;

export function age(seconds) {
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < DAY) return `${Math.floor(seconds / 3600)}h`;
  if (seconds < 100 * DAY) return `${Math.floor(seconds / DAY)}d`;
  return `${Math.floor(seconds / (7 * DAY))}w`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const whole = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const month = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long" });
const monthAndYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric" });

// A wrong clock here must not put anything into the future: the server's is the measure.
let offset = 0;
export function noteServerTime(iso) {
  offset = Math.max(offset, Date.parse(iso) - Date.now());
}
export function now() { return Date.now() + offset; }

export async function learnServerTime() {
  const answer = await fetch("/healthz", { method: "HEAD", cache: "no-store" }).catch(() => null);
  const date = answer && Date.parse(answer.headers.get("Date"));
  if (date) offset = date - Date.now();
}

function textOf(moment, style) {
  if (style === "clock") return clock.format(moment);
  if (style === "date") return minute.format(moment).replace(" at ", ", ");
  if (style === "left") { const ahead = (moment - now()) / 1000; return ahead > 10 ? `${age(ahead)} left` : "no time left"; }
  return age(Math.max(0, (now() - moment) / 1000));
}

export function localize(root) {
  for (const time of root.querySelectorAll?.("time[data-as]") || []) {
    const moment = new Date(time.dateTime);
    const text = textOf(moment, time.dataset.as);
    if (time.textContent !== text) time.textContent = text;
    const title = whole.format(moment).replace(" at ", ", ");
    if (time.title !== title) time.title = title;
  }
  root.querySelectorAll?.("elapsed-time").forEach((time) => time.tick?.());
}

export function dayKey(moment) {
  const pad = (number) => String(number).padStart(2, "0");
  return `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())}`;
}

export function dayName(moment) {
  const today = new Date(now());
  const yesterday = new Date(now() - DAY * 1000);
  if (dayKey(moment) === dayKey(today)) return "Today";
  if (dayKey(moment) === dayKey(yesterday)) return "Yesterday";
  return (moment.getFullYear() === today.getFullYear() ? month : monthAndYear).format(moment);
}

export function elapsed(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes} min ${String(whole % 60).padStart(2, "0")} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

class ElapsedTime extends HTMLElement {
  connectedCallback() { this.tick(); this.timer = setInterval(() => this.tick(), 1000); }
  disconnectedCallback() { clearInterval(this.timer); }
  tick() { this.textContent = elapsed((now() - Date.parse(this.dataset.since)) / 1000); }
}
customElements.define("elapsed-time", ElapsedTime);
