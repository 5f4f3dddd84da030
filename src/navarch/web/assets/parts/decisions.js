// The last decisions of the scheduler, newest first.
import { html } from "../core/dom.js";
import { clock, count, plain } from "../core/format.js";
import { Few, JobLink, NodeLink, withoutUids } from "./names.js";
import { Empty, NotAvailable } from "./notices.js";

const VERBS = { bind: "binds", evict: "evicts", nominate: "reserves a node for" };

// `decisions` null: the scheduler cannot be asked, and `reason` says why.
export function Decisions({ decisions, reason }) {
  return html`
    <section class="panel last">
      <h2>Last decisions <span class="note">newest first</span></h2>
      ${decisions === null || decisions === undefined
        ? html`<${NotAvailable} reason=${reason} />`
        : decisions.length === 0
          ? html`<${Empty}>None yet.<//>`
          : html`<ul class="stream" tabindex="0" aria-label="Last decisions, newest first">${decisions.map((each) => html`<${Decision}
            key=${`${each.cycle} ${each.kind} ${each.job} ${each.action}`} ...${each} />`)}</ul>`}
    </section>`;
}

function Decision({ time, since, times, cycle, kind, job, queue, pods, nodes, action, message, ...rest }) {
  return html`
    <li class=${kind}>
      <time title=${`cycle ${cycle}`}>${clock(time)}</time>
      <span>
        <b>${action}</b> ${VERBS[kind] ?? kind} ${count(pods, "pod")} of <${JobLink}
          id=${job} />${queue && html` <span class="note">(${queue})</span>`}
        ${nodes?.length > 0 && html` ${kind === "evict" ? "from" : "on"} <${Few} items=${nodes.map((name) => html`<${NodeLink}
          name=${name} />`)} />`}
        ${rest.for && html` for <${JobLink} id=${rest.for} />`}${message && html` <span class="note">${withoutUids(message)}</span>`}
        ${times > 1 && html` <span class="note">in ${plain(times)} cycles since ${clock(since)}</span>`}
      </span>
    </li>`;
}
