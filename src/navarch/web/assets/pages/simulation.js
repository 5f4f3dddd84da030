// One report of a simulation: policies side by side, and the course of time under each.
import { html, useMemo } from "../core/dom.js";
import { inUnit, plain, unitOf } from "../core/format.js";
import { useOnce } from "../core/live.js";
import { useThemeVersion } from "../core/preferences.js";
import { Loaded } from "../parts/notices.js";
import { Plot, seriesColour } from "../parts/plot.js";
import { Table, num } from "../parts/table.js";

const percent = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(1)} %`);
const hours = (value) => (value === null || value === undefined ? "–" : plain(value / 3600));
const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 }));

const EARLIEST_DATE = 1e8; // seconds since 1970; smaller moments count from the begin of the trace
const HOUR = 3600;
const STEPS = [1, 2, 4, 12, 24, 48, 120, 240, 720, 2400].map((number) => number * HOUR);
const DURATION = "duration";
const SHORTER = "shorter";

// Name, how it is shown, which is better (-1: less, 1: more, 0: neither, SHORTER: less, where policies finish the same jobs), and where it
// stands in the report.
const FIGURES = [
  ["jobs done", number, 1, "finished"],
  ["completion, mean", DURATION, SHORTER, "jct.mean"],
  ["completion, median", DURATION, SHORTER, "jct.p50"],
  ["completion, p90", DURATION, SHORTER, "jct.p90"],
  ["completion, p99", DURATION, SHORTER, "jct.p99"],
  ["queueing, mean", DURATION, SHORTER, "queueing.mean"],
  ["queueing, median", DURATION, SHORTER, "queueing.p50"],
  ["queueing, p90", DURATION, SHORTER, "queueing.p90"],
  ["queueing, p99", DURATION, SHORTER, "queueing.p99"],
  ["makespan", DURATION, SHORTER, "makespan"],
  ["GPUs allocated, mean", percent, 1, "gpuAllocated.mean"],
  ["CPU allocated, mean", percent, 1, "cpuAllocated.mean"],
  ["GPUs allocated at 100 % asked", percent, 1, "gpuAllocated.at.100"],
  ["GPUs allocated at 130 % asked", percent, 1, "gpuAllocated.at.130"],
  ["fragmentation, mean", percent, -1, "fragmentation"],
  ["preemptions", number, -1, "preemptions"],
  ["GPU hours lost", hours, -1, "lostGpuSeconds"],
  ["evicted again too soon", number, -1, "repeatedEvictions"],
  ["evictions in vain", number, -1, "evictionsInVain"],
  ["finish-time fairness, p99", plain, SHORTER, "fairness.finishTime.p99"],
  ["Jain index over queues", plain, 1, "fairness.jain"],
];
// Figures that say nothing where jobs come and stay.
const ENDS = new Set(["finished", "makespan", "preemptions", "lostGpuSeconds", "repeatedEvictions", "evictionsInVain"]);

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
  const course = report.course ?? {};
  const series = useMemo(() => ({
    course: over(policies, (name) => course[name] ?? [[], []]),
    allocated: over(policies, (name) => report.series[name].allocated),
    waiting: over(policies, (name) => report.series[name].waiting),
    fragmentation: over(policies, (name) => report.series[name].fragmentation),
    jct: distribution(report, "jct"),
    queueing: distribution(report, "queueing"),
  }), [report]);
  const rows = figuresOf(report);
  const unit = report.cores ? "CPU cores" : "GPUs";
  const share = (v) => `${plain(v)} %`;
  return html`
    <p class="note">${report.title}${(report.conditions ?? []).map((each) => `, ${each}`)}${seedsOf(report)}</p>
    <div class="panels">
      <section class="panel wide"><h2>Policies side by side <span class="note">the best figure of a row is bold</span></h2>
        <${SideBySide} label="Policies side by side" policies=${policies} rows=${rows} />
        <${Remarks} report=${report} />
      </section>
      <${Panel} title="GPUs allocated as jobs ask for more" label="Percent of the GPUs that jobs hold, by percent asked for"
        series=${series.course} show=${share} showX=${share} range=${[0, 100]} wide />
      <${Panel} title=${`${unit} allocated`} label=${`Percent of the ${unit} that jobs hold, over time`} series=${series.allocated} show=${share}
        ...${timeAxis(series.allocated)} range=${[0, 100]} wide />
      <${Panel} title="Jobs that wait" label="Jobs that wait, over time" series=${series.waiting} show=${plain} ...${timeAxis(series.waiting)} />
      <${Panel} title="Fragmentation" label="Percent of the GPUs that are free and of no use to the pods that come"
        series=${series.fragmentation} show=${percent} ...${timeAxis(series.fragmentation)} />
      <${Panel} title="Completion time" label="Percent of jobs that took no longer" ...${series.jct} show=${share} logX range=${[0, 100]} />
      <${Panel} title="Queueing time" label="Percent of jobs that waited no longer" ...${series.queueing} show=${share} logX range=${[0, 100]} />
      ${policies.map((name) => html`<${QueuesOf} key=${name} name=${name} unit=${unit} queues=${report.series[name].queues} />`)}
      ${["bySize", "byQueue"].map((group) => html`<${Grouped} key=${group} report=${report} group=${group} />`)}
    </div>`;
}

// A plot with its heading; nothing where there is nothing to draw.
function Panel({ title, note, wide, series, ...rest }) {
  if (!series.some((each) => each.times.length)) return null;
  return html`<section class=${wide ? "panel wide" : "panel"}><h2>${title}${note && html` <span class="note">${note}</span>`}</h2>
    <${Plot} series=${series} ...${rest} /></section>`;
}

function figuresOf(report) {
  const values = (path) => report.order.map((name) => at(report.policies[name], path));
  const means = values("jct.mean");
  const duration = inUnit(unitOf(means.some((value) => value) ? means : values("makespan")));
  const jobsStay = Object.keys(report.course ?? {}).length > 0;
  return FIGURES.map(([text, show, better, path]) => [text, show === DURATION ? duration : show, sign(report, better), values(path), path])
    .filter(([, , , found, path]) => found.some((value) => typeof value === "number") && !(jobsStay && ENDS.has(path)));
}

// Times of policies that finish quite different jobs are no comparison: none of them is marked as the best.
function sign(report, better) {
  if (better !== SHORTER) return better;
  const done = report.order.map((name) => report.policies[name].finished);
  return Math.min(...done) < 0.95 * Math.max(...done) ? 0 : -1;
}

function seedsOf({ seeds = [] }) {
  return seeds.length > 1 ? `; figures are means over ${seeds.length} seeds, plots show seed ${seeds[0]}` : "";
}

function SideBySide({ label, policies, rows }) {
  const policy = (name, i) => num(html`<i class="swatch" style=${{ background: seriesColour(i) }}></i>${name}`, name);
  const columns = [{ title: "Figure", className: "first" }, ...policies.map(policy)];
  return html`
    <${Table} label=${label} className="matrix" columns=${columns}>${rows.map(([text, show, better, values]) => {
      const known = values.filter((value) => typeof value === "number");
      const differ = known.some((value) => value !== known[0]);
      const best = differ && better ? show(better < 0 ? Math.min(...known) : Math.max(...known)) : null;
      const alike = known.every((value) => show(value) === best);
      return html`<tr key=${text}>
        <th scope="row">${text}</th>${values.map((value) => html`<td
          class=${best !== null && !alike && show(value) === best ? "num best" : "num"}>${show(value)}</td>`)}</tr>`;
    })}<//>`;
}

