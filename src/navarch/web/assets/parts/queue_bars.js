// What a queue holds beside what it is owed, as a bar: its own part, the borrowed part, and marks for quota, guarantee and fair share.
import { html } from "../core/dom.js";
import { amount, resourceName } from "../core/format.js";
import { Bar, Key } from "./bars.js";

// The figures of one queue and one resource. `due`: the fair share where the policy has one, else what the queue deserves.
export function queueFigures({ numbers }, resource) {
  const of = (name) => numbers[name]?.[resource];
  return {
    allocated: of("allocated") ?? 0,
    borrowed: of("borrowed") ?? 0,
    request: of("request") ?? 0,
    quota: of("quota"),
    guarantee: of("guarantee"),
    limit: of("limit"),
    due: of("fairShare") ?? of("deserved"),
  };
}

// The value at the right end of the bars: the most that any queue holds, asks for or is owed.
export function barScale(rows, resource) {
  return rows.reduce((most, row) => {
    const { allocated, quota = 0, due = 0, guarantee = 0 } = queueFigures(row, resource);
    return Math.max(most, allocated, quota, due, guarantee);
  }, 0);
}

export function QueueBar({ row, resource, scale }) {
  const found = queueFigures(row, resource);
  const show = (value) => amount(resource, value);
  const own = found.allocated - found.borrowed;
  const parts = [{ value: own, kind: "used" }, { value: found.borrowed, kind: "borrowed" }];
  const marks = [
    { value: found.due ?? 0, name: `is owed ${show(found.due)}` },
    { value: found.guarantee ?? 0, name: `guarantee ${show(found.guarantee)}` },
  ];
  const label = `${row.name} holds ${show(found.allocated)} ${resourceName(resource)}, is owed ${show(found.due)}, borrows ${show(found.borrowed)}`;
  return html`<${Bar} parts=${parts} whole=${scale} marks=${marks} label=${label} />`;
}

export function QueueKey() {
  return html`<${Key}
    entries=${[["used", "held within its due"], ["borrowed", "borrowed beyond its due"], ["mark", "what it is owed, guarantee"]]} />`;
}
