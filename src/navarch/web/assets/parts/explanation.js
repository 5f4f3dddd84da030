// The answers of `navarch explain` for a job: the cause, the nodes, the order, what blocks it, what would start it.
import { html } from "../core/dom.js";
import { amounts, clock, count, plain } from "../core/format.js";
import { Few, JobLink, NodeLink, QueueLink } from "./names.js";
import { Empty, State } from "./notices.js";
import { Table, num } from "./table.js";

export function Cause({ explanation }) {
  const { cause, state, nodes, order } = explanation;
  const starts = state === "running" ? ["One more of its pods starts", "No more of its pods start"] : ["It starts", "It does not start"];
  return html`
    <div class="stack">
      <${JobSentence} explanation=${explanation} />
      <${CauseText} cause=${cause} tone=${state === "impossible" ? "bad" : state === "pending" ? "warn" : ""} />
      <dl>
        <dt>Nodes</dt><dd>${count(nodes.feasible, "node")} of ${plain(nodes.total)} would take one of its pods now</dd>
        ${order.queue && html`<dt>Place</dt>
          <dd>${placeText(order)}</dd>`}
        ${order.startsAlone !== null && order.startsAlone !== undefined && html`<dt>Alone</dt>
          <dd>${order.startsAlone ? `${starts[0]} if no other job waits.` : `${starts[1]} even if no other job waits.`}</dd>`}
        <${StartTime} explanation=${explanation} />
      </dl>
    </div>`;
}

// What the job needs and which rule does not give it that; behind it the rule that decides alone, once trials have found it.
function JobSentence({ explanation: { sentence, deciding } }) {
  return sentence ? html`<p class="notice cause warn">${sentence}${deciding && html`; ${deciding.text}`}</p>` : null;
}

// The sentence first; the code, which programs use, stands small behind it.
export function CauseText({ cause, tone = "" }) {
  return html`
    <p class=${`notice cause ${tone}`}>
      ${cause.message || cause.code}${cause.message && html` <code class="code">${cause.code}</code>`}
      ${cause.only === true && html`<br />Lifting this alone starts the job.`}
      ${cause.only === false && html`<br />Lifting this alone does not start the job.`}
    </p>`;
}

function placeText({ place, of, queue, overall, overallOf }) {
  return place === null ? "takes no part in the cycle" : `${place} of ${of} in ${queue}, ${overall} of ${overallOf} in all`;
}

function mayTakeText(answer) {
  if (!answer) return "–";
  const reason = answer.reason ? `: ${answer.reason}` : "";
  const until = answer.until ? ` (until ${clock(answer.until)})` : "";
  return `${answer.allowed ? "yes" : "no"}${reason}${until}`;
}

function StartTime({ explanation }) {
  const { eta, etaReason } = explanation;
  if (eta) return html`<dt>Start</dt><dd>50 % by ${clock(eta.p50)}, 90 % by ${clock(eta.p90)} <span class="note">${eta.basis}</span>
    </dd>`;
  return etaReason ? html`<dt>Start</dt><dd class="note">${etaReason}</dd>` : null;
}

export function NodeReasons({ nodes }) {
  const reasons = Object.entries(nodes.reasons ?? {}).sort(([, a], [, b]) => b - a);
  if (!reasons.length && !nodes.clauses?.length) return html`<${Empty}>No node refuses it.<//>`;
  return html`
    <div class="stack">
      ${reasons.length > 0 && html`
        <${Table} label="Why nodes refuse a pod"
          columns=${["Why nodes refuse the pod that finds no room", num("nodes")]}>${reasons.map(([text, number]) => html`<tr>
          <td>${text}</td><td class="num">${plain(number)}</td></tr>`)}<//>`}
      ${nodes.clauses?.length > 0 && html`
        <${Table} label="Clauses of the job"
          columns=${["Without this clause of the job", num("nodes with room"), "starts"]}>${nodes.clauses.map((each) => html`<tr>
          <td class="mono">${each.clause}</td><td class="num">${plain(each.nodes)}</td>
          <td>${each.starts ? html`<${State} value="yes" tone="good" />` : "no"}</td></tr>`)}<//>`}
    </div>`;
}

export function Ahead({ order }) {
  if (!order.ahead?.length) return html`<${Empty}>No job is tried before it.<//>`;
  return html`
    <${Table} label="Jobs that are tried before it"
      columns=${["Tried before it", "queue", num("pods"), "asks for", num("priority"), "because of"]}>${order.ahead.map((each) => html`
        <tr><td><${JobLink} id=${each.job} /></td><td><${QueueLink} name=${each.queue} /></td>
          <td class="num">${plain(each.pods)}</td><td>${amounts(each.requests)}</td><td class="num">${plain(each.priority)}</td>
          <td>${each.because}</td></tr>`)}
      <//>`;
}

