// What a page says while it has nothing else to show: loading, an error, "not available", nothing found.
import { html } from "../core/dom.js";
import { address, currentRoute } from "../core/router.js";
import { Login } from "./login.js";

// Shows `children(data)` once there is data. An error while older data is shown stands above that data.
export function Loaded({ source, what, children }) {
  const { data, error } = source;
  if (error && error.status === 401) return html`<${Login} reason=${error.message} />`;
  if (error && error.status === 503 && data === undefined) return html`<p class="empty" role="status">${error.message} …</p>`;
  if (error && error.status === 404 && data === undefined) return html`<${NotFound} error=${error} />`;
  const failed = error && html`<p class="notice bad" role="alert">${what}: ${error.message}</p>`;
  if (data === undefined) return failed || html`<p class="empty" role="status">Loading ${what} …</p>`;
  return html`${failed}${children(data)}`;
}

// The server names what is spelt alike; a page of the same kind has each.
function NotFound({ error }) {
  const [section] = currentRoute().parts;
  return html`
    <p class="notice bad" role="alert">${error.message}</p>
    ${error.near.length > 0 && html`<p>Did you mean ${error.near.map((name, i) => [i > 0 && ", ",
      html`<a href=${address(section === "jobs" ? [section, ...name.split("/")] : [section, name])}>${name}</a>`])}?</p>`}
    <p><a href=${address([section])}>All ${section}</a></p>`;
}

export function NotAvailable({ reason }) {
  return html`<p class="unavailable">Not available${reason ? `: ${reason}` : ""}</p>`;
}

export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

const TONES = {
  succeeded: "info", failed: "bad", terminating: "warn", Releasing: "warn",
  Running: "good", Ready: "good", Open: "good", Bound: "good", Succeeded: "info", Completed: "info", running: "good", True: "good",
  Pending: "warn", Inqueue: "warn", waiting: "warn", pending: "warn", Unschedulable: "warn", SchedulingDisabled: "warn", Closing: "warn",
  Failed: "bad", NotReady: "bad", Unknown: "bad", impossible: "bad", never: "bad", Evicted: "bad", Closed: "bad",
};

// A state as a word on a coloured band. The word alone says it; the colour only helps the eye.
export function State({ value, tone }) {
  const first = String(value ?? "").split(",").map((part) => TONES[part.trim()]).find((found) => found && found !== "good");
  return html`<span class=${`state ${tone ?? first ?? TONES[value] ?? ""}`}>${value}</span>`;
}

// Names over values, in a row. Entries that are not there (false, "") are left out.
export function Facts({ facts }) {
  return html`<dl class="facts">${facts.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export function Figure({ value, name, tone = "" }) {
  return html`<div class=${`figure ${tone}`}><b>${value}</b><span>${name}</span></div>`;
}
