"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const policies = data.order;
// On white and on black. Paper is white.
const COLOURS = ["#0067a5", "#d1495b", "#1b7837", "#7b3fa0", "#b8730a", "#1f9aa8", "#6b4c2a", "#d4569b", "#555f6b", "#7fae3a", "#8c7fd0", "#0b2f5b"];
const ON_DARK = ["#5aa9e6", "#ff7b72", "#5fce7e", "#c58af9", "#f0b440", "#4fd1d9", "#c9a27e", "#ff8cc8", "#aab4c0", "#b5e061", "#b9adf5", "#8fb4ff"];
const PRINT = matchMedia("print");
const DARK = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const isDark = () => DARK.matches && !PRINT.matches && !printing;
const colour = (i) => (isDark() ? ON_DARK : COLOURS)[i % COLOURS.length];

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
const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 }));
const plain = (value) => (value === null || value === undefined ? "–" : digits(value));

const MOST_COLUMNS = 8;
// One column a policy; the best figure of a row is bold, with all that look like it. `better`: -1 if less is better, 1 if more is, 0 if
// neither. Many policies are shown in several tables: one would be wider than the page.
function table(rows) {
  const found = element("div");
  for (let first = 0; first < policies.length; first += MOST_COLUMNS) found.append(part(rows, first, policies.slice(first, first + MOST_COLUMNS)));
  return found;
}

