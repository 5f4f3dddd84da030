// One node: its devices with the pods on them, its NUMA zones, its pods, and why it takes nothing.
import { html, useMemo } from "../core/dom.js";
import { age, amount, amounts, byResource, count, percent, plain, quantity, resourceName } from "../core/format.js";
import { useResource } from "../core/live.js";
import { objects } from "../core/rows.js";
import { Bar } from "../parts/bars.js";
import { Few, JobLink, QueueLink } from "../parts/names.js";
import { Empty, Facts, Loaded, State } from "../parts/notices.js";
import { Table, bar, num } from "../parts/table.js";

export function NodePage({ parts }) {
  const name = parts.join("/");
  const concerns = (change) => change.removed.includes(name) || change.changed.names.includes(name);
  const source = useResource(["nodes", name], "nodes", concerns);
  return html`
    <div class="page-head"><h1 tabindex="-1"><span class="crumb"><a href="#/nodes">Nodes</a> / </span>${name}</h1></div>
    <${Loaded} source=${source} what=${`node ${name}`}>${(data) => html`<${Node} data=${data} />`}<//>`;
}

function Node({ data }) {
  const { node, explanation } = data;
  return html`
    <${Facts} facts=${[
      ["Status", html`<${State} value=${node.status} />`],
      node.zone && ["Zone", node.zone],
      ["Pods", plain(data.pods.rows.length)],
      ["Age", age(data.created)],
      explanation?.taints?.length > 0 && ["Taints", explanation.taints.map((taint) => html`<${State} value=${taint} tone="warn" /> `)],
    ]} />
    <div class="panels two even">
      <${Use} node=${node} useless=${explanation?.useless ?? {}} />
      <${Devices} devices=${data.devices} />
      <${Zones} zones=${data.zones} />
      <section class="panel wide"><h2>${takesNothing(explanation) ? "Why it takes nothing" : "What it tells waiting pods"}</h2>
        <${Refusals} explanation=${explanation} /></section>
      <${Pods} pods=${data.pods} />
      <section class="panel wide"><h2>Labels</h2>
        <dl>${Object.entries(data.labels).map(([key, value]) => html`<dt class="mono">${key}</dt>
        <dd class="mono">${value}</dd>`)}</dl></section>
    </div>`;
}

function Use({ node, useless }) {
  const names = Object.keys(node.allocatable).filter((name) => name !== "pods" && quantity(node.allocatable[name]) > 0).sort(byResource);
  return html`
    <section class="panel"><h2>Use</h2>
      <div class="capacity">${names.map((name) => {
        const [have, used, lost] = [quantity(node.allocatable[name]), quantity(node.used[name]), quantity(useless[name])];
        const text = `${amount(name, used)} of ${amount(name, have)} used (${percent(used / have)})${lost > 0 ? `, ${amount(name, lost)} free but useless now` : ""}`;
        return html`
          <strong>${resourceName(name)}</strong>
          <${Bar}
            parts=${[{ value: used, kind: "used" }, { value: have - used - lost, kind: "free" }, { value: lost, kind: "useless" }]}
            whole=${have} label=${`${resourceName(name)}: ${text}`} />
          <div class="figures-line">${text}</div>`;
      })}</div>
    </section>`;
}

// One box a device. The part of each pod fills the bar at the foot of the box.
function Devices({ devices }) {
  if (!devices?.length) return null;
  return html`
    <section class="panel">
      <h2>Devices <span class="note">${count(devices.filter((each) => each.use === "free").length, "free device")} of ${devices.length}</span>
      </h2>
      <ul class="devices">${devices.map((device) => html`
        <li class=${`device ${device.use}`} key=${`${device.resource} ${device.pool ?? ""} ${device.name}`}>
          <b>${deviceName(device)}</b>
          ${device.about && html`<span class="note">${device.about}</span>`}
          ${device.pods.length === 0
            ? html`<span class="note">${device.use === "free" ? "free" : `held by ${claimNames(device) || "a pod that is not known"}`}</span>`
            : device.pods.map((each) => html`<span class="holder"
              title=${each.pod ?? "hidden"}>${each.pod?.replace(/^[^/]*\//, "") ?? "hidden"}${each.part !== null && each.part < 1 ? ` (${percent(each.part)})` : ""}</span>`)}
          <${Bar} thin
            parts=${[{ value: filled(device), kind: device.use === "shared" ? "borrowed" : "used" }]}
            whole=${1} label=${`${device.use}, ${count(device.pods.length, "pod")}`} />
        </li>`)}
      </ul>
    </section>`;
}

