// Nodes: a map of all nodes, and the same as a table. Level, colouring, resource and text are in the address.
import { html, useMemo, useState } from "../core/dom.js";
import { amount, byResource, count, percent, plain, resourceName } from "../core/format.js";
import { useTopic } from "../core/live.js";
import { useThemeVersion } from "../core/preferences.js";
import { address, navigate, setQuery } from "../core/router.js";
import { nodeObjects, overlaid } from "../core/rows.js";
import { comparison, useStableOrder } from "../core/stable_order.js";
import { Bar } from "../parts/bars.js";
import { Grid } from "../parts/grid.js";
import { JobLink, QueueLink } from "../parts/names.js";
import { COLOURINGS, CORDONED, READY, TAINTED, colouring } from "../parts/node_colours.js";
import { NodeMap } from "../parts/node_map.js";
import { Loaded, State } from "../parts/notices.js";

const nameOf = (node) => node.name;
const read = (answer) => {
  const nodes = new Map(nodeObjects(answer).map((node) => [node.name, node]));
  return { levels: answer.levels, resources: answer.resources, nodes };
};
const merge = (data, change) => ({ ...data, nodes: overlaid(data.nodes, nodeObjects(change.changed), change.removed, nameOf) });

export function NodesPage({ query }) {
  const source = useTopic("nodes", {}, read, merge);
  return html`
    <div class="page-head"><h1 tabindex="-1">Nodes</h1></div>
    <${Loaded} source=${source} what="nodes">${(data) => html`<${Nodes} data=${data} query=${query} />`}<//>`;
}