function part(rows, first, columns) {
  const found = element("table");
  const head = element("tr");
  head.append(element("th", ""));
  columns.forEach((name) => {
    const cell = element("th");
    const swatch = element("span", "", "swatch");
    swatch.style.setProperty("--light", COLOURS[policies.indexOf(name) % COLOURS.length]);
    swatch.style.setProperty("--dark", ON_DARK[policies.indexOf(name) % COLOURS.length]);
    const [policy, parameters] = name.split("[");
    const title = element("span", undefined, policy.length < 14 ? "whole" : "");
    title.append(swatch, policy);
    cell.append(title);
    if (parameters) parameters.replace(/\]$/, "").split(",").forEach((each) => cell.append(element("small", each.replaceAll(".", ".\u200b").replace("=", " = "))));
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
    const best = differ ? show(better < 0 ? Math.min(...known) : Math.max(...known)) : null;
    const alike = known.every((value) => show(value) === best);
    values.slice(first, first + columns.length).forEach((value) => row.append(element("td", show(value), show(value) === best && !alike ? "best" : "")));
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
  const some = (values) => (values.some((value) => value) ? values : []);
  // Where jobs come and stay, none is done.
  const ends = (values) => (Object.keys(data.course).length ? [] : values);
  const rows = [
    ["jobs done", number, 1, ends(of("finished"))],
    ["completion, mean", time, shorter, of("jct.mean")],
    ["completion, median", time, shorter, of("jct.p50")],
    ["completion, p90", time, shorter, of("jct.p90")],
    ["completion, p99", time, shorter, of("jct.p99")],
    ["queueing, mean", time, shorter, of("queueing.mean")],
    ["queueing, median", time, shorter, of("queueing.p50")],
    ["queueing, p90", time, shorter, of("queueing.p90")],
    ["queueing, p99", time, shorter, of("queueing.p99")],
    ["bounded slowdown, mean", plain, shorter, detail((each) => each.slowdown.mean)],
    ["bounded slowdown, median", plain, shorter, detail((each) => each.slowdown.p50)],
    ["bounded slowdown, p90", plain, shorter, detail((each) => each.slowdown.p90)],
    ["bounded slowdown, p99", plain, shorter, detail((each) => each.slowdown.p99)],
    ["makespan", time, shorter, ends(of("makespan"))],
    ["GPUs allocated, mean", percent, 1, of("gpuAllocated.mean")],
    ["CPU allocated, mean", percent, 1, of("cpuAllocated.mean")],
    ["GPUs allocated at 100 % asked", percent, 1, of("gpuAllocated.at.100")],
    ["GPUs allocated at 130 % asked", percent, 1, of("gpuAllocated.at.130")],
    ["fragmentation, mean", percent, -1, of("fragmentation")],
    ["preemptions", number, -1, ends(of("preemptions"))],
    ["GPU hours lost", (v) => (v === null ? "–" : digits(v / 3600)), -1, data.gpus ? ends(of("lostGpuSeconds")) : []],
    ["evicted again too soon", number, -1, ends(of("repeatedEvictions"))],
    ["evictions in vain", number, -1, ends(of("evictionsInVain"))],
    ["jobs ended by their walltime", number, -1, some(detail((each) => each.endedEarly))],
    ["node failures", number, 0, some(detail((each) => each.nodeFailures))],
    ["finish-time fairness, p99 (1: as alone on an equal share)", plain, shorter, of("fairness.finishTime.p99")],
    ["Jain index over queues (1: all are slowed down alike)", plain, 1, of("fairness.jain")],
    ["decision time a pod", (v) => (v === null || v === undefined ? "–" : `${digits(v)} µs`), 0, detail((each) => each.decisionMicrosecondsPerPod)],
  ];
  document.getElementById("figures").append(table(rows.filter(([, , , values]) => values.some((v) => v !== null && v !== undefined))));
  const notes = element("ul");
  data.remarks.forEach((remark) => notes.append(element("li", remark)));
  if (data.remarks.length) document.getElementById("notes").append(notes);
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

// Lines that lie on each other stay visible, and a print without colours too. Where colours come again, dashes differ.
const DASHES = [[], [9, 4], [3, 3], [12, 3, 3, 3]];
const dashOf = (i) => DASHES[(i + Math.floor(i / COLOURS.length)) % DASHES.length];
// A piece of the line as the background of its mark in the legend.
const markOf = (i, shade) => {
  let at = 0;
  const parts = dashOf(i).map((length, k) => `${k % 2 ? "transparent" : shade} ${at}px ${(at += length)}px`);
  return parts.length ? `repeating-linear-gradient(90deg, ${parts.join(", ")})` : shade;
};
const PAGE_WIDTH = 680; // of a sheet of paper, in the browser's pixels

const drawings = []; // each draws its plot anew
const drawAll = () => drawings.forEach((draw) => draw());

function plot(id, names, columns, options) {
  const host = typeof id === "string" ? document.getElementById(id) : id;
  if (!columns.some(([time]) => time.length)) return;
  const shades = options.shift || 0;
  const line = (name, i) => ({
    label: name, stroke: colour(i + shades), dash: dashOf(i), width: 1.6, spanGaps: true, points: { show: false },
    value: (u, v) => (v === null || v === undefined ? "–" : options.show(v)),
  });
  const values = joined(columns);
  const half = host.closest(".pair") !== null;
  const size = () => ({ width: printing ? (half ? PAGE_WIDTH / 2 - 12 : PAGE_WIDTH) : Math.max(host.clientWidth, 280), height: options.height || 240 });
  let drawn = null;
  const draw = () => {
    if (drawn) drawn.destroy();
    const ink = isDark() ? "#b6c0cc" : "#3c4653";
    const grid = { stroke: isDark() ? "#2b3440" : "#e6eaef", width: 1 };
    const powers = (u, ticks) => ticks.map((tick) => (Math.abs(Math.log10(tick) % 1) > 1e-9 ? null : tick));
    const sparse = options.log ? { filter: powers } : {};
    drawn = new uPlot({
      ...size(),
      series: [options.x, ...names.map(line)],
      legend: { markers: { width: 0, fill: (u, i) => markOf(i - 1, colour(i - 1 + shades)) } },
      hooks: { setCursor: [(u) => host.classList.toggle("hovered", u.cursor.idx !== null && u.cursor.idx !== undefined && u.cursor.left >= 0)] },
      tzDate: (moment) => uPlot.tzDate(new Date(moment * 1000), "Etc/UTC"),
      scales: { x: { time: !!options.time, distr: options.log ? 3 : 1, log: 10, range: options.within }, y: { range: options.range } },
      axes: [
        { values: options.ticks, ...(options.steps ? { incrs: options.steps } : {}), space: options.time ? 84 : 50, label: options.axis, size: 32, labelSize: 20, labelFont: "12px system-ui", stroke: ink, grid: { ...grid, ...sparse }, ticks: { ...grid, size: 5, ...sparse } },
        { size: 58, values: (u, ticks) => ticks.map(options.show), stroke: ink, grid, ticks: { ...grid, size: 5 } },
      ],
    }, values, host);
  };
  draw();
  drawings.push(draw);
  window.addEventListener("resize", () => drawn.setSize(size()));
}

DARK.addEventListener("change", drawAll);
window.addEventListener("beforeprint", () => { printing = true; drawAll(); });
window.addEventListener("afterprint", () => { printing = false; drawAll(); });

const fromZero = (u, least, most) => [0, most > 0 ? most * 1.05 : 1];
// A trace may count its seconds from zero: such times are shown as hours since then, others as dates.
const begins = Math.min(...policies.flatMap((name) => data.series[name].allocated[0].slice(0, 1)));
const counted = begins < 1e8 || begins === Infinity; // nothing happened: no date either
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
  axis: counted ? "hours" : `UTC, from ${iso(begins).slice(0, 10)} on`,
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
  // A logarithmic axis has no zero. It begins at the shortest time, at most five powers of ten below the longest: what took less is drawn
  // at its left end.
  const times = policies.flatMap((policy) => data.cdf[name][policy][0]).filter((value) => value >= 1).map((value) => value / unit.seconds);
  const longest = times.reduce((a, b) => Math.max(a, b), 1 / unit.seconds);
  const shortest = times.reduce((a, b) => Math.min(a, b), longest);
  const least = 10 ** Math.floor(Math.log10(Math.max(shortest, longest / 1e5)));
  const scaled = ([time, share]) => [time.map((value) => Math.max(value / unit.seconds, least)), share];
  const show = (value) => `${Number(value.toPrecision(3))} ${unit.name}`;
  plot(name, policies, policies.map((policy) => last(scaled(data.cdf[name][policy]))), {
    x: { label: "within", value: (u, v) => (v === null ? "" : v <= least ? `${show(v)} or less` : show(v)) },
    axis: NAMES[unit.name],
    within: [least, Math.max(longest, least * 10)],
    log: true,
    show: (v) => v.toFixed(0) + " %",
    range: [0, 100],
    ticks: (u, ticks) => ticks.map((tick) => (tick === null || Math.abs(Math.log10(tick) % 1) > 1e-9 ? "" : String(Number(tick.toPrecision(3))))),
  });
}

document.getElementById("title").textContent = data.title;
const seeds = data.seeds.length > 1 ? `; figures are means over ${data.seeds.length} seeds, plots show seed ${data.seeds[0]}` : "";
const count = policies.length === 1 ? "One policy" : `${policies.length} policies`;
const best = policies.length === 1 ? "" : " The best figure of a row is bold.";
document.getElementById("subtitle").textContent = `${count}, ${number(data.policies[policies[0]].jobs)} jobs${seeds}.${data.conditions.map((each) => ` ${each[0].toUpperCase()}${each.slice(1)}.`).join("")}${best}`;
document.title = `${data.title} – Navarch simulation`;
figures();
const exact = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
plot("course", policies, policies.map((name) => data.course[name] || [[], []]), {
  x: { label: "asked", value: (u, v) => (v === null ? "" : `${exact(v)} %`) },
  axis: "GPUs asked for, % of the cluster's",
  ticks: (u, ticks) => ticks.map((tick) => `${tick} %`),
  show: (v) => `${exact(v)} %`,
  range: [0, 100],
});
if (data.cores) document.querySelectorAll(".unit").forEach((unit) => { unit.textContent = "CPU cores"; });
if (data.gpus || data.cores) plot("allocated", policies, policies.map((name) => data.series[name].allocated), overTime((v) => v.toFixed(0) + " %", [0, 100]));
plot("waiting", policies, policies.map((name) => data.series[name].waiting), overTime(exact));
if (data.gpus) plot("fragmentation", policies, policies.map((name) => data.series[name].fragmentation), overTime((v) => v.toFixed(1) + " %"));
["jct", "queueing"].forEach(distribution);

// The same axes under every policy, so that the plots can be compared. Queues have other colours than the first policies.
const QUEUE_SHIFT = 4;
const held = policies.flatMap((policy) => Object.values(data.series[policy].queues).map((queue) => queue.allocated));
const moments = held.flatMap(([time]) => (time.length ? [time[0], time[time.length - 1]] : []));
const most = held.reduce((top, [, value]) => value.reduce((a, b) => Math.max(a, b), top), 0);
if (most) policies.forEach((policy) => {
  const found = data.series[policy].queues;
  const names = Object.keys(found);
  const host = document.getElementById("queues");
  const part = element("div", undefined, "part");
  part.append(element("h3", policy));
  const drawing = element("div", undefined, "plot");
  part.append(drawing);
  host.append(part);
  const axes = { shift: QUEUE_SHIFT, within: [Math.min(...moments), Math.max(...moments)], range: [0, most * 1.05 || 1], height: 220 };
  plot(drawing, names, names.map((name) => found[name].allocated), { ...overTime(exact), ...axes });
});

function grouped(id, key) {
  const host = document.getElementById(id);
  const names = [...new Set(policies.flatMap((policy) => Object.keys(data.details[policy][key])))];
  if (!names.length) return;
  const all = (figure) => policies.flatMap((policy) => Object.values(data.details[policy][key]).map(figure));
  for (const [title, figure, times] of [["queueing, mean", (g) => g.queueing.mean, true], ["queueing, p90", (g) => g.queueing.p90, true], ["bounded slowdown, mean", (g) => g.slowdown.mean, false]]) {
    const show = times ? inUnit(unitOf(all(figure))) : plain;
    const part = element("div", undefined, "part");
    host.append(part);
    part.append(element("h3", title));
    part.append(table(names.map((name) => {
      const groups = policies.map((policy) => data.details[policy][key][name]);
      return [`${name} (${number((groups.find((group) => group) || { jobs: 0 }).jobs)} jobs)`, show, shorter, groups.map((group) => (group ? figure(group) : null))];
    })));
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
    return [`${size} pods (${number(jobs)} jobs), mean`, wait, shorter, of(size).map((found) => (found ? found.mean : null))];
  })));
}

const owed = [...new Set(policies.flatMap((policy) => Object.keys(data.details[policy].quota)))];
if (owed.length) {
  const value = (name, key) => policies.map((policy) => (data.details[policy].quota[name] || {})[key]);
  const time = inUnit(unitOf(owed.flatMap((name) => [...value(name, "secondsAbove"), ...value(name, "secondsBelowWhileWaiting")])));
  document.getElementById("quotas").append(table(owed.flatMap((name) => [
    [`${name}: guarantee kept`, (v) => (v === undefined ? "–" : v === true || v === 1 ? "yes" : "no"), 0, value(name, "kept")],
    [`${name}: time above its quota`, time, 0, value(name, "secondsAbove")],
    [`${name}: time below it while jobs wait`, time, -1, value(name, "secondsBelowWhileWaiting")],
    [`${name}: GPU hours missed`, (v) => (v === undefined ? "–" : digits(v / 3600)), -1, value(name, "missedGpuSeconds")],
  ])));
}

// Headings without anything below them say nothing.
document.querySelectorAll("main section").forEach((section) => {
  if (![...section.querySelectorAll("[id]")].some((host) => host.childElementCount)) section.remove();
});
