// One report of a simulation: policies side by side, and the course of time under each.
import { html, useMemo } from "../core/dom.js";
import { plain, span } from "../core/format.js";
import { useOnce } from "../core/live.js";
import { useThemeVersion } from "../core/preferences.js";
import { Loaded } from "../parts/notices.js";
import { Plot, seriesColour } from "../parts/plot.js";
import { Table, num } from "../parts/table.js";

const percent = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(1)} %`);
const hours = (value) => (value === null || value === undefined ? "–" : plain(value / 3600));
const whole = (value) => (value === null || value === undefined ? "–" : plain(Math.round(value)));

const EARLIEST_DATE = 1e8; // seconds since 1970; smaller moments count from the begin of the trace

// Name, how it is shown, which is better (-1: less, 1: more), and where it stands in the report.
const FIGURES = [
  ["jobs done", whole, 1, "finished"],
  ["completion, mean", span, -1, "jct.mean"],
  ["completion, median", span, -1, "jct.p50"],
  ["completion, p99", span, -1, "jct.p99"],
  ["queueing, mean", span, -1, "queueing.mean"],
  ["queueing, p90", span, -1, "queueing.p90"],
  ["queueing, p99", span, -1, "queueing.p99"],
  ["makespan", span, -1, "makespan"],
  ["GPUs allocated, mean", percent, 1, "gpuAllocated.mean"],
  ["fragmentation, mean", percent, -1, "fragmentation"],
  ["preemptions", whole, -1, "preemptions"],
  ["GPU hours lost", hours, -1, "lostGpuSeconds"],
  ["finish-time fairness, p99", plain, -1, "fairness.finishTime.p99"],
  ["Jain index over queues", plain, 1, "fairness.jain"],
];

export function SimulationPage({ parts }) {
  const name = parts.join("/");
  const source = useOnce(["simulations", name]);
  return html`
    <div class="page-head"><h1 tabindex="-1"><span class="crumb"><a href="#/simulations">Simulations</a> / </span>${name}</h1></div>
    <${Loaded} source=${source} what="the report">${(report) => html`<${Report} report=${report} />`}<//>`;
}

function Report({ report }) {
  useThemeVersion();
  const policies = report.order;
  const series = useMemo(() => ({
    allocated: over(policies, (name) => report.series[name].allocated),
    waiting: over(policies, (name) => report.series[name].waiting),
    fragmentation: over(policies, (name) => report.series[name].fragmentation),
    jct: over(policies, (name) => positive(report.cdf.jct[name])),
    queueing: over(policies, (name) => positive(report.cdf.queueing[name])),
  }), [report]);
  return html`
    <p class="note">${report.title}</p>
    <div class="panels">
      <section class="panel wide"><h2>Policies side by side <span class="note">the best figure of a row is bold</span></h2>
        <${SideBySide} label="Policies side by side" policies=${policies}
          rows=${FIGURES.map(([text, show, better, path]) => [text, show, better, policies.map((name) => at(report.policies[name], path))])} />
        <${Remarks} report=${report} />
      </section>
      <section class="panel wide"><h2>GPUs allocated</h2>
        <${Plot} label="Percent of the GPUs that jobs hold, over time" series=${series.allocated}
          show=${(v) => `${plain(v)} %`} ...${timeAxis(series.allocated)} range=${[0, 100]} />
        </section>
      <section class="panel"><h2>Jobs that wait</h2>
        <${Plot} label="Jobs that wait, over time" series=${series.waiting} show=${whole} ...${timeAxis(series.waiting)} />
        </section>
      <section class="panel"><h2>Fragmentation</h2>
        <${Plot} label="Percent of the GPUs that are free and of no use to the pods that come" series=${series.fragmentation}
          show=${percent} ...${timeAxis(series.fragmentation)} />
        </section>
      <section class="panel"><h2>Completion time</h2>
        <${Plot} label="Percent of jobs that took no longer" series=${series.jct} show=${(v) => `${plain(v)} %`} showX=${span} logX
          range=${[0, 100]} />
        </section>
      <section class="panel"><h2>Queueing time</h2>
        <${Plot} label="Percent of jobs that waited no longer" series=${series.queueing} show=${(v) => `${plain(v)} %`}
          showX=${span} logX range=${[0, 100]} />
        </section>
      ${policies.map((name) => html`<${QueuesOf} key=${name} name=${name} queues=${report.series[name].queues} />`)}
      ${["bySize", "byQueue"].map((group) => html`<${Grouped} key=${group} report=${report} group=${group} />`)}
    </div>`;
}

function SideBySide({ label, policies, rows }) {
  const policy = (name, i) => num(html`<i class="swatch" style=${{ background: seriesColour(i) }}></i>${name}`);
  const columns = [{ title: "Figure", className: "first" }, ...policies.map(policy)];
  return html`
    <${Table} label=${label} className="matrix" columns=${columns}>${rows.map(([text, show, better, values]) => {
      const known = values.filter((value) => typeof value === "number");
      const differ = known.some((value) => value !== known[0]);
      const best = differ ? (better < 0 ? Math.min(...known) : Math.max(...known)) : null;
      return html`<tr key=${text}>
        <th scope="row">${text}</th>${values.map((value) => html`<td
          class=${best !== null && value === best ? "num best" : "num"}>${show(value)}</td>`)}</tr>`;
    })}<//>`;
}

function Remarks({ report }) {
  return report.order.flatMap((name) => [
    ...Object.entries(report.leftOut?.[name] ?? {}).map(([reason, number]) => html`<p class="note">${name}: ${number} jobs left out: ${reason}</p>`),
    report.neverStarted?.[name] ? html`<p class="note">${name}: ${report.neverStarted[name]} jobs never started</p>` : null,
  ]);
}

function QueuesOf({ name, queues }) {
  const series = useMemo(() => over(Object.keys(queues), (queue) => queues[queue].allocated), [queues]);
  return html`<section class="panel"><h2>GPUs by queue <span class="note">${name}</span></h2>
    <${Plot} label=${`GPUs by queue under ${name}`} series=${series} show=${whole} ...${timeAxis(series)} /></section>`;
}

function Grouped({ report, group }) {
  const policies = report.order;
  const title = group === "bySize" ? "Mean queueing by size of job" : "Mean queueing by queue";
  const names = [...new Set(policies.flatMap((policy) => Object.keys(report.details[policy]?.[group] ?? {})))];
  const values = (name, figure) => policies.map((policy) => { const found = report.details[policy]?.[group]?.[name]; return found ? figure(found) : null; });
  return html`
    <section class="panel"><h2>${title}</h2>
      <${SideBySide} label=${title} policies=${policies}
        rows=${names.map((name) => [name, span, -1, values(name, (found) => found.queueing.mean)])} />
    </section>`;
}

function over(names, columns) {
  return names.map((name) => ({ name, times: columns(name)[0], values: columns(name)[1] }));
}

// A logarithmic axis has no zero. Of several shares at one time the last counts.
function positive([times, shares]) {
  const found = new Map();
  times.forEach((time, i) => found.set(Math.max(time, 1), shares[i]));
  return [[...found.keys()], [...found.values()]];
}

// Traces without dates begin at 0: the axis then says how much time has passed.
function timeAxis(series) {
  const last = Math.max(0, ...series.map((each) => each.times[each.times.length - 1] ?? 0));
  if (last < EARLIEST_DATE) return { showX: span };
  return { time: true, showX: (seconds) => new Date(seconds * 1000).toISOString().slice(5, 16).replace("T", " ") };
}

function at(value, path) {
  return path.split(".").reduce((found, key) => found?.[key], value);
}