// A device of a driver has the name that the driver gave it; counted devices have numbers.
const deviceName = (device) => (device.pool === undefined ? `${resourceName(device.resource)} ${device.name}` : device.name);
const claimNames = (device) => (device.claims ?? []).map((name) => name ?? "a hidden claim").join(", ");

// How much of the bar is filled. The part of a pod on a shared device is not always known: then the bar is full.
function filled({ use, pods }) {
  if (use === "free") return 0;
  return use === "held" || pods.some((each) => each.part === null) ? 1 : pods.reduce((sum, each) => sum + each.part, 0);
}

const takesNothing = (explanation) => explanation?.waiting.length > 0 && explanation.waiting.every((each) => each.refused.length > 0);

function Refusals({ explanation }) {
  if (!explanation) return html`<${Empty}>Not known.<//>`;
  if (!explanation.waiting.length) return html`<${Empty}>No pod waits.<//>`;
  return html`
    <${Table} label="What waiting pods are told" tall
      columns=${["Waiting jobs", num("pods"), "ask for", "the node says"]}>${explanation.waiting.map((each) => html`
        <tr><td><${Few} items=${each.jobs.map((job) => html`<${JobLink} id=${job} />`)} most=${3} /></td>
          <td class="num">${plain(each.pods)}</td><td>${amounts(each.requests)}</td>
        <td class="anywhere">${each.refused.length ? each.refused.join("; ") : html`<${State} value="would take one" tone="good" />`}</td>
          </tr>`)}
      <//>
    ${explanation.notes?.map((note) => html`<p class="note">${note}</p>`)}`;
}

function Zones({ zones }) {
  if (!zones) return null;
  return html`
    <section class="panel"><h2>NUMA zones</h2>
      <${Table} label="NUMA zones"
        columns=${["Zone", "resource", bar("used"), num("amount")]}>${zones.flatMap((zone) => Object.keys(zone.allocatable).sort(byResource).map((name, i) => html`
          <tr class="middle"><td class="nowrap">${i === 0 ? zone.name : ""}</td><td>${resourceName(name)}</td>
          <td class="wide-bar">
            <${Bar} thin parts=${[{ value: zone.used[name] ?? 0, kind: "used" }]} whole=${zone.allocatable[name]}
              label=${`${zone.name} ${name}`} />
            </td>
          <td class="num">${amount(name, zone.used[name] ?? 0)} of ${amount(name, zone.allocatable[name])}</td></tr>`))}
        <//>
    </section>`;
}

function Pods({ pods }) {
  const rows = useMemo(() => objects(pods.columns, pods.rows), [pods]);
  return html`
    <section class="panel wide"><h2>Pods</h2>
      ${rows.length === 0 ? html`<${Empty}>None.<//>` : html`
        <${Table} label="Pods of the node"
          columns=${["Pod", "job", "queue", "status", num("CPU"), num("memory"), num("GPU"), num("priority")]}>${rows.map((row, i) => html`
            <tr key=${row.pod ?? i}><td class="anywhere">${row.pod ?? html`<span class="note">hidden</span>`}</td>
              <td class="anywhere"><${JobLink} id=${row.job} /></td><td><${QueueLink} name=${row.queue} /></td><td>
              <${State} value=${row.status} /></td>
            <td class="num">${amount("cpu", row.cpu)}</td><td class="num">${amount("memory", row.memory)}</td>
              <td class="num">${plain(row.gpus)}</td><td class="num">${plain(row.priority)}</td></tr>`)}
          <//>`}
    </section>`;
}
