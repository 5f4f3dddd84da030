// Overview: what is used, what is free, what waits and why, and how the scheduler does.
import { get } from "../core/api.js";
import { html, useEffect, useState } from "../core/dom.js";
import { age, amount, amounts, byResource, clock, count, percent, plain, resourceName, span } from "../core/format.js";
import { useTopic } from "../core/live.js";
import { address } from "../core/router.js";
import { objects } from "../core/rows.js";
import { Bar, Key } from "../parts/bars.js";
import { Place, causeText, podsLong, podsShort, startText } from "../parts/job_cells.js";
import { Few, JobLink, NodeLink, QueueLink } from "../parts/names.js";
import { Empty, Figure, Loaded, NotAvailable } from "../parts/notices.js";
import { BlockersButton } from "../parts/trials.js";
import { Table, num } from "../parts/table.js";

const whole = (answer) => answer;
const replaced = (_, change) => change;

export function OverviewPage() {
  const source = useTopic("overview", {}, whole, replaced);
  return html`
    <div class="page-head">
      <h1 tabindex="-1">Overview</h1>
      ${source.data && html`<span class="note">policy ${source.data.policy} · ${clock(source.data.time)}</span>`}
    </div>
    <${Loaded} source=${source} what="the overview">${(data) => html`
      <div class="panels even">
        <${Capacity} resources=${data.resources} nodes=${data.nodes} />
        <${Load} data=${data} />
        <div class="stack growing">
          <${Oldest} oldest=${data.oldest} waiting=${data.jobs.waiting} />
          <${Loans} starved=${data.starved} loans=${data.loans} />
        </div>
        <${Waiting} version=${data.version} waiting=${data.jobs.waiting} />
        <${Decisions} decisions=${data.decisions} scheduler=${data.scheduler} />
      </div>`}
    <//>`;
}

function Capacity({ resources, nodes }) {
  const rows = resources.filter((each) => each.total > 0).sort((a, b) => byResource(a.resource, b.resource));
  return html`
    <section class="panel">
      <h2>Capacity <span class="note">${nodesText(nodes)}</span>
        </h2>
      ${rows.length === 0 && html`<${Empty}>No nodes.<//>`}
      <div class="capacity">${rows.map((each) => html`<${Resource} ...${each} />`)}</div>
      <${Key}
        entries=${[["used", "used"], ["free", "free"], ["useless", "free, but no waiting pod fits"], ["closed", "on nodes that take no pods"]]} />
    </section>`;
}

function nodesText({ total, ready, closed }) {
  const parts = [count(total, "node"), ready < total && `${total - ready} not ready`, closed > 0 && `${closed} take no pods`];
  return parts.filter(Boolean).join(", ");
}

function Resource({ resource, total, used, free, useless, closed }) {
  const show = (value) => amount(resource, value);
  const parts = [
    { value: used, kind: "used" },
    { value: free - useless, kind: "free" },
    { value: useless, kind: "useless" },
    { value: closed, kind: "closed" },
  ];
  const inUse = `${show(used)} of ${show(total)} used`;
  const label = `${resourceName(resource)}: ${inUse}, ${show(free)} free, ${show(useless)} of that where no waiting pod fits`;
  const lost = useless > 0 && html`, <b>${show(useless)} useless now</b>`;
  return html`
    <strong>${resourceName(resource)}</strong>
    <${Bar} parts=${parts} whole=${total} label=${label} />
    <div class="figures-line">
      ${inUse} (${percent(used / total)}) · ${show(free)} free${lost}${closed > 0 && ` · ${show(closed)} closed`}
    </div>`;
}

function Load({ data }) {
  const { jobs, pods, scheduler } = data;
  const cycle = scheduler.cycleSeconds;
  return html`
    <section class="panel">
      <h2>Jobs and scheduler</h2>
      <div class="stack">
        <div class="figures">
          <a class="plainlink" href=${address(["jobs"], { state: "running" })}>
            <${Figure} value=${plain(jobs.running)} name="jobs running" /></a>
          <a class="plainlink" href=${address(["jobs"], { state: "waiting" })}>
            <${Figure} value=${plain(jobs.waiting)} name="jobs waiting" tone=${jobs.waiting ? "warn" : ""} /></a>
          <${Figure} value=${plain(jobs.finished)} name="jobs finished" />
        </div>
        <p class="note">${count(pods.running, "pod")} running, ${plain(pods.pending)} pending</p>
        ${scheduler.available
          ? html`
            <div class="figures">
              <${Figure} value=${cycle ? span(cycle.p50) : "–"} name="cycle p50" />
              <${Figure} value=${cycle ? span(cycle.p99) : "–"} name="cycle p99" />
              <${Figure} value=${plain(scheduler.bindsPerSecond)} name="binds / s" />
              <${Figure} value=${plain(scheduler.failedWrites)} name="failed writes" tone=${scheduler.failedWrites ? "bad" : ""} />
            </div>
            <p class="note" title=${scheduler.leader}>leader: ${shortLeader(scheduler.leader)}</p>`
          : html`<div><h3>Cycle times, binds, failed writes, leader</h3><${NotAvailable} reason=${scheduler.reason} /></div>`}
      </div>
    </section>`;
}

// The identity of a leader is its pod or machine, and a number that makes it unique.
const shortLeader = (identity) => (identity ? identity.replace(/_[0-9a-f]{16,}$/, "") : "none");

function Oldest({ oldest, waiting }) {
  if (!oldest) {
    return html`<section class="panel"><h2>Longest waiting gang</h2>
      <${Empty}>${waiting ? "No gang waits; single pods do." : "Nothing waits."}<//></section>`;
  }
  return html`
    <section class="panel">
      <h2>Longest waiting gang <span class="note">${age(oldest.created)}</span></h2>
      <div class="stack">
        <div>
          <${JobLink} id=${oldest.id} /> <span class="note">in <${QueueLink}
            name=${oldest.queue} /> · needs ${count(oldest.minMember, "pod")}, ${oldest.pending} pending</span>
          </div>
        <p class=${oldest.never ? "notice bad" : "notice warn"}>${causeText(oldest) || "No reason is known yet."}</p>
        ${!oldest.never && html`<${BlockersButton} key=${oldest.id} id=${oldest.id} />`}
      </div>
    </section>`;
}

