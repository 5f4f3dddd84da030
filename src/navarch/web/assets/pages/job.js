// One job: why it waits, what would start it, its pods on nodes, its history.
import { html, useMemo, useState } from "../core/dom.js";
import { age, amounts, clock, count, plain } from "../core/format.js";
import { useResource } from "../core/live.js";
import { objects } from "../core/rows.js";
import { Ahead, Blockers, Cause, Changes, NodeReasons, Placements } from "../parts/explanation.js";
import { Few, NodeLink, QueueLink } from "../parts/names.js";
import { Empty, Loaded, State } from "../parts/notices.js";
import { Grid } from "../parts/grid.js";
import { shownName, startText } from "../parts/job_cells.js";
import { TrialsButton, useTrials } from "../parts/trials.js";
import { Table } from "../parts/table.js";

export function JobPage({ parts }) {
  const id = parts.join("/");
  const concerns = (change) => change.removed.includes(id) || change.changed.some((row) => row[0] === id);
  const source = useResource(["jobs", ...parts], "jobs", concerns, { namespace: parts[0] });
  return html`
    <div class="page-head"><h1 tabindex="-1"><span class="crumb"><a href="#/jobs">Jobs</a> / </span>${source.data ? shownName(source.data.job) : id}</h1></div>
    <${Loaded} source=${source} what=${`job ${id}`}>${(data) => html`<${Job} data=${data} />`}<//>`;
}

function Job({ data }) {
  const { job, explanation } = data;
  const trials = useTrials(job.id);
  const full = trials.explanation ?? explanation;
  const waits = job.state === "waiting" || full?.state === "pending" || full?.state === "impossible";
  return html`
    <${Summary} data=${data} />
    <div class="panels two">
      ${full && waits && html`
        <section class="panel wide"><h2>Why it waits</h2>
          <div class="stack"><${Cause} explanation=${full} /><${TrialsButton} trials=${trials} text="What would help" /></div>
        </section>
        ${trials.explanation && html`
          <section class="panel wide"><h2>What would start it <span class="note">each line was tried on a copy of the cluster</span>
            </h2>
            <${Changes} changes=${full.changes} />
            ${full.notEstablished?.length > 0 && html`<p class="note">Not established: ${full.notEstablished.join("; ")}</p>`}
          </section>
          <section class="panel"><h2>What blocks it</h2><${Blockers} blockers=${full.blockers} /></section>`}
        <section class="panel"><h2>Nodes</h2><${NodeReasons} nodes=${full.nodes} /></section>
        <section class="panel"><h2>Order</h2><${Ahead} order=${full.order} /></section>`}
      ${full && !waits && html`
        <section class="panel wide"><h2>Explanation</h2>
          <div class="stack">
            <p class="notice"><b>${full.cause.code}</b>${full.cause.message && `: ${full.cause.message}`}</p>
            ${full.placements.length > 0 && html`<${Placements} placements=${full.placements} />`}
            ${trials.explanation ? null : html`<${TrialsButton} trials=${trials} text="Why on these nodes" />`}
          </div>
        </section>`}
      ${full?.evictions?.length > 0 && html`<section class="panel wide"><h2>Evictions</h2>
        <${Evictions} evictions=${full.evictions} /></section>`}
      ${!full && html`<section class="panel wide"><${Empty}>Another scheduler decides for this job, so there is no explanation.<//>
        </section>`}
      <${Members} members=${data.members} />
      <section class="panel"><h2>Timeline</h2><${Timeline} timeline=${data.timeline} /></section>
      <section class="panel"><h2>Conditions</h2><${Conditions} conditions=${data.conditions} /></section>
      <section class="panel wide"><h2>Events</h2><${Events} events=${data.events} /></section>
    </div>`;
}

function summaryText(job) {
  const pods = `${job.running} running, ${job.pending} pending, needs ${count(job.minMember, "pod")}`;
  return `phase ${job.phase} · priority ${plain(job.priority)} · created ${age(job.created)} ago · ${pods}`;
}

function Summary({ data }) {
  const { job, labels, requests } = data;
  const [open, setOpen] = useState(false);
  const entries = Object.entries(labels ?? {});
  return html`
    <div class="row">
      <${State} value=${job.state} />
      ${job.never && html`<${State} value="never starts" tone="bad" />`}
      ${job.start && html`<span>starts <b>${startText(job)}</b></span>`}
      ${job.startUnknown && html`<span class="note">start not known: ${job.startUnknown}</span>`}
      <span>${job.kind} in queue <${QueueLink} name=${job.queue} /></span>
      <span class="note">${summaryText(job)}</span>
      ${amounts(requests) && html`<span class="note">asks for ${amounts(requests)}</span>`}
      ${entries.length > 0 && html`<button type="button" class="quiet" aria-expanded=${open ? "true" : "false"}
        onClick=${() => setOpen(!open)}>${count(entries.length, "label")}</button>`}
    </div>
    ${open && html`<dl class="panel">${entries.map(([key, value]) => html`<dt class="mono">${key}</dt>
      <dd class="mono">${value}</dd>`)}</dl>`}`;
}

