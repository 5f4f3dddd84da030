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
const span = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 120) return seconds.toFixed(0) + " s";
  if (seconds < 7200) return (seconds / 60).toFixed(1) + " min";
  if (seconds < 172800) return (seconds / 3600).toFixed(1) + " h";
  return (seconds / 86400).toFixed(1) + " d";
};
const percent = (value) => (value === null || value === undefined ? "–" : value.toFixed(1) + " %");
const whole = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en"));
const plain = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));

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
    const best = known.length > 1 && better ? (better < 0 ? Math.min(...known) : Math.max(...known)) : null;
    values.forEach((value) => row.append(element("td", show(value), value === best && best !== null ? "best" : "")));
    body.append(row);
  }
  found.append(body);
  const scroll = element("div", undefined, "scroll");
  scroll.append(found);
  return scroll;
}

const of = (path) => policies.map((name) => path.split(".").reduce((value, key) => (value ? value[key] : null), data.policies[name]));

function figures() {
  const rows = [
    ["jobs done", whole, 1, of("finished")],
    ["completion, mean", span, -1, of("jct.mean")],
    ["completion, median", span, -1, of("jct.p50")],
    ["completion, p99", span, -1, of("jct.p99")],
    ["queueing, mean", span, -1, of("queueing.mean")],
    ["queueing, p90", span, -1, of("queueing.p90")],
    ["queueing, p99", span, -1, of("queueing.p99")],
    ["bounded slowdown, mean", plain, -1, policies.map((name) => data.details[name].slowdown.mean)],
    ["makespan", span, -1, of("makespan")],
    ["GPUs allocated, mean", percent, 1, of("gpuAllocated.mean")],
    ["fragmentation, mean", percent, -1, of("fragmentation")],
    ["preemptions", whole, -1, of("preemptions")],
    ["GPU hours lost", (v) => plain(v === null ? null : v / 3600), -1, of("lostGpuSeconds")],
    ["finish-time fairness, p99", plain, -1, of("fairness.finishTime.p99")],
    ["Jain index over queues", plain, 1, of("fairness.jain")],
  ];
  document.getElementById("figures").append(table(rows, policies));
  const notes = document.getElementById("notes");
  for (const name of policies) {
    for (const [reason, count] of Object.entries(data.leftOut[name] || {})) notes.append(element("p", `${name}: ${count} jobs left out: ${reason}`));
    if (data.neverStarted[name]) notes.append(element("p", `${name}: ${data.neverStarted[name]} jobs never started`));
  }
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

function plot(id, names, columns, options) {
  const host = typeof id === "string" ? document.getElementById(id) : id;
  if (!columns.some(([time]) => time.length)) { host.append(element("p", "nothing to show")); return; }
  const series = [options.x, ...names.map((name, i) => ({ label: name, stroke: colour(i), width: 1.6, spanGaps: true, points: { show: false }, value: (u, v) => (v === null ? "" : options.show(v)) }))];
  const size = () => ({ width: Math.max(host.clientWidth, 300), height: options.height || 260 });
  const drawn = new uPlot({
    ...size(),
    series,
    scales: { x: { time: !!options.time, distr: options.log ? 3 : 1, log: 10 }, y: { range: options.range } },
    axes: [{ values: options.ticks }, { size: 64, values: (u, ticks) => ticks.map(options.show) }],
  }, joined(columns), host);
  window.addEventListener("resize", () => drawn.setSize(size()));
}

const overTime = (show, range) => ({ x: {}, time: true, show, range });
const cdf = { x: { label: "time", value: (u, v) => span(v) }, log: true, show: (v) => (v === null ? "" : v.toFixed(0) + " %"), range: [0, 100], ticks: (u, ticks) => ticks.map((tick) => (tick === null ? "" : span(tick))) };
const positive = ([time, share]) => [time.map((value) => Math.max(value, 1)), share];
const last = ([time, share]) => {
  const seen = new Map();
  time.forEach((value, i) => seen.set(value, share[i]));
  return [[...seen.keys()], [...seen.values()]];
};

document.getElementById("title").textContent = data.title;
document.getElementById("subtitle").textContent = `${policies.length === 1 ? "one policy" : policies.length + " policies"}, ${whole(data.policies[policies[0]].jobs)} jobs`;
figures();
plot("allocated", policies, policies.map((name) => data.series[name].allocated), overTime((v) => v.toFixed(0) + " %", [0, 100]));
plot("waiting", policies, policies.map((name) => data.series[name].waiting), overTime((v) => v.toFixed(0)));
plot("fragmentation", policies, policies.map((name) => data.series[name].fragmentation), overTime((v) => v.toFixed(1) + " %"));
for (const name of ["jct", "queueing"]) plot(name, policies, policies.map((policy) => last(positive(data.cdf[name][policy]))), cdf);

policies.forEach((policy) => {
  const found = data.series[policy].queues;
  const names = Object.keys(found);
  const host = document.getElementById("queues");
  host.append(element("h3", policy));
  const drawing = element("div", undefined, "plot");
  host.append(drawing);
  plot(drawing, names, names.map((name) => found[name].allocated), { ...overTime((v) => v.toFixed(0)), height: 220 });
});

function grouped(id, key) {
  const host = document.getElementById(id);
  const names = [...new Set(policies.flatMap((policy) => Object.keys(data.details[policy][key])))];
  for (const [title, figure, show] of [["queueing, mean", (g) => g.queueing.mean, span], ["queueing, p90", (g) => g.queueing.p90, span], ["bounded slowdown, mean", (g) => g.slowdown.mean, plain]]) {
    host.append(element("h3", title));
    host.append(table(names.map((name) => {
      const groups = policies.map((policy) => data.details[policy][key][name]);
      return [`${name} (${whole((groups.find((group) => group) || { jobs: 0 }).jobs)} jobs)`, show, -1, groups.map((group) => (group ? figure(group) : null))];
    }), policies));
  }
}
grouped("sizes", "bySize");
grouped("by-queue", "byQueue");

const owed = [...new Set(policies.flatMap((policy) => Object.keys(data.details[policy].quota)))];
if (owed.length) {
  const value = (name, key) => policies.map((policy) => (data.details[policy].quota[name] || {})[key]);
  document.getElementById("quotas").append(table(owed.flatMap((name) => [
    [`${name}: time above its quota`, span, 0, value(name, "secondsAbove")],
    [`${name}: time below it while jobs wait`, span, -1, value(name, "secondsBelowWhileWaiting")],
    [`${name}: GPU hours missed`, (v) => plain(v === undefined ? null : v / 3600), -1, value(name, "missedGpuSeconds")],
  ]), policies));
} else document.getElementById("quota-section").remove();