function Nodes({ data, query }) {
  const resources = [...data.resources].filter((name) => name !== "pods").sort(byResource);
  const resource = resources.includes(query.resource) ? query.resource : resources[0];
  const column = data.resources.indexOf(resource);
  const level = data.levels.includes(query.level) ? query.level : query.level === "none" ? "none" : (data.levels[data.levels.length - 1] ?? "none");
  const colour = query.colour in COLOURINGS ? query.colour : "use";
  const accept = useMemo(() => filter(query.text), [query.text]);
  const nodes = useMemo(() => byName([...data.nodes.values()].filter(accept)), [data, accept]);
  const asTable = query.view === "table";
  const field = (name) => (event) => setQuery({ [name]: event.currentTarget.value });
  const option = (value, text, chosen) => html`<option value=${value} selected=${value === chosen}>${text}</option>`;
  return html`
    <form class="filters" aria-label="How nodes are shown" onSubmit=${(event) => event.preventDefault()}>
      <div class="row" role="group" aria-label="View">
        <button type="button" aria-pressed=${asTable ? "false" : "true"} onClick=${() => setQuery({ view: "" })}>Map</button>
        <button type="button" aria-pressed=${asTable ? "true" : "false"} onClick=${() => setQuery({ view: "table" })}>Table</button>
      </div>
      <label>Resource <select onChange=${field("resource")}>${resources.map((name) => option(name, name, resource))}</select>
        </label>
      ${!asTable && html`
        <label>Colour <select
          onChange=${field("colour")}>${Object.entries(COLOURINGS).map(([name, text]) => option(name, text, colour))}</select>
          </label>
        <label>Group by <select
          onChange=${field("level")}>${[...data.levels, "none"].map((name) => option(name, name === "none" ? "nothing" : name.replace(/^.*\//, ""), level))}</select>
          </label>`}
      <label class="search">Text <input type="search" value=${query.text ?? ""} data-search title="The key / leads here"
        onInput=${field("text")} placeholder="node, rack, queue or job" />
        </label>
      <span class="note" role="status">${count(nodes.length, "node")}, ${totals(nodes, column, resource)}</span>
    </form>
    ${asTable
      ? html`<${NodeTable} nodes=${data.nodes} accept=${accept} column=${column} resource=${resource} query=${query} />`
      : html`<${MapView} nodes=${nodes} level=${data.levels.indexOf(level)} colour=${colour} column=${column}
        resource=${resource} />`}`;
}

function MapView({ nodes, level, colour, column, resource }) {
  const theme = useThemeVersion();
  const names = nodes.map(nameOf).join("\n");
  // A new use of nodes changes colours, not the places of cells: groups depend on names and domains alone.
  const groups = useMemo(() => grouped(nodes, level), [names, level]);
  const { colourOf, key } = useMemo(() => colouring(colour, nodes, column), [nodes, colour, column, theme]);
  const byIndex = useMemo(() => (i) => colourOf(nodes[i]), [colourOf, nodes]);
  return html`
    <section class="panel">
      <${NodeMap} groups=${groups} colourOf=${byIndex} textOf=${(i) => written(nodes[i], column, resource)} label=${`Map of ${count(nodes.length, "node")} by ${colour}`}
        tell=${(i) => told(nodes[i], column, resource)} open=${(i) => navigate(["nodes", nodes[i].name])} />
      <div class="key">${key.map(([swatch, text]) => html`<span><i style=${{ background: swatch }}></i>${text}</span>`)}</div>
    </section>`;
}

// The lines in a cell: the name, how much is used, and of how many devices or how much.
function written(node, column, resource) {
  const [have, used] = [node.allocatable[column], node.used[column]];
  if (!(node.status & READY)) return [node.name, "not ready"];
  return have > 0 ? [node.name, percent(used / have), `${amount(resource, used)} of ${amount(resource, have)}`] : [node.name];
}

function NodeTable({ nodes, accept, column, resource, query }) {
  const [again, setAgain] = useState(0);
  const columns = [
    { id: "name", title: "Node", width: "16%", sortable: true, text: nameOf, cell: (node) => html`<a
      href=${address(["nodes", node.name])}>${node.name}</a>` },
    { id: "status", title: "Status", width: "120px", sortable: true, cell: (node) => html`<${State} value=${statusText(node)} />` },
    { id: "use", title: resourceName(resource), width: "14%", sortable: true, cell: (node) => html`<${Bar} thin
      parts=${useParts(node, column)}
      whole=${node.allocatable[column]} label=${told(node, column, resource)} />` },
    { id: "used", title: "Used", width: "84px", num: true, sortable: true, cell: (node) => amount(resource, node.used[column]) },
    { id: "free", title: "Free", width: "84px", num: true, sortable: true, minor: true, cell: (node) => amount(resource, node.allocatable[column] - node.used[column]) },
    { id: "useless", title: "Useless", width: "84px", num: true, sortable: true, minor: true, cell: (node) => (node.useless[column] ? amount(resource, node.useless[column]) : "–") },
    { id: "pods", title: "Pods", width: "60px", num: true, sortable: true, minor: true, cell: (node) => plain(node.pods) },
    { id: "place", title: "Place", width: "13%", sortable: true, minor: true, text: (node) => node.domains.filter(Boolean).join(" / "), cell: (node) => node.domains.filter(Boolean).slice(-2).join(" / ") },
    { id: "queue", title: "Queue", width: "9%", sortable: true, minor: true, text: (node) => node.queue ?? "", cell: (node) => (node.queue ? html`<${QueueLink}
      name=${node.queue} />` : "–") },
    { id: "job", title: "Job with most of it", sortable: true, minor: true, text: (node) => node.job ?? "", cell: (node) => (node.job ? html`<${JobLink}
      id=${node.job} />` : "–") },
  ];
  const id = (query.sort ?? "name").replace(/^-/, "");
  const descending = (query.sort ?? "").startsWith("-");
  const values = {
    name: nameOf, status: statusText, use: (node) => node.used[column] / node.allocatable[column], used: (node) => node.used[column],
    free: (node) => node.allocatable[column] - node.used[column], useless: (node) => node.useless[column], pods: (node) => node.pods,
    place: (node) => node.domains.join("/"), queue: (node) => node.queue, job: (node) => node.job,
  };
  const { ordered, moved } = useStableOrder(nodes, accept, comparison(values[id] ?? nameOf, descending, nameOf), [query.sort, query.text, resource, again].join("\n"));
  return html`
    ${moved && html`<div><button type="button" onClick=${() => setAgain(again + 1)}>Sort again</button></div>`}
    <div class="fill shorter">
      <${Grid} label="Nodes" columns=${columns} count=${ordered.length} rowAt=${(i) => ordered[i]} keyOf=${nameOf}
        sort=${{ id, descending }}
      onSort=${(next) => setQuery({ sort: (next.descending ? "-" : "") + next.id })} /></div>`;
}

function filter(text) {
  const wanted = (text ?? "").toLowerCase();
  return (node) => !wanted || `${node.name}\n${node.queue}\n${node.job}\n${node.domains.join("\n")}`.toLowerCase().includes(wanted);
}

// The API sends nodes by name, so only nodes that joined since then make a sort necessary.
function byName(nodes) {
  const inOrder = nodes.every((node, i) => i === 0 || nodes[i - 1].name < node.name);
  return inOrder ? nodes : nodes.sort((a, b) => (a.name < b.name ? -1 : 1));
}

// Nodes by their place at a level. A place that exists below several wider ones is named with them: "a / rack-1", "b / rack-1".
function grouped(nodes, level) {
  const found = new Map();
  nodes.forEach((node, i) => {
    const path = level < 0 ? "all nodes" : node.domains.slice(0, level + 1).filter(Boolean).join(" / ") || "elsewhere";
    if (!found.has(path)) found.set(path, { name: (level >= 0 && node.domains[level]) || path, path, nodes: [] });
    found.get(path).nodes.push(i);
  });
  const groups = [...found.values()];
  const unique = new Set(groups.map((group) => group.name)).size === groups.length;
  return groups
    .map(({ name, path, nodes: members }) => ({ name: unique ? name : path, nodes: members }))
    .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
}

function useParts(node, column) {
  const [have, used, useless] = [node.allocatable[column], node.used[column], node.useless[column]];
  return [{ value: used, kind: "used" }, { value: have - used - useless, kind: "free" }, { value: useless, kind: "useless" }];
}

function statusText(node) {
  const ready = node.status & READY ? "Ready" : "NotReady";
  return [ready, node.status & CORDONED && "SchedulingDisabled", node.status & TAINTED && "Tainted"].filter(Boolean).join(", ");
}

function told(node, column, resource) {
  const [have, used, useless] = [node.allocatable[column], node.used[column], node.useless[column]];
  const room = have > 0 ? `${amount(resource, used)} of ${amount(resource, have)} ${resourceName(resource)} used` : `no ${resourceName(resource)}`;
  const parts = [
    `${node.name}: ${room}`,
    useless > 0 && `${amount(resource, useless)} free but useless now`,
    count(node.pods, "pod"),
    node.queue && `queue ${node.queue}`,
    node.job && `job ${node.job}`,
    statusText(node) !== "Ready" && statusText(node),
  ];
  return parts.filter(Boolean).join(" · ");
}

function totals(nodes, column, resource) {
  const sum = (part) => nodes.reduce((total, node) => total + node[part][column], 0);
  const have = sum("allocatable");
  return have > 0 ? `${percent(sum("used") / have)} of ${amount(resource, have)} ${resourceName(resource)} used` : `no ${resourceName(resource)}`;
}
