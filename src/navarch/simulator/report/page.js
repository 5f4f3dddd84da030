"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const policies = data.order;
const COLOURS = ["#2166ac", "#d6604d", "#1b7837", "#762a83", "#b8860b", "#35978f", "#8c510a", "#c51b7d", "#4d4d4d", "#5aae61", "#9970ab", "#053061"];
const colour = (i) => COLOURS[i % COLOURS.length];

const element = (tag, text, className) => {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (className) found.className = className;
  return found;
};
// Durations of one table or plot have one unit, that of the longest mean: [seconds, name].
const UNITS = [[120, 1, "s"], [7200, 60, "min"], [259200, 3600, "h"], [Infinity, 86400, "d"]];
const unitOf = (values) => {
  const longest = Math.max(0, ...values.filter((value) => typeof value === "number"));
  const [, seconds, name] = UNITS.find(([limit]) => longest < limit);
  return { seconds, name };
};
const digits = (value) => {
  const places = !value || value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  return value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
};
const inUnit = (unit) => (seconds) => (seconds === null || seconds === undefined ? "–" : `${digits(seconds / unit.seconds)} ${unit.name}`);
const percent = (value) => (value === null || value === undefined ? "–" : value.toFixed(1) + " %");
const whole = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en"));
const plain = (value) => (value === null || value === undefined ? "–" : digits(value));

// One column a policy; the best figure of a row is bold. `better`: -1 if less is better, 1 if more is, 0 if neither.
function table(rows, columns) {
  const found = element("table");
  const head = element("tr");
  head.append(element("th", ""));
  columns.forEach((name) => {
    const cell = element("th");
    const swatch = element("span", "", "swatch");
    swatch.style.background = colour(policies.indexOf(name));
    cell.append(swatch, name);
    head.append(cell);
  });
  found.append(element("thead"));
  found.tHead.append(head);
  const body = element("tbody");
  for (const [name, show, better, values] of rows) {
    const row = element("tr");
    row.append(element("td", name));
    const known = values.filter((value) => value !== null && value !== undefined);
    const differ = better && known.some((value) => value !== known[0]);
    const best = differ ? (better < 0 ? Math.min(...known) : Math.max(...known)) : null;
    values.forEach((value) => row.append(element("td", show(value), value === best && best !== null ? "best" : "")));
    body.append(row);
  }
  found.append(body);
  const scroll = element("div", undefined, "scroll");
  scroll.append(found);
  return scroll;
}

const of = (path) => policies.map((name) => path.split(".").reduce((value, key) => (value ? value[key] : null), data.policies[name]));

// Times of policies that finish quite different jobs are no comparison: none of them is marked as the best.
const done = of("finished");
const shorter = Math.min(...done) < 0.95 * Math.max(...done) ? 0 : -1;

function figures() {
  const means = of("jct.mean");
  const time = inUnit(unitOf(means.some((value) => value) ? means : of("makespan")));
  const detail = (read) => policies.map((name) => read(data.details[name]));
  const rows = [
    ["jobs done", whole, 1, of("finished")],
    ["completion, mean", time, shorter, of("jct.mean")],
    ["completion, median", time, shorter, of("jct.p50")],
    ["completion, p99", time, shorter, of("jct.p99")],
    ["queueing, mean", time, shorter, of("queueing.mean")],
    ["queueing, median", time, shorter, of("queueing.p50")],
    ["queueing, p90", time, shorter, of("queueing.p90")],
    ["queueing, p99", time, shorter, of("queueing.p99")],
    ["bounded slowdown, mean", plain, shorter, detail((each) => each.slowdown.mean)],
    ["makespan", time, shorter, of("makespan")],
    ["GPUs allocated, mean", percent, 1, of("gpuAllocated.mean")],
    ["GPUs allocated at 100 % asked", percent, 1, of("gpuAllocated.at.100")],
    ["GPUs allocated at 130 % asked", percent, 1, of("gpuAllocated.at.130")],
    ["fragmentation, mean", percent, -1, of("fragmentation")],
    ["preemptions", whole, -1, of("preemptions")],
    ["GPU hours lost", (v) => (v === null ? "–" : digits(v / 3600)), -1, of("lostGpuSeconds")],
    ["jobs ended by their walltime", whole, -1, detail((each) => each.endedEarly)],
    ["node failures", whole, 0, detail((each) => each.nodeFailures)],
    ["finish-time fairness, p99 (1: as alone on an equal share)", plain, shorter, of("fairness.finishTime.p99")],
    ["Jain index over queues (1: all are slowed down alike)", plain, 1, of("fairness.jain")],
    ["decision time a pod", (v) => (v === null || v === undefined ? "–" : `${digits(v)} µs`), 0, detail((each) => each.decisionMicrosecondsPerPod)],
  ];
  document.getElementById("figures").append(table(rows.filter(([, , , values]) => values.some((v) => v !== null && v !== undefined)), policies));
  data.remarks.forEach((remark) => document.getElementById("notes").append(element("p", remark)));
}

