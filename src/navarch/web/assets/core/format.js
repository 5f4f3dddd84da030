// Amounts, times and names as people read them. Pure functions.

const SUFFIXES = {
  "": 1, n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

// A Kubernetes quantity as a number: "1500m" is 1.5, "2Gi" is 2147483648. What is no quantity is 0.
export function quantity(text) {
  if (typeof text === "number") return text;
  const match = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/.exec(text ?? "");
  return match && match[2] in SUFFIXES ? Number(match[1]) * SUFFIXES[match[2]] : 0;
}

// A number in the unit in which people speak of the resource: bytes as GiB, the rest as it is.
export function amount(resource, value) {
  if (value === null || value === undefined) return "–";
  const number = quantity(value);
  if (isBytes(resource)) return bytes(number);
  return plain(number);
}

export function isBytes(resource) {
  return resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-");
}

export function bytes(number) {
  for (const [unit, size] of [["Pi", 2 ** 50], ["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]]) {
    if (Math.abs(number) >= size) return `${plain(number / size)} ${unit}B`;
  }
  return `${plain(number)} B`;
}

export function plain(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  const digits = Math.abs(number) >= 100 || Number.isInteger(number) ? 0 : Math.abs(number) >= 10 ? 1 : 2;
  return number.toLocaleString("en", { maximumFractionDigits: digits });
}

export function percent(part) {
  if (part === null || part === undefined || Number.isNaN(part)) return "–";
  if (part > 0 && part < 0.0005) return "< 0.1 %";
  return `${(100 * part).toFixed(part > 0 && part < 0.1 ? 1 : 0)} %`;
}

// "nvidia.com/gpu" is "GPU" to people; other names stay as they are.
export function resourceName(name) {
  if (/(^|[./])gpu$/.test(name)) return "GPU";
  if (name === "cpu") return "CPU";
  return name;
}

// All amounts on one line, accelerators first.
export function amounts(values) {
  const names = Object.keys(values ?? {}).filter((name) => name !== "pods").sort(byResource);
  return names.map((name) => `${amount(name, values[name])} ${resourceName(name)}`).join(", ");
}

export function byResource(left, right) {
  const rank = (name) => (name.includes("gpu") ? 0 : name === "cpu" ? 1 : name === "memory" ? 2 : name === "pods" ? 9 : 3);
  return rank(left) - rank(right) || (left < right ? -1 : left > right ? 1 : 0);
}

// How long, in two units at most: "4d 2h", "2h 14m", "38s", "12 ms".
export function span(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 0) return `-${span(-seconds)}`;
  if (seconds < 1) return `${plain(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? plain(Math.round(seconds * 10) / 10) : Math.round(seconds)}s`;
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[first];
  const rest = Math.floor((seconds % size) / units[first + 1][1]);
  return `${Math.floor(seconds / size)}${unit}` + (rest ? ` ${rest}${units[first + 1][0]}` : "");
}

// Durations that stand beside each other have one unit, that of the longest. Numbers in one unit can be compared at a glance.
const UNITS = [[120, 1, "s"], [7200, 60, "min"], [259200, 3600, "h"], [Infinity, 86400, "d"]];

export function unitOf(values) {
  const longest = values.reduce((most, value) => (typeof value === "number" && value > most ? value : most), 0);
  const [, seconds, name] = UNITS.find(([limit]) => longest < limit);
  return { seconds, name };
}

// A function that shows seconds in the unit. Three digits count, so that a short time in a long unit is not shown as zero.
export function inUnit({ seconds, name }) {
  return (value) => {
    if (value === null || value === undefined) return "–";
    const number = value / seconds;
    const digits = !number || number >= 100 ? 0 : number >= 10 ? 1 : number >= 1 ? 2 : 3;
    return `${number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}`;
  };
}

export function moment(value) {
  if (value === null || value === undefined || value === "") return null;
  const found = typeof value === "number" ? new Date(value * 1000) : new Date(value);
  return Number.isNaN(found.getTime()) ? null : found;
}

export function age(value, now = Date.now()) {
  const found = moment(value);
  return found ? span(Math.max(0, Math.floor((now - found.getTime()) / 1000))) : "–";
}

// Of today: the time. Of another day: date and time.
export function clock(value, now = Date.now()) {
  const found = moment(value);
  if (!found) return "–";
  const time = found.toLocaleTimeString("en-GB");
  return found.toDateString() === new Date(now).toDateString() ? time : `${found.toLocaleDateString("en-CA")} ${time.slice(0, 5)}`;
}

export function count(number, one, many = one + "s") {
  return `${plain(number)} ${number === 1 ? one : many}`;
}
