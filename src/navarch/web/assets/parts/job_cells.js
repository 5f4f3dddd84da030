// What a row of a job says about its pods, its place, its start and its cause; the grid of jobs and the overview show the same.
import { html } from "../core/dom.js";
import { moment, span } from "../core/format.js";
import { State } from "./notices.js";

// The name of the workload where there is one: a pod's group that no user made has a longer id.
export function shownName(row) {
  return row.namespace && row.name ? `${row.namespace}/${row.name}` : row.id;
}

// Pods that run or are done, of all it has or needs.
export function podsShort(row) {
  const all = row.pending + row.running + row.terminating + row.succeeded + row.failed;
  return `${row.running + row.succeeded}/${Math.max(row.minMember, all)}`;
}

export function podsLong(row) {
  return `${row.running} running, ${row.pending} pending, ${row.succeeded} succeeded, ${row.failed} failed, needs ${row.minMember}`;
}

export function Place({ row }) {
  if (row.never) return html`<${State} value="never" />`;
  return row.place === null || row.place === undefined ? "–" : `${row.place} of ${row.of}`;
}

// "in 12m – 1h": half of the chances lie before the first, 90 % before the second. The reason stands beside it where it is not known.
export function startText(row) {
  if (!row.start) return row.startUnknown ? html`<span class="note">unknown</span>` : "–";
  const [half, most] = row.start.map((value) => rough((moment(value).getTime() - Date.now()) / 1000));
  if (most === NOW) return "any moment";
  return half === most ? `in ${most}` : half === NOW ? `within ${most}` : `in ${half} – ${most}`;
}

const NOW = "now";

// An estimate has no more than one unit.
function rough(seconds) {
  return seconds < 10 ? NOW : span(seconds).split(" ")[0];
}

// The proof that it never starts says more than the last refusal.
export function causeText(row) {
  return row.never || row.cause;
}
