// One queue: its amounts, how its share came about, what lends and borrows, what waits in it.
import { html } from "../core/dom.js";
import { amount, amounts, byResource, plain, resourceName } from "../core/format.js";
import { useResource } from "../core/live.js";
import { address } from "../core/router.js";
import { Bar } from "../parts/bars.js";
import { QueueLink } from "../parts/names.js";
import { Empty, Facts, Loaded, State } from "../parts/notices.js";
import { QueueBar, QueueKey, queueFigures } from "../parts/queue_bars.js";
import { Table, bar, num } from "../parts/table.js";
import { WaitingJobs } from "../parts/waiting_jobs.js";
import { UsageBars, knownSpan, useUsage } from "../parts/usage_bars.js";

export function QueuePage({ parts }) {
  const name = parts.join("/");
  const concerns = (change) => change.removed.includes(name) || change.changed.some((row) => row.name === name);
  const source = useResource(["queues", name], "queues", concerns);
  return html`
    <div class="page-head"><h1 tabindex="-1"><span class="crumb"><a href="#/queues">Queues</a> / </span>${name}</h1></div>
    <${Loaded} source=${source} what=${`queue ${name}`}>${(data) => html`<${Queue} queue=${data.queue}
      explanation=${data.explanation} version=${data.version} />`}<//>`;
}

const SHOWN = 12;

function Queue({ queue, explanation, version }) {
  return html`
    <${Facts} facts=${[
      ["State", html`<${State} value=${queue.state} />`],
      queue.parent && ["Below", html`<${QueueLink} name=${queue.parent} />`],
      ["Jobs", html`<a href=${address(["jobs"], { queue: queue.name })}>${plain(queue.jobs.waiting)} waiting, ${plain(queue.jobs.running)} running</a>`],
      ["Weight", plain(queue.weight)],
      ["Priority", plain(queue.priority)],
      ["Share", plain(queue.share)],
    ]} />
    <div class="panels two even">
      <${Amounts} queue=${queue} />
      <${OverTime} queue=${queue} />
      ${explanation && html`
        <section class="panel"><h2>How its share came about</h2>
          ${explanation.steps.length ? html`<ol class="steps">${explanation.steps.map((step) => html`<li>${step.text} <b>${Object.keys(step.amounts).length ? amounts(step.amounts) : ""}</b>
            </li>`)}</ol>` : html`<${Empty}>The policy does not divide the cluster among queues.<//>`}
          ${explanation.notes?.map((note) => html`<p class="note">${note}</p>`)}
        </section>
        <section class="panel"><h2>Lending and borrowing</h2><${Loans} explanation=${explanation} /></section>
        `}
      <section class="panel wide"><h2>Waiting jobs <span class="note">in the order in which they are tried</span>
        ${queue.jobs.waiting > SHOWN && html`<span class="links"><a href=${address(["jobs"], { queue: queue.name, state: "waiting" })}>all</a></span>`}</h2>
        <${WaitingJobs} query=${{ queue: queue.name, sort: "place", limit: SHOWN }} version=${version} /></section>
    </div>`;
}

function Amounts({ queue }) {
  const names = new Set();
  for (const figures of Object.values(queue.numbers)) for (const name of Object.keys(figures ?? {})) names.add(name);
  const resources = [...names].filter((name) => name !== "pods").sort(byResource);
  return html`
    <section class="panel wide"><h2>Amounts</h2>
      <div class="before-table"><${QueueKey} /></div>
      <${Table} label="Amounts of the queue" className="queues"
        columns=${["Resource", bar("held beside what it is owed"), num("holds"), num("owed"), num("borrowed"), num("asks"), num("quota"), num("guarantee"), num("limit"), ...(queue.usage ? ["counted as used over time"] : [])]}>${resources.map((resource) => {
          const found = queueFigures(queue, resource);
          const show = (value) => amount(resource, value);
          const scale = Math.max(found.allocated, found.due ?? 0, found.quota ?? 0, found.guarantee ?? 0, found.request);
          const usage = queue.usage?.[resource];
          return html`
            <tr><th scope="row">${resourceName(resource)}</th><td class="wide-bar">
              <${QueueBar} row=${queue} resource=${resource} scale=${scale} /></td>
            ${[found.allocated, found.due, found.borrowed, found.request, found.quota, found.guarantee, found.limit].map((value) => html`<td class="num">${show(value)}</td>`)}
            ${queue.usage && html`<td>${usage === undefined ? "–" : html`<${Usage} part=${usage} />`}</td>`}</tr>`;
        })}<//>
    </section>`;
}

// What the queue held in the last hour, one chart a resource.
function OverTime({ queue }) {
  const usage = useUsage({ queue: queue.name });
  const rows = (usage?.rows ?? []).filter((row) => row.held.some((value) => value > 0)).sort((a, b) => byResource(a.resource, b.resource));
  return html`
    <section class="panel wide"><h2>Held over time <span class="note">in the last hour${usage && knownSpan(usage.rows, usage.seconds)}; the line is what it is owed now</span></h2>
      ${rows.length === 0 ? html`<${Empty}>Nothing was held.<//>` : html`
        <div class="charts">${rows.map((row) => {
          const { due = 0 } = queueFigures(queue, row.resource);
          const most = Math.max(...row.held);
          return html`
            <figure key=${row.resource}>
              <figcaption><b>${resourceName(row.resource)}</b> <span class="note">now ${amount(row.resource, row.held.at(-1))}, at most ${amount(row.resource, most)}</span></figcaption>
              <${UsageBars} held=${row.held} seconds=${usage.seconds} resource=${row.resource} name=${queue.name} whole=${most}
                owed=${due <= 2 * most ? due : 0} height=${64} />
            </figure>`;
        })}</div>`}
    </section>`;
}

// What the policy counts as used over time, as a part of the cluster.
function Usage({ part }) {
  const label = `${plain(100 * part)} % of the cluster`;
  return html`<${Bar} thin parts=${[{ value: part, kind: "used" }]} whole=${1} label=${label} /><span class="note">${label}</span>`;
}

function Loans({ explanation }) {
  const { borrows, lends } = explanation;
  if (!borrows.length && !lends.length) return html`<${Empty}>No queue holds what another is owed.<//>`;
  return html`
    <ul>
      ${borrows.map((loan) => html`<li>borrows ${amounts(loan.amounts)} that <${QueueLink} name=${loan.queue} /> is owed</li>`)}
      ${lends.map((loan) => html`<li>is owed ${amounts(loan.amounts)} that <${QueueLink} name=${loan.queue} /> holds</li>`)}
    </ul>`;
}