// Reports of earlier versions have no remarks, but what they are made of.
function Remarks({ report }) {
  if (report.remarks) return report.remarks.map((remark) => html`<p class="note">${remark}</p>`);
  return report.order.flatMap((name) => [
    ...Object.entries(report.leftOut?.[name] ?? {}).map(([reason, number]) => html`<p class="note">${name}: ${number} jobs left out: ${reason}</p>`),
    report.neverStarted?.[name] ? html`<p class="note">${name}: ${report.neverStarted[name]} jobs never started</p>` : null,
  ]);
}

function QueuesOf({ name, unit, queues }) {
  const series = useMemo(() => over(Object.keys(queues), (queue) => queues[queue].allocated), [queues]);
  if (!series.some((each) => each.values.some((value) => value))) return null;
  return html`<${Panel} title=${`${unit} by queue`} note=${name} label=${`${unit} by queue under ${name}`} series=${series} show=${plain}
    ...${timeAxis(series)} />`;
}

function Grouped({ report, group }) {
  const policies = report.order;
  const title = group === "bySize" ? "Mean queueing by size of job" : "Mean queueing by queue";
  const names = [...new Set(policies.flatMap((policy) => Object.keys(report.details[policy]?.[group] ?? {})))];
  const values = (name, figure) => policies.map((policy) => { const found = report.details[policy]?.[group]?.[name]; return found ? figure(found) : null; });
  if (!names.length) return null;
  const means = names.map((name) => values(name, (found) => found.queueing.mean));
  const show = inUnit(unitOf(means.flat()));
  return html`
    <section class=${policies.length > 2 ? "panel wide" : "panel"}><h2>${title}</h2>
      <${SideBySide} label=${title} policies=${policies}
        rows=${names.map((name, i) => [name, show, sign(report, SHORTER), means[i]])} />
    </section>`;
}

function over(names, columns) {
  return names.map((name) => ({ name, times: columns(name)[0], values: columns(name)[1] }));
}

// How many percent of the jobs took no longer, for a logarithmic axis. It has no zero and begins at the shortest time, at most five powers
// of ten below the longest: what took less is drawn at its left end. Of several shares at one time the last counts.
function distribution(report, figure) {
  const columns = report.cdf[figure];
  const unit = unitOf(report.order.map((name) => at(report.policies[name], "jct.mean")));
  const times = report.order.flatMap((name) => columns[name][0]).filter((time) => time >= 1).map((time) => time / unit.seconds);
  const longest = times.reduce((a, b) => Math.max(a, b), 1 / unit.seconds);
  const shortest = times.reduce((a, b) => Math.min(a, b), longest);
  const least = 10 ** Math.floor(Math.log10(Math.max(shortest, longest / 1e5)));
  const shared = ([times, shares]) => {
    const found = new Map();
    times.forEach((time, i) => found.set(Math.max(time / unit.seconds, least), shares[i]));
    return [[...found.keys()], [...found.values()]];
  };
  return {
    series: over(report.order, (name) => shared(columns[name])),
    showX: (value) => `${Number(value.toPrecision(3))} ${unit.name}`,
    rangeX: [least, Math.max(longest, 10 * least)],
  };
}

// Traces without dates begin at 0: the axis then says how many hours have passed. Dates are UTC.
function timeAxis(series) {
  const last = Math.max(0, ...series.map((each) => each.times[each.times.length - 1] ?? 0));
  if (last < EARLIEST_DATE) return { showX: (seconds) => `${plain(seconds / HOUR)} h`, steps: STEPS };
  return { time: true, utc: true, showX: (seconds) => new Date(seconds * 1000).toISOString().slice(5, 16).replace("T", " ") };
}

function at(value, path) {
  return path.split(".").reduce((found, key) => found?.[key], value);
}