// Series with their own times become one table with a common time axis; gaps are bridged.
function joined(columns) {
  const times = [...new Set(columns.flatMap(([time]) => time))].sort((a, b) => a - b);
  const place = new Map(times.map((time, i) => [time, i]));
  return [times, ...columns.map(([time, value]) => {
    const out = new Array(times.length).fill(null);
    time.forEach((moment, i) => { out[place.get(moment)] = value[i]; });
    return out;
  })];
}

// Lines that lie on each other stay visible, and a print without colours too.
const DASHES = [[], [9, 4], [3, 3], [12, 3, 3, 3]];

function plot(id, names, columns, options) {
  const host = typeof id === "string" ? document.getElementById(id) : id;
  if (!columns.some(([time]) => time.length)) { host.append(element("p", "nothing to show")); return; }
  const line = (name, i) => ({
    label: name, stroke: colour(i), dash: DASHES[i % DASHES.length], width: 1.6, spanGaps: true, points: { show: false },
    value: (u, v) => (v === null || v === undefined ? "" : options.show(v)),
  });
  const size = () => ({ width: Math.max(host.clientWidth, 300), height: options.height || 260 });
  const drawn = new uPlot({
    ...size(),
    series: [options.x, ...names.map(line)],
    tzDate: (moment) => uPlot.tzDate(new Date(moment * 1000), "Etc/UTC"),
    scales: { x: { time: !!options.time, distr: options.log ? 3 : 1, log: 10, range: options.within }, y: { range: options.range } },
    axes: [{ values: options.ticks, ...(options.steps ? { incrs: options.steps } : {}), label: options.axis, labelSize: 18, labelFont: "12px system-ui" }, { size: 64, values: (u, ticks) => ticks.map(options.show) }],
  }, joined(columns), host);
  window.addEventListener("resize", () => drawn.setSize(size()));
}

const fromZero = (u, least, most) => [0, most > 0 ? most * 1.05 : 1];
// A trace may count its seconds from zero: such times are shown as hours since then, others as dates.
const begins = Math.min(...policies.flatMap((name) => data.series[name].allocated[0].slice(0, 1)));
const counted = begins < 1e8;
const iso = (moment) => new Date(moment * 1000).toISOString();
const clock = (u, ticks, axis, space, step) => ticks.map((tick) => {
  if (counted) return String(tick / 3600);
  const text = iso(tick);
  return step >= 86400 ? text.slice(0, 10) : text.slice(11, 16) === "00:00" ? text.slice(5, 10) : text.slice(11, 16);
});
const HOUR = 3600;
const overTime = (show, range) => ({
  x: { label: counted ? "hour" : "UTC", value: (u, v) => (v === null ? "" : counted ? digits(v / HOUR) : iso(v).slice(0, 16).replace("T", " ")) },
  time: !counted,
  steps: counted ? [1, 2, 4, 12, 24, 48, 120, 240, 720, 2400].map((hours) => hours * HOUR) : undefined,
  axis: counted ? "hours" : "UTC",
  ticks: clock,
  show,
  range: range || fromZero,
});
const last = ([time, share]) => {
  const seen = new Map();
  time.forEach((value, i) => seen.set(value, share[i]));
  return [[...seen.keys()], [...seen.values()]];
};
const NAMES = { s: "seconds", min: "minutes", h: "hours", d: "days" };
function distribution(name) {
  const unit = unitOf(of("jct.mean"));
  // A logarithmic axis has no zero: what took less than a second is drawn at one second.
  const scaled = ([time, share]) => [time.map((value) => Math.max(value, 1) / unit.seconds), share];
  const show = (value) => `${Number(value.toPrecision(3))} ${unit.name}`;
  plot(name, policies, policies.map((policy) => last(scaled(data.cdf[name][policy]))), {
    x: { label: "within", value: (u, v) => (v === null ? "" : show(v)) },
    axis: NAMES[unit.name],
    log: true,
    show: (v) => v.toFixed(0) + " %",
    range: [0, 100],
    ticks: (u, ticks) => ticks.map((tick) => (tick === null || Math.abs(Math.log10(tick) % 1) > 1e-9 ? "" : String(Number(tick.toPrecision(3))))),
  });
}