const MEMBER_COLUMNS = [
  { id: "pod", title: "Pod", width: "32%", cell: (row) => row.pod },
  { id: "role", title: "Role", width: "14%", minor: true, cell: (row) => row.role || "–" },
  { id: "status", title: "Status", width: "100px", cell: (row) => html`<${State} value=${row.status} />` },
  { id: "node", title: "Node", width: "20%", text: (row) => row.node ?? "", cell: (row) => html`<${NodeLink} name=${row.node} />` },
  { id: "started", title: "Runs for", width: "84px", num: true, cell: (row) => (row.started && row.status === "Running" ? age(row.started) : "–") },
  { id: "message", title: "Message", minor: true, cell: (row) => row.message ?? "" },
];

function Members({ members }) {
  const rows = useMemo(() => objects(members.columns, members.rows), [members]);
  const nodes = new Set(rows.map((row) => row.node).filter(Boolean));
  return html`
    <section class="panel wide">
      <h2>Pods <span class="note">${count(members.total, "pod")} on ${count(nodes.size, "node")}${members.total > rows.length ? `; the first ${rows.length} are listed` : ""}</span>
        </h2>
      ${rows.length === 0 ? html`<${Empty}>It has no pods.<//>` : html`
        <div class=${rows.length > 12 ? "short-grid" : "whole-grid"}>
          <${Grid} label="Pods of the job" columns=${MEMBER_COLUMNS} count=${rows.length} rowAt=${(i) => rows[i]}
            keyOf=${(row) => row.pod} />
          </div>`}
    </section>`;
}

function Timeline({ timeline }) {
  if (!timeline?.length) return html`<${Empty}>Nothing is known of its history.<//>`;
  return html`
    <ol class="timeline">
      ${timeline.map((each) => html`
        <li class=${each.what}>
          <time>${clock(each.time)}</time>
          <span>${each.text || each.what}${each.pods > 0 && !each.text?.includes("pod") && html` <span class="note">${count(each.pods, "pod")}</span>`}${each.by && html` <span class="note">by ${each.by}</span>`}</span>
        </li>`)}
    </ol>`;
}

function Conditions({ conditions }) {
  if (!conditions?.length) return html`<${Empty}>None.<//>`;
  return html`
    <${Table} label="Conditions" columns=${["Type", "status", "reason and message"]}>${conditions.map((each) => html`
        <tr><td>${each.type}</td><td>${each.status}</td><td class="anywhere">
          <b>${each.reason}</b> ${each.message} <span class="note">${clock(each.time)}</span></td></tr>`)}
      <//>`;
}

function Events({ events }) {
  if (events === null || events === undefined) return html`<${Empty}>Events may not be listed here.<//>`;
  if (!events.length) return html`<${Empty}>None.<//>`;
  const columns = [{ title: "Time", className: "narrow-column" }, "reason", "objects", "message"];
  return html`
    <${Table} label="Events" tall columns=${columns}>${alike(events).map((each) => html`
      <tr key=${`${each.reason} ${each.message}`}>
        <td class="nowrap">${clock(each.time)}</td>
        <td class="nowrap">
          <${State} value=${each.reason}
            tone=${each.type === "Warning" ? "warn" : "info"} />${each.count > 1 && html` <span class="note">${plain(each.count)} times</span>`}</td>
        <td class="anywhere"><${Few} items=${each.objects} most=${1} /></td>
        <td class="anywhere">${each.message}</td>
      </tr>`)}
    <//>`;
}

// The pods of a gang are told the same: events with one reason and message become one line, at the place of the newest. "Assigned to
// node-1" and "assigned to node-2" are the same in this sense; the table of pods has their nodes.
function alike(events) {
  const found = new Map();
  for (const event of events.map(withoutPlace)) {
    const key = `${event.reason}\n${event.message}`;
    const known = found.get(key);
    if (known) {
      known.count += event.count;
      if (!known.objects.includes(event.object)) known.objects.push(event.object);
    } else found.set(key, { ...event, objects: [event.object] });
  }
  return [...found.values()];
}

function withoutPlace(event) {
  const pod = event.object.replace(/^Pod\//, "");
  const assigned = event.message.startsWith("Successfully assigned ") && event.message.includes(`/${pod} to `);
  return assigned ? { ...event, message: "Successfully assigned to a node" } : event;
}

function Evictions({ evictions }) {
  return html`
    <${Table} label="Evictions" columns=${["Pod", "by", "for", "why"]}>${evictions.map((each) => html`
        <tr><td class="anywhere">${each.pod}</td><td>${each.action}</td><td class="anywhere">${each.gains}</td>
          <td class="anywhere">${each.message}
          ${each.instead?.map((other) => html`<div class="note">instead ${other.job}: ${other.allowed ? "possible" : "no"}${other.reason && `, ${other.reason}`}</div>`)}</td>
            </tr>`)}
      <//>`;
}
