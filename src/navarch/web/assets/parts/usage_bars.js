// What queues held over time, as bars, the newest at the right. Loaded again each half minute. What is not known has no bar.
import { get } from "../core/api.js";
import { html, useEffect, useState } from "../core/dom.js";
import { amount, resourceName, span } from "../core/format.js";

const BAR = 3;
const GAP = 1;

// The answer of `usage`; null until it is there.
export function useUsage(query) {
  const [usage, setUsage] = useState(null);
  const asked = JSON.stringify(query);
  useEffect(() => {
    const abort = new AbortController();
    const load = () => get("usage", query, abort.signal).then(setUsage, () => {}); // an error shows in the page itself
    load();
    const soon = setTimeout(load, 4000); // what the scheduler knew before comes a moment after the first question
    const timer = setInterval(load, 30_000);
    return () => {
      abort.abort();
      clearTimeout(soon);
      clearInterval(timer);
    };
  }, [asked]);
  return usage;
}

// Only where it is less than the whole hour: neither the dashboard nor the scheduler watched longer.
export function knownSpan(rows, seconds) {
  const steps = Math.max(0, ...rows.map(({ held }) => held.filter((value) => value !== null).length));
  const all = rows[0]?.held.length ?? 0;
  return steps > 0 && steps < all ? `, known for ${span(steps * seconds)}` : "";
}

export function heldOf(usage, queue, resource) {
  return usage?.rows.find((row) => row.queue === queue && row.resource === resource)?.held ?? null;
}

// `owed` is a line across; `whole` is the value at the top. `bars`: how many are drawn; each stands for the largest of its values.
export function UsageBars({ held, seconds, resource, name, whole, owed = 0, height = 20, bars = 120 }) {
  const values = folded(held ?? [], bars);
  const known = values.filter((value) => value !== null);
  if (!known.length) return html`<span class="note">–</span>`;
  const top = Math.max(whole, owed, ...known) || 1;
  const width = values.length * (BAR + GAP) - GAP;
  const since = span((held.length - held.findIndex((value) => value !== null)) * seconds);
  const show = (value) => amount(resource, value);
  const label = `${name} held ${show(Math.min(...known))} to ${show(Math.max(...known))} ${resourceName(resource)} in the last ${since}, now ${show(known.at(-1))}`;
  const y = (value) => height - (height * Math.min(value, top)) / top;
  return html`
    <svg class="usage" viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label=${label}>
      <title>${label}</title>
      ${values.map((value, i) => value > 0 && html`<rect class=${owed && value > owed ? "over" : ""}
        x=${i * (BAR + GAP)} y=${Math.min(y(value), height - 1)} width=${BAR}
        height=${Math.max(height - y(value), 1)} />`)}
      ${owed > 0 && html`<line x1="0" x2=${width} y1=${y(owed)} y2=${y(owed)} />`}
    </svg>`;
}

function folded(held, bars) {
  const each = Math.max(1, Math.ceil(held.length / bars));
  const found = [];
  for (let end = held.length; end > 0; end -= each) {
    const known = held.slice(Math.max(0, end - each), end).filter((value) => value !== null);
    found.unshift(known.length ? Math.max(...known) : null);
  }
  return found;
}