document.getElementById("title").textContent = data.title;
const seeds = data.seeds.length > 1 ? `; figures are means over ${data.seeds.length} seeds, plots show seed ${data.seeds[0]}` : "";
const count = policies.length === 1 ? "one policy" : policies.length + " policies";
document.getElementById("subtitle").textContent = `${count}, ${whole(data.policies[policies[0]].jobs)} jobs${seeds}. The best figure of a row is bold.`;
figures();
plot("allocated", policies, policies.map((name) => data.series[name].allocated), overTime((v) => v.toFixed(0) + " %", [0, 100]));
plot("waiting", policies, policies.map((name) => data.series[name].waiting), overTime((v) => v.toFixed(0)));
plot("fragmentation", policies, policies.map((name) => data.series[name].fragmentation), overTime((v) => v.toFixed(1) + " %"));
["jct", "queueing"].forEach(distribution);

// The same axes under every policy, so that the plots can be compared.
const held = policies.flatMap((policy) => Object.values(data.series[policy].queues).map((queue) => queue.allocated));
const moments = held.flatMap(([time]) => (time.length ? [time[0], time[time.length - 1]] : []));
const most = held.reduce((top, [, value]) => value.reduce((a, b) => Math.max(a, b), top), 0);
policies.forEach((policy) => {
  const found = data.series[policy].queues;
  const names = Object.keys(found);
  const host = document.getElementById("queues");
  const part = element("div", undefined, "part");
  part.append(element("h3", policy));
  const drawing = element("div", undefined, "plot");
  part.append(drawing);
  host.append(part);
  const axes = { within: [Math.min(...moments), Math.max(...moments)], range: [0, most * 1.05 || 1], height: 220 };
  plot(drawing, names, names.map((name) => found[name].allocated), { ...overTime((v) => v.toFixed(0)), ...axes });
});

function grouped(id, key) {
  const host = document.getElementById(id);
  const names = [...new Set(policies.flatMap((policy) => Object.keys(data.details[policy][key])))];
  const all = (figure) => policies.flatMap((policy) => Object.values(data.details[policy][key]).map(figure));
  for (const [title, figure, times] of [["queueing, mean", (g) => g.queueing.mean, true], ["queueing, p90", (g) => g.queueing.p90, true], ["bounded slowdown, mean", (g) => g.slowdown.mean, false]]) {
    const show = times ? inUnit(unitOf(all(figure))) : plain;
    const part = element("div", undefined, "part");
    host.append(part);
    part.append(element("h3", title));
    part.append(table(names.map((name) => {
      const groups = policies.map((policy) => data.details[policy][key][name]);
      return [`${name} (${whole((groups.find((group) => group) || { jobs: 0 }).jobs)} jobs)`, show, shorter, groups.map((group) => (group ? figure(group) : null))];
    }), policies));
  }
}
grouped("sizes", "bySize");
grouped("by-queue", "byQueue");

const pods = [...new Set(policies.flatMap((policy) => Object.keys(data.details[policy].gangWait)))].filter((size) => size > 1).sort((a, b) => a - b);
if (pods.length) {
  const of = (size) => policies.map((policy) => data.details[policy].gangWait[size]);
  const wait = inUnit(unitOf(pods.flatMap((size) => of(size).map((found) => found && found.mean))));
  document.getElementById("gangs").append(table(pods.map((size) => {
    const jobs = (of(size).find((found) => found) || { jobs: 0 }).jobs;
    return [`${size} pods (${whole(jobs)} jobs), mean`, wait, shorter, of(size).map((found) => (found ? found.mean : null))];
  }), policies));
} else document.getElementById("gang-section").remove();

const owed = [...new Set(policies.flatMap((policy) => Object.keys(data.details[policy].quota)))];
if (owed.length) {
  const value = (name, key) => policies.map((policy) => (data.details[policy].quota[name] || {})[key]);
  const time = inUnit(unitOf(owed.flatMap((name) => [...value(name, "secondsAbove"), ...value(name, "secondsBelowWhileWaiting")])));
  document.getElementById("quotas").append(table(owed.flatMap((name) => [
    [`${name}: guarantee kept`, (v) => (v === undefined ? "–" : v === true || v === 1 ? "yes" : "no"), 0, value(name, "kept")],
    [`${name}: time above its quota`, time, 0, value(name, "secondsAbove")],
    [`${name}: time below it while jobs wait`, time, -1, value(name, "secondsBelowWhileWaiting")],
    [`${name}: GPU hours missed`, (v) => (v === undefined ? "–" : digits(v / 3600)), -1, value(name, "missedGpuSeconds")],
  ]), policies));
} else document.getElementById("quota-section").remove();
