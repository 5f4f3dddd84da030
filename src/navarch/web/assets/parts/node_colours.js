// The colour of a node's cell: by use, by fragmentation, or by the queue or job that holds most of it.
import { themeColour } from "../core/preferences.js";
import { seriesColour } from "./plot.js";

const STEPS = 50;
const MOST_NAMES = 11; // further queues or jobs share one colour
export const READY = 1;
export const CORDONED = 2;
export const TAINTED = 4;

export const COLOURINGS = { use: "use", fragmentation: "fragmentation", queue: "queue", job: "job" };

// {colourOf(node), key: [[colour, text]]} for nodes of the page; `column` is the place of the resource.
export function colouring(kind, nodes, column) {
  const special = { notReady: themeColour("bad"), closed: themeColour("strong-line"), none: themeColour("line") };
  const base = kind === "queue" || kind === "job" ? byName(kind, nodes, special) : byShare(kind, column, special);
  const colourOf = (node) => {
    if (!(node.status & READY)) return special.notReady;
    return node.status & CORDONED && !base.isUsed(node) ? special.closed : base.colourOf(node);
  };
  const extra = [
    nodes.some((node) => !(node.status & READY)) && [special.notReady, "not ready"],
    nodes.some((node) => node.status & CORDONED) && [special.closed, "cordoned"],
  ].filter(Boolean);
  return { colourOf, key: [...base.key, ...extra] };
}

function byShare(kind, column, special) {
  const [low, high] = kind === "use" ? ["free", "used"] : ["free", "useless"];
  const colours = gradient(themeColour(low), themeColour(high));
  const part = kind === "use" ? "used" : "useless";
  const share = (node) => (node.allocatable[column] > 0 ? node[part][column] / node.allocatable[column] : null);
  return {
    isUsed: (node) => node.used[column] > 0,
    colourOf: (node) => {
      const found = share(node);
      return found === null ? special.none : colours[Math.round(Math.max(0, Math.min(1, found)) * STEPS)];
    },
    key: [
      [colours[0], kind === "use" ? "free" : "all of what is free fits a waiting pod"],
      [colours[STEPS / 2], "half"],
      [colours[STEPS], kind === "use" ? "full" : "free, but no waiting pod fits"],
      [special.none, "has none"],
    ],
  };
}

function byName(kind, nodes, special) {
  const counts = new Map();
  for (const node of nodes) if (node[kind]) counts.set(node[kind], (counts.get(node[kind]) ?? 0) + 1);
  const names = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MOST_NAMES).map(([name]) => name);
  const colours = new Map(names.map((name, i) => [name, seriesColour(i)]));
  const other = themeColour("dim");
  const more = counts.size > MOST_NAMES ? [[other, `${counts.size - MOST_NAMES} more`]] : [];
  return {
    isUsed: (node) => Boolean(node[kind]),
    colourOf: (node) => (node[kind] ? (colours.get(node[kind]) ?? other) : special.none),
    key: [...[...colours].map(([name, colour]) => [colour, name]), ...more, [special.none, "empty"]],
  };
}

function gradient(low, high) {
  const [a, b] = [numbers(low), numbers(high)];
  return Array.from({ length: STEPS + 1 }, (_, i) => {
    const mixed = a.map((value, n) => Math.round(value + ((b[n] - value) * i) / STEPS));
    return `rgb(${mixed.join(",")})`;
  });
}

function numbers(colour) {
  return (colour.match(/[0-9.]+/g) ?? [0, 0, 0]).slice(0, 3).map(Number);
}
