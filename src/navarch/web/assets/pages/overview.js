// Overview: what runs and what waits, what is used and free, why jobs wait, and how the scheduler does. What a reader looks for first
// stands first: the figures of the cluster, then the waiting jobs with their causes, then what an administrator watches.
import { html } from "../core/dom.js";
import { age, amounts, clock, count, plain, span } from "../core/format.js";
import { useTopic } from "../core/live.js";
import { address } from "../core/router.js";
import { Decisions } from "../parts/decisions.js";
import { Glance, nodesText } from "../parts/glance.js";
import { causeText, shownName } from "../parts/job_cells.js";
import { JobLink, QueueLink } from "../parts/names.js";
import { Empty, Figure, Loaded, NotAvailable } from "../parts/notices.js";
import { BlockersButton } from "../parts/trials.js";
import { Table } from "../parts/table.js";
import { WaitingJobs } from "../parts/waiting_jobs.js";

const whole = (answer) => answer;
const replaced = (_, change) => change;

export function OverviewPage() {
  const source = useTopic("overview", {}, whole, replaced);
  const { data } = source;
  return html`
    <div class="page-head">
      <h1 tabindex="-1">Overview</h1>
      ${data && html`<span class="note">${nodesText(data.nodes)} · policy ${data.policy} · ${clock(data.time)}</span>`}
    </div>
    <${Loaded} source=${source} what="the overview">${() => html`
      <${Glance} data=${data} />
      <div class="columns">
        <div class="column">
          <${Waiting} version=${data.version} waiting=${data.jobs.waiting} />
          <${Decisions} decisions=${data.decisions} reason=${data.scheduler.reason} />
        </div>
        <div class="column">
          <${Oldest} oldest=${data.oldest} waiting=${data.jobs.waiting} />
          <${Loans} starved=${data.starved} loans=${data.loans} />
          <${Scheduler} scheduler=${data.scheduler} />
        </div>
      </div>`}
    <//>`;
}

function Scheduler({ scheduler }) {
  const cycle = scheduler.cycleSeconds;
  return html`
    <section class="panel">
      <h2>Scheduler ${scheduler.leader && html`<span class="note" title=${scheduler.leader}>led by ${shortLeader(scheduler.leader)}</span>`}</h2>
      ${scheduler.available || cycle
        ? html`
          <div class="figures">
            <${Figure} value=${cycle ? span(cycle.p50) : "–"} name="cycle p50" />
            <${Figure} value=${cycle ? span(cycle.p99) : "–"} name="cycle p99" />
            <${Figure} value=${plain(scheduler.bindsPerSecond)} name="binds / s" />
            <${Figure} value=${plain(scheduler.failedWrites)} name="failed writes" tone=${scheduler.failedWrites ? "bad" : ""} />
          </div>`
        : html`<h3>Cycle times, binds, failed writes</h3><${NotAvailable} reason=${scheduler.reason} />`}
    </section>`;
}

// The identity of a leader is its pod or machine, and a number that makes it unique.
const shortLeader = (identity) => identity.replace(/_[0-9a-f]{16,}$/, "");

function Oldest({ oldest, waiting }) {
  if (!oldest) {
    return html`<section class="panel"><h2>Longest waiting gang</h2>
      <${Empty}>${waiting ? "None that you may see." : "Nothing waits."}<//></section>`;
  }
  return html`
    <section class="panel">
      <h2>${oldest.minMember > 1 ? "Longest waiting gang" : "Longest waiting job"} <span class="note">${age(oldest.created)}</span></h2>
      <div class="stack">
        <div>
          <${JobLink} id=${oldest.id} text=${shownName(oldest)} /> <span class="note">in <${QueueLink}
            name=${oldest.queue} /> · needs ${count(oldest.minMember, "pod")}, ${plain(oldest.pending)} pending</span>
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
                  <${QueueLink} name=${loan.borrower} />: ${amounts(loan.amounts)}</div>`) : html`<span class="note">no other queue</span>`}</td>
              </tr>`;
          })}<//>`}
    </section>`;
}

const SHOWN = 8;

function Waiting({ version, waiting }) {
  return html`
    <section class="panel">
      <h2>Waiting jobs <span class="note">longest first</span><span class="links">
        ${waiting > SHOWN && html`<a href=${address(["jobs"], { state: "waiting" })}>all ${plain(waiting)}</a>`}
        <a href=${address(["jobs"], { mine: "1" })}>mine</a></span></h2>
      <${WaitingJobs} query=${{ sort: "created", limit: SHOWN }} version=${version} queues />
    </section>`;
}
