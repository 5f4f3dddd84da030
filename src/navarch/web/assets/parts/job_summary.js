// Above the grid of jobs: how many jobs are in each state, as buttons that filter by it, and why no start time is known.
import { html, useMemo } from "../core/dom.js";
import { plain } from "../core/format.js";
import { setQuery } from "../core/router.js";

const STATES = ["waiting", "running", "terminating", "succeeded", "failed", "empty"];
const ALWAYS = new Set(["waiting", "running"]); // shown with 0 too: that none waits is worth a look

// accept(row): the reader's other filters. `partial`: how many jobs there are while only the first ones are loaded.
export function StateFilter({ rows, accept, state, partial }) {
  const tally = useMemo(() => counted(rows, accept), [rows, accept]);
  const all = [...tally.values()].reduce((sum, number) => sum + number, 0);
  const shown = STATES.filter((each) => ALWAYS.has(each) || tally.get(each) || each === state);
  const button = (value, text, number) => html`
    <button type="button" aria-pressed=${(state ?? "") === value ? "true" : "false"}
      onClick=${() => setQuery({ state: value })}>${text}${partial ? "" : html` <b>${plain(number)}</b>`}</button>`;
  return html`
    <div class="chips" role="group" aria-label="State">
      ${button("", "all", all)}${shown.map((each) => button(each, each, tally.get(each) ?? 0))}
      <span class="note" role="status">${partial ? `Loading ${plain(partial)} jobs …` : ""}</span>
    </div>`;
}

function counted(rows, accept) {
  const found = new Map();
  for (const row of rows.values()) if (accept(row)) found.set(row.state, (found.get(row.state) ?? 0) + 1);
  return found;
}

// Said once, not in each row: where no waiting job has a start time, the reason is the same for nearly all of them.
export function StartNote({ rows }) {
  const reason = useMemo(() => commonReason(rows), [rows]);
  return reason && html`<p class="note">Start times are unknown: ${reason}.</p>`;
}

function commonReason(rows) {
  const counts = new Map();
  for (const row of rows) {
    if (row.start) return "";
    if (row.startUnknown) counts.set(row.startUnknown, (counts.get(row.startUnknown) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? "";
}