export function Blockers({ blockers }) {
  if (!blockers.jobs.length) return html`<${Empty}>No set of jobs was found whose end alone starts it.<//>`;
  const may = new Map(blockers.mayTake.map((each) => [each.job, each]));
  return html`
    <p>It starts when these are gone${blockers.minimal ? "; none of them can be left out" : ""}.</p>
    <${Table} label="Jobs that block it" columns=${["Blocked by", "may it take the place?"]}>${blockers.jobs.map((job) => {
        const answer = may.get(job);
        return html`<tr><td><${JobLink} id=${job} /></td>
          <td>${mayTakeText(answer)}</td>
          </tr>`;
      })}<//>`;
}

const SIDES = { user: "You can change", admin: "An administrator can change" };

// What starts the job stands first. What does not is one line that opens.
export function Changes({ changes }) {
  if (!changes.length) return html`<${Empty}>No change was found to try.<//>`;
  return Object.entries(SIDES).map(([by, title]) => {
    const own = changes.filter((each) => each.by === by);
    const helps = own.filter((each) => each.starts);
    const others = own.filter((each) => !each.starts);
    return own.length > 0 && html`
      <h3>${title}</h3>
      ${helps.length === 0 ? html`<p>None of the changes that were tried starts it.</p>` : html`
        <${Table} label=${`${title}, and it starts`} columns=${["Change that starts it", "price"]}>${helps.map((each) => html`
          <tr><td><${State} value="starts" tone="good" /> ${each.text}</td><td><${Price} price=${each.price} /></td></tr>`)}
        <//>`}
      ${others.length > 0 && html`<details><summary>${count(others.length, "change")} that ${others.length === 1 ? "does" : "do"} not start it</summary>
        <ul>${others.map((each) => html`<li>${each.text}</li>`)}</ul></details>`}`;
  });
}

// How the answers were found, for a reader who wants to know.
export function Caveats({ explanation }) {
  const { notes = [], notEstablished = [] } = explanation;
  if (!notes.length && !notEstablished.length) return null;
  return html`<details><summary>How this was found</summary><ul>
    ${notEstablished.length > 0 && html`<li>not established: ${notEstablished.join("; ")}</li>`}
    ${notes.map((note) => html`<li>${note}</li>`)}</ul></details>`;
}

function Price({ price }) {
  const links = (jobs) => html`<${Few} items=${jobs.map((job) => html`<${JobLink} id=${job} />`)} />`;
  const parts = [
    price.evicts?.length > 0 && html`<div>evicts ${links(price.evicts)}</div>`,
    price.ends?.length > 0 && html`<div>ends ${links(price.ends)}</div>`,
    price.delays?.length > 0 && html`<div>delays ${links(price.delays)}</div>`,
    price.alsoStarts?.length > 0 && html`<div>also starts ${links(price.alsoStarts)}</div>`,
  ].filter(Boolean);
  return parts.length ? parts : html`<span class="note">none</span>`;
}

export function Placements({ placements }) {
  return html`
    <${Table} label="Why pods are on their nodes"
      columns=${["Pod", "node", num("rank now"), num("score"), "runner-up", "note"]}>${placements.map((each) => html`
        <tr><td>${each.pod}</td><td><${NodeLink} name=${each.node} /></td><td class="num">${each.rank ?? "–"}</td>
        <td class="num" title=${each.scores ? scoreText(each.scores) : ""}>${each.scores ? plain(each.scores.total) : "–"}</td>
        <td>${each.runnerUp ? html`<${NodeLink} name=${each.runnerUp.node} /> ${plain(each.runnerUp.total)}` : "–"}</td>
          <td>${each.note}</td></tr>`)}
      <//>`;
}

function scoreText({ scores }) {
  return Object.entries(scores).map(([name, value]) => `${name} ${plain(value)}`).join(", ");
}
