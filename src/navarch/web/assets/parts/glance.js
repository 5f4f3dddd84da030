// The cluster at a glance: how many jobs run and wait, and of each resource what is used, free, and free but of no use.
import { html } from "../core/dom.js";
import { amount, byResource, count, percent, plain, resourceName } from "../core/format.js";
import { address } from "../core/router.js";
import { Bar, Key } from "./bars.js";
import { Empty, Figure } from "./notices.js";

export function nodesText({ total, ready, closed }) {
  const parts = [count(total, "node"), ready < total && `${plain(total - ready)} not ready`, closed > 0 && `${plain(closed)} take no pods`];
  return parts.filter(Boolean).join(", ");
}

export function Glance({ data }) {
  const rows = data.resources.filter((each) => each.total > 0).sort((a, b) => byResource(a.resource, b.resource));
  const some = (part) => rows.some((each) => each[part] > 0);
  const key = [some("useless") && ["useless", "useless now: free, but no waiting pod fits"], some("closed") && ["closed", "closed: on nodes that take no pods"]];
  return html`
    <section class="panel" aria-label="The cluster at a glance">
      <div class="glance">
        <${Jobs} jobs=${data.jobs} pods=${data.pods} />
        ${rows.map((each) => html`<${Resource} key=${each.resource} ...${each} />`)}
        ${rows.length === 0 && html`<${Empty}>No node has resources that pods could use.<//>`}
      </div>
      ${key.some(Boolean) && html`<${Key} entries=${key.filter(Boolean)} />`}
    </section>`;
}

function Jobs({ jobs, pods }) {
  return html`
    <div>
      <h2>Jobs</h2>
      <div class="figures">
        <a class="plainlink" href=${address(["jobs"], { state: "running" })}>
          <${Figure} value=${plain(jobs.running)} name="running" /></a>
        <a class="plainlink" href=${address(["jobs"], { state: "waiting" })}>
          <${Figure} value=${plain(jobs.waiting)} name="waiting" tone=${jobs.waiting ? "warn" : ""} /></a>
        <${Figure} value=${plain(jobs.finished)} name="finished" />
      </div>
      <p class="note">${count(pods.running, "pod")} running, ${plain(pods.pending)} pending</p>
    </div>`;
}

const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1);

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
  return html`
    <div class="resource">
      <h2>${titled(resourceName(resource))} <b>${percent(used / total)}</b></h2>
      <${Bar} parts=${parts} whole=${total} label=${label} />
      <p class="note">${inUse}</p>
      <p class="note">${show(free)} free${useless > 0 && html`, <b class="warn">${show(useless)} useless now</b>`}${closed > 0 && ` · ${show(closed)} closed`}</p>
    </div>`;
}
