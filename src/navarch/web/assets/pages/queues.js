// Queues: the tree with what each queue is owed, holds, borrows and asks for. The resource is chosen in the address.
import { html, useMemo } from "../core/dom.js";
import { amount, byResource, plain, resourceName } from "../core/format.js";
import { useTopic } from "../core/live.js";
import { address, setQuery } from "../core/router.js";
import { overlaid } from "../core/rows.js";
import { QueueBar, QueueKey, barScale, queueFigures } from "../parts/queue_bars.js";
import { Empty, Loaded, State } from "../parts/notices.js";
import { UsageBars, heldOf, knownSpan, useUsage } from "../parts/usage_bars.js";

const nameOf = (row) => row.name;
const read = (answer) => ({ resources: answer.resources, rows: new Map(answer.rows.map((row) => [row.name, row])) });
const merge = (data, change) => ({ ...data, rows: overlaid(data.rows, change.changed, change.removed, nameOf) });

export function QueuesPage({ query }) {
  const source = useTopic("queues", {}, read, merge);
  return html`
    <div class="page-head"><h1 tabindex="-1">Queues</h1></div>
    <${Loaded} source=${source} what="queues">${(data) => html`<${Tree} data=${data} query=${query} />`}<//>`;
}

function Tree({ data, query }) {
  const rows = useMemo(() => inTree([...data.rows.values()]), [data]);
  const resources = [...data.resources].filter((name) => name !== "pods").sort(byResource);
  const resource = resources.includes(query.resource) ? query.resource : resources[0];
  const usage = useUsage({ resource });
  if (!rows.length) return html`<${Empty}>There are no queues.<//>`;
  const scale = barScale(rows, resource);
  const choose = (event) => setQuery({ resource: event.currentTarget.value });
  return html`
    <div class="filters">
      <label>Resource
        <select value=${resource} onChange=${choose}>${resources.map((name) => html`<option value=${name}
          selected=${name === resource}>${name}</option>`)}</select>
      </label>
      <${QueueKey} />
    </div>
    <div class="panel table-scroll" role="region" aria-label="Queues" tabindex="0">
      <table class="queues">
        <caption class="visually-hidden">Queues with their ${resourceName(resource)}, each below its parent</caption>
        <thead><tr>
          <th scope="col">Queue</th><th scope="col" class="wide-bar">${resourceName(resource)}</th>
            <th scope="col" class="over-time" title=${usage ? `Held in the last hour${knownSpan(usage.rows, usage.seconds)}` : ""}>last hour</th>
            <th scope="col" class="num">holds</th><th scope="col" class="num">owed</th>
          <th scope="col" class="num minor">borrowed</th><th scope="col" class="num minor">asks</th><th scope="col" class="num minor">quota</th>
            <th scope="col" class="num minor">guarantee</th>
          <th scope="col" class="num minor">limit</th><th scope="col" class="num minor">weight</th>
            <th scope="col" class="num">waiting</th><th scope="col" class="num minor">running</th><th scope="col" class="minor">State</th>
        </tr></thead>
        <tbody>${rows.map((row) => html`<${QueueRow} key=${row.name} row=${row} resource=${resource} scale=${scale}
          usage=${usage} />`)}</tbody>
      </table>
    </div>`;
}

function QueueRow({ row, resource, scale, usage }) {
  const found = queueFigures(row, resource);
  const show = (value) => amount(resource, value);
  const starved = found.due !== undefined && found.allocated < Math.min(found.due, found.request);
  const waiting = row.jobs.waiting;
  return html`
    <tr>
      <th scope="row" style=${{ paddingLeft: `${8 + 18 * row.depth}px` }}><a href=${address(["queues", row.name])}>${row.name}</a>
        </th>
      <td class="wide-bar"><${QueueBar} row=${row} resource=${resource} scale=${scale} /></td>
      <td class="over-time"><${UsageBars} held=${heldOf(usage, row.name, resource)} seconds=${usage?.seconds} resource=${resource}
        name=${row.name} whole=${scale} owed=${found.due ?? 0} bars=${40} /></td>
      <td class="num">${show(found.allocated)}</td>
      <td class="num">${show(found.due)}${starved && html` <${State} value="starved" tone="warn" />`}</td>
      <td class="num minor">${found.borrowed ? show(found.borrowed) : "–"}</td>
      <td class="num minor">${show(found.request)}</td>
      <td class="num minor">${show(found.quota)}</td>
      <td class="num minor">${show(found.guarantee)}</td>
      <td class="num minor">${show(found.limit)}</td>
      <td class="num minor">${plain(row.weight)}</td>
      <td class="num">${waiting ? html`<a
        href=${address(["jobs"], { queue: row.name, state: "waiting" })}>${plain(waiting)}</a>` : "0"}</td>
      <td class="num minor">${plain(row.jobs.running)}</td>
      <td class="minor"><${State} value=${row.state} /></td>
    </tr>`;
}

// Each row below its parent, siblings by name: rows that came by the stream find their place.
function inTree(rows) {
  const names = new Set(rows.map(nameOf));
  const below = new Map();
  for (const row of rows) {
    const parent = row.parent !== row.name && names.has(row.parent) ? row.parent : "";
    below.set(parent, [...(below.get(parent) ?? []), row]);
  }
  const found = [];
  const seen = new Set();
  const add = (parent, depth) => {
    for (const row of (below.get(parent) ?? []).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (seen.has(row.name)) continue;
      seen.add(row.name);
      found.push({ ...row, depth });
      add(row.name, depth + 1);
    }
  };
  add("", 0);
  return found.concat(rows.filter((row) => !seen.has(row.name)));
}
