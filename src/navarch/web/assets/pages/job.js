// One job: why it waits, what would start it, its pods on nodes, its history.
import { html, useMemo, useState } from "../core/dom.js";
import { age, amounts, clock, count, plain } from "../core/format.js";
import { useResource } from "../core/live.js";
import { objects } from "../core/rows.js";
import { Ahead, Blockers, Cause, CauseText, Caveats, Changes, NodeReasons, Placements } from "../parts/explanation.js";
import { Few, JobLink, NodeLink, QueueLink } from "../parts/names.js";
import { Empty, Facts, Loaded, State } from "../parts/notices.js";
import { Grid } from "../parts/grid.js";
import { Place, shownName, startText } from "../parts/job_cells.js";
import { TrialsButton, useTrials } from "../parts/trials.js";
import { Table, num } from "../parts/table.js";

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
  const grows = full?.state === "running" && job.pending > 0; // it runs, and more of its pods wait
  const waits = job.state === "waiting" || full?.state === "pending" || full?.state === "impossible" || grows;
  return html`
    <${Summary} data=${data} />
    <div class="panels two even">
      ${full && waits && html`
        <section class="panel wide"><h2>${grows ? "Why some of its pods wait" : "Why it waits"}</h2>
          <div class="stack"><${Cause} explanation=${full} /><${TrialsButton} trials=${trials} text="What would help" /></div>
        </section>
        ${trials.explanation && html`
          <section class="panel wide"><h2>${grows ? "What would start more of its pods" : "What would start it"} <span class="note">each change was tried on a copy of the cluster</span>
            </h2>
            <${Changes} changes=${full.changes} />
            <${Caveats} explanation=${full} />
          </section>
          <section class="panel wide"><h2>What blocks it</h2><${Blockers} blockers=${full.blockers} /></section>`}
        <section class="panel"><h2>Nodes</h2><${NodeReasons} nodes=${full.nodes} /></section>
        <section class="panel"><h2>Order</h2><${Ahead} order=${full.order} /></section>`}
      ${full && !waits && html`
        <section class="panel wide"><h2>How it runs</h2>
          <div class="stack">
            <${CauseText} cause=${full.cause} />
            ${trials.explanation ? null : html`<${TrialsButton} trials=${trials} text="Why on these nodes" />`}
          </div>
        </section>`}
      ${full?.placements.length > 0 && html`
        <section class="panel wide"><h2>Where it runs</h2><${Placements} placements=${full.placements} /></section>`}
      ${full?.evictions?.length > 0 && html`<section class="panel wide"><h2>What the next cycle evicts</h2>
        <${Evictions} evictions=${full.evictions} /></section>`}
      ${!full && html`<section class="panel wide"><${Empty}>Another scheduler decides for this job, so there is no explanation.<//>
        </section>`}
      <${Members} members=${data.members} />
      <section class="panel"><h2>Timeline</h2><${Timeline} timeline=${data.timeline} /></section>
      <section class="panel"><h2>Conditions</h2><${Conditions} conditions=${data.conditions} /></section>
      <section class="panel wide"><h2>Events</h2><${Events} events=${data.events} /></section>
    </div>`;
}

// What a reader asks first, as names over values.
function Summary({ data }) {
  const { job, labels, requests } = data;
  const [open, setOpen] = useState(false);
  const entries = Object.entries(labels ?? {});
  const waits = job.state === "waiting";
  const facts = [
    ["State", html`<${State} value=${job.state} />${job.never && html` <${State} value="never starts" tone="bad" />`}`],
    ["Queue", html`<${QueueLink} name=${job.queue} />`],
    ["Pods", podsText(job)],
    amounts(requests) && ["Asks for", amounts(requests)],
    waits && !job.never && ["Place", html`<${Place} row=${job} />`],
    waits && !job.never && ["Starts", html`${startText(job)}${job.startUnknown && html`<span class="second">${job.startUnknown}</span>`}`],
    ["Age", age(job.created)],
    ["Priority", plain(job.priority)],
    ["Phase", job.phase || "–"],
    ["Kind", job.kind],
    entries.length > 0 && ["Labels", html`<button type="button" class="link" aria-expanded=${open ? "true" : "false"}
      onClick=${() => setOpen(!open)}>${open ? "hide" : `show ${entries.length}`}</button>`],
  ];
  return html`
    <${Facts} facts=${facts} />
    ${open && html`<dl class="panel">${entries.map(([key, value]) => html`<dt class="mono">${key}</dt>
      <dd class="mono">${value}</dd>`)}</dl>`}`;
}

function podsText(job) {
  const parts = [
    job.running > 0 && `${plain(job.running)} running`,
    job.pending > 0 && `${plain(job.pending)} pending`,
    job.succeeded > 0 && `${plain(job.succeeded)} succeeded`,
    job.failed > 0 && `${plain(job.failed)} failed`,
  ].filter(Boolean);
  return `${parts.join(", ") || "none"}; needs ${plain(job.minMember)}`;
}

const MEMBER_COLUMNS = [
  { id: "pod", title: "Pod", cell: (row) => row.pod },
  { id: "role", title: "Role", width: "14%", minor: true, cell: (row) => row.role || "–" },
  { id: "status", title: "Status", width: "100px", cell: (row) => html`<${State} value=${row.status} />` },
  { id: "node", title: "Node", width: "20%", text: (row) => row.node ?? "", cell: (row) => html`<${NodeLink} name=${row.node} />` },
  { id: "started", title: "Runs for", width: "84px", num: true, minor: true, cell: (row) => (row.started && row.status === "Running" ? age(row.started) : "–") },
  { id: "message", title: "Message", width: "30%", minor: true, cell: (row) => row.message ?? "" },
];

function Members({ members }) {
  const rows = useMemo(() => objects(members.columns, members.rows), [members]);
  const nodes = new Set(rows.map((row) => row.node).filter(Boolean));
  return html`
    <section class="panel wide">
      <h2>Pods <span class="note">${count(members.total, "pod")}${nodes.size ? ` on ${count(nodes.size, "node")}` : ", none on a node"}${members.total > rows.length ? `; the first ${rows.length} are listed` : ""}</span>
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
    <${Table} label="Conditions" columns=${["Type", "status", "message"]}>${conditions.map((each) => html`
        <tr><td>${each.type}</td><td>${each.status}</td><td class="anywhere">
          <b>${each.reason}</b> ${each.message} <span class="note">${clock(each.time)}</span></td></tr>`)}
      <//>`;
}

function Events({ events }) {
  if (events === null || events === undefined) return html`<${Empty}>Events could not be listed.<//>`;
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

// Pods of one job that go by one action for one other job are one line.
function Evictions({ evictions }) {
  const groups = new Map();
  for (const each of evictions) {
    const key = JSON.stringify([each.action, each.gains, each.message, each.instead]);
    groups.set(key, { ...each, pods: [...(groups.get(key)?.pods ?? []), each.pod] });
  }
  return html`
    <${Table} label="Evictions" columns=${[num("pods"), "names", "by", "for", "why"]}>${[...groups.values()].map((each) => html`
        <tr><td class="num">${plain(each.pods.length)}</td><td class="anywhere"><${Few} items=${each.pods} most=${3} /></td><td>${each.action}</td>
          <td class="anywhere"><${JobLink} id=${each.gains} /></td>
          <td class="anywhere">${each.message}
          ${each.instead?.map((other) => html`<div class="note">instead ${other.job}: ${other.allowed ? "possible" : "no"}${other.reason && `, ${other.reason}`}</div>`)}</td>
            </tr>`)}
      <//>`;
}