function Loans({ starved, loans }) {
  return html`
    <section class="panel">
      <h2>Starved and borrowing queues</h2>
      ${starved.length === 0 && loans.length === 0 && html`<${Empty}>Every queue that asks holds what it is owed.<//>`}
      ${starved.length > 0 && html`
        <${Table} label="Starved queues" columns=${["Starved queue", "lacks of its due", "held by"]}>${starved.map((each) => {
            const lent = loans.filter((loan) => loan.lender === each.queue);
            return html`
              <tr>
                <td><${QueueLink} name=${each.queue} /></td>
                <td>${amounts(each.lacks)}</td>
                <td>${lent.length ? lent.map((loan) => html`<div>
                  <${QueueLink} name=${loan.borrower} />: ${amounts(loan.amounts)}</div>`) : "–"}</td>
              </tr>`;
          })}<//>`}
    </section>`;
}

const SHOWN = 8;

// The jobs that wait longest, each with its cause. Loaded again with each version of the overview.
function Waiting({ version, waiting }) {
  const [rows, setRows] = useState([]);
  useEffect(() => {
    const abort = new AbortController();
    const query = { state: "waiting", sort: "created", limit: SHOWN };
    const show = (answer) => setRows(objects(answer.columns, answer.rows));
    get("jobs", query, abort.signal).then(show, () => {}); // an error shows in the overview itself
    return () => abort.abort();
  }, [version]);
  const columns = ["Job", "queue", num("waits"), num("pods"), num("place"), "start", "why it waits"];
  return html`
    <section class="panel wide">
      <h2>Waiting jobs <span class="note">longest first</span>
        ${waiting > rows.length && html`<a class="note" href=${address(["jobs"], { state: "waiting" })}>all ${plain(waiting)}</a>`}
        <a class="note" href=${address(["jobs"], { mine: "1" })}>mine</a></h2>
      ${rows.length === 0 ? html`<${Empty}>Nothing waits.<//>` : html`
        <${Table} label="Waiting jobs" columns=${columns}>${rows.map((row) => html`
          <tr key=${row.id}><td class="name"><${JobLink} id=${row.id} /></td><td><${QueueLink} name=${row.queue} /></td>
            <td class="num">${age(row.created)}</td>
          <td class="num" title=${podsLong(row)}>${podsShort(row)}</td><td class="num"><${Place} row=${row} /></td>
            <td class="nowrap">${startText(row)}</td><td class="anywhere">${causeText(row)}</td></tr>`)}
        <//>`}
    </section>`;
}

const VERBS = { bind: "binds", evict: "evicts", nominate: "reserves a node for" };

function Decisions({ decisions, scheduler }) {
  return html`
    <section class="panel wide">
      <h2>Last decisions</h2>
      ${decisions === null || decisions === undefined
        ? html`<${NotAvailable} reason=${scheduler.reason} />`
        : decisions.length === 0
          ? html`<${Empty}>None yet.<//>`
          : html`<ul class="stream" tabindex="0" aria-label="Last decisions, newest first">${decisions.map((each) => html`<${Decision}
            key=${`${each.cycle} ${each.kind} ${each.job} ${each.action}`} ...${each} />`)}</ul>`}
    </section>`;
}

function Decision({ time, since, times, cycle, kind, job, queue, pods, nodes, action, message, ...rest }) {
  return html`
    <li>
      <time title=${`cycle ${cycle}`}>${clock(time)}</time>
      <span>
        <b>${action}</b> ${VERBS[kind] ?? kind} ${count(pods, "pod")} of <${JobLink}
          id=${job} />${queue && html` <span class="note">(${queue})</span>`}
        ${nodes?.length > 0 && html` ${kind === "evict" ? "from" : "on"} <${Few} items=${nodes.map((name) => html`<${NodeLink}
          name=${name} />`)} />`}
        ${rest.for && html` for <${JobLink} id=${rest.for} />`}${message && html` <span class="note">${message}</span>`}
        ${times > 1 && html` <span class="note">in ${plain(times)} cycles since ${clock(since)}</span>`}
      </span>
    </li>`;
}
