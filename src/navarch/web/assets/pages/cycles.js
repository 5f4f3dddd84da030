// Cycles: how long the last cycles took and what they decided, and the recordings that can be opened.
import { html, useMemo } from "../core/dom.js";
import { bytes, clock, plain, span } from "../core/format.js";
import { useTopic } from "../core/live.js";
import { address } from "../core/router.js";
import { Bar } from "../parts/bars.js";
import { Empty, Figure, Loaded, NotAvailable } from "../parts/notices.js";
import { Plot } from "../parts/plot.js";
import { Table, bar, num } from "../parts/table.js";

const MOST = 200;
const read = (answer) => answer;
const merge = (data, change) => {
  const known = new Set(change.changed.map((cycle) => cycle.number));
  return { ...data, cycles: [...change.changed, ...(data.cycles ?? []).filter((cycle) => !known.has(cycle.number))].slice(0, MOST) };
};

export function CyclesPage() {
  const source = useTopic("cycles", {}, read, merge);
  return html`
    <div class="page-head"><h1 tabindex="-1">Cycles</h1></div>
    <${Loaded} source=${source} what="cycles">${(data) => html`
      ${data.cycles ? html`<${Recent} cycles=${data.cycles} />` : html`<section class="panel"><h2>Recent cycles</h2>
        <${NotAvailable} reason=${data.scheduler.reason} /></section>`}
      <${Recordings} recordings=${data.recordings} />`}
    <//>`;
}

function Recent({ cycles }) {
  const series = useMemo(() => [longest(cycles)], [cycles]);
  const parts = useMemo(() => phases(cycles), [cycles]);
  const most = cycles.reduce((longest, each) => Math.max(longest, each.seconds), 0);
  if (!cycles.length) return html`<section class="panel"><h2>Recent cycles</h2><${Empty}>No cycle has run yet.<//></section>`;
  return html`
    <div class="panels two even">
      <section class="panel"><h2>Duration of cycles <span class="note">the last ${plain(cycles.length)}</span></h2>
        <div class="figures"><${Figure} value=${span(quantile(cycles, 0.5))} name="p50" />
          <${Figure} value=${span(quantile(cycles, 0.99))} name="p99" /><${Figure} value=${span(most)} name="longest" />
          <${Figure} value=${plain(sum(cycles, "binds"))} name="binds" /><${Figure} value=${plain(sum(cycles, "evictions"))} name="evictions" />
          </div>
        <${Plot} label="Duration of cycles" series=${series} show=${span} time showX=${clock} height=${290} />
      </section>
      <section class="panel"><h2>Where the time goes <span class="note">by action and plugin, over these cycles</span></h2>
        <${Table} label="Time by part of the cycle" tall
          columns=${["Part", bar("share"), num("mean"), num("longest")]}>${parts.map((each) => html`<tr
          key=${each.name} class="middle">
          <td>${each.name}</td><td class="wide-bar">
          <${Bar} thin parts=${[{ value: each.total, kind: "used" }]} whole=${parts[0].total}
            label=${`${each.name}: ${span(each.total)} in all`} />
          </td><td class="num">${span(each.mean)}</td><td class="num">${span(each.most)}</td></tr>`)}<//>
      </section>
      <section class="panel wide"><h2>Recent cycles <span class="note">newest first</span></h2>
        <${Table} label="Recent cycles" tall
          columns=${["Cycle", "time", bar("duration"), num("took"), num("tried"), num("binds"), num("evictions"), num("nominations")]}>${cycles.map((each) => html`
            <tr key=${each.number} class="middle"><td>${plain(each.number)}</td><td class="nowrap">${clock(each.time)}</td>
              <td class="wide-bar">
              <${Bar} thin parts=${[{ value: each.seconds, kind: "used" }]} whole=${most} label=${timingText(each)} /></td>
            <td class="num">${span(each.seconds)}</td><td class="num">${plain(each.tried)}</td>
              <td class="num">${plain(each.binds)}</td><td class="num">${plain(each.evictions)}</td>
              <td class="num">${plain(each.nominations)}</td></tr>`)}
          <//>
      </section>
    </div>`;
}

function Recordings({ recordings }) {
  return html`
    <section class="panel">
      <h2>Recorded cycles <span class="note">open one to see what it decided, and what another policy would decide</span></h2>
      ${!recordings?.length ? html`<${Empty}>None. <code>navarch run --record DIR</code> writes them, <code>navarch web --recordings DIR</code> shows them.<//>` : html`
        <${Table} label="Recorded cycles" tall columns=${["Recording", "time", num("size")]}>${recordings.map((each) => html`<tr
          key=${each.id}>
          <td class="anywhere">
          <a href=${address(["cycles", each.id])}>${each.id === "last" ? "the last cycle of the scheduler" : each.id}</a></td>
          <td>${clock(each.time)}</td><td class="num">${each.bytes ? bytes(each.bytes) : "–"}</td></tr>`)}<//>`}
    </section>`;
}

// The longest cycle of each second, in the order of time.
function longest(cycles) {
  const found = new Map();
  for (const { time, seconds } of [...cycles].reverse()) {
    const second = Math.floor(time);
    found.set(second, Math.max(found.get(second) ?? 0, seconds));
  }
  return { name: "longest cycle of the second", times: [...found.keys()], values: [...found.values()] };
}

function phases(cycles) {
  const found = new Map();
  for (const cycle of cycles) {
    for (const [name, seconds] of Object.entries(cycle.timings ?? {})) {
      const part = found.get(name) ?? { name, total: 0, most: 0, mean: 0 };
      part.total += seconds;
      part.most = Math.max(part.most, seconds);
      found.set(name, part);
    }
  }
  for (const part of found.values()) part.mean = part.total / cycles.length;
  return [...found.values()].sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
}

function sum(cycles, figure) {
  return cycles.reduce((total, each) => total + (each[figure] ?? 0), 0);
}

function quantile(cycles, part) {
  const sorted = cycles.map((each) => each.seconds).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}

function timingText(cycle) {
  const parts = Object.entries(cycle.timings ?? {}).sort(([, a], [, b]) => b - a).slice(0, 6);
  return parts.map(([name, seconds]) => `${name} ${span(seconds)}`).join(", ") || span(cycle.seconds);
}
