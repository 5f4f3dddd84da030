// A recorded cycle: what it decided, and what another policy decides for the same snapshot.
import { html } from "../core/dom.js";
import { clock, count, plain } from "../core/format.js";
import { useOnce } from "../core/live.js";
import { setQuery } from "../core/router.js";
import { JobLink, NodeLink, QueueLink } from "../parts/names.js";
import { Empty, Figure, Loaded, State } from "../parts/notices.js";
import { Table } from "../parts/table.js";

const PRESETS = ["navarch", "fifo", "fifo-skip", "easy", "sjf", "packing", "volcano", "kube-batch", "kube-batch-early", "kai", "kube-scheduler"];

export function CyclePage({ parts, query }) {
  const id = parts.join("/");
  const source = useOnce(["cycles", id], { policy: query.policy });
  const choose = (event) => setQuery({ policy: event.currentTarget.value });
  return html`
    <div class="page-head"><h1 tabindex="-1"><span class="crumb"><a href="#/cycles">Cycles</a> / </span>${id === "last" ? "the last cycle of the scheduler" : id}</h1></div>
    <div class="filters"><label>Compare with policy
      <select onChange=${choose}>
        <option value="">none</option>${PRESETS.map((name) => html`<option value=${name}
          selected=${query.policy === name}>${name}</option>`)}</select>
        </label>
    </div>
    <${Loaded} source=${source} what="the cycle">${(data) => html`<${Cycle} data=${data} />`}<//>`;
}

function Cycle({ data }) {
  const waiting = data.jobs.filter((each) => each.code);
  return html`
    <p class="note">decided at ${clock(data.time)} under the policy ${data.policy}${data.truncated ? "; long lists are cut" : ""}</p>
    <div class="panels two">
      ${data.compared && html`<${Compared} compared=${data.compared} own=${data} />`}
      <section class="panel"><h2>Binds <span class="note">${count(data.binds.length, "pod")}</span></h2>
        <${Rows} label="Binds" rows=${data.binds} head=${["Pod", "job", "node"]} cells=${(each) => [each.pod, html`<${JobLink}
          id=${each.job} />`, html`<${NodeLink} name=${each.node} />`]} />
          </section>
      <section class="panel"><h2>Evictions <span class="note">${count(data.evictions.length, "pod")}</span></h2>
        <${Rows} label="Evictions" rows=${data.evictions} head=${["Pod", "action", "for", "why"]}
          cells=${(each) => [each.pod, each.action, html`<${JobLink} id=${each.for} />`, each.message]} />
          </section>
      ${data.nominations.length > 0 && html`<section class="panel"><h2>Nominations</h2>
        <${Rows} label="Nominations" rows=${data.nominations} head=${["Pod", "job", "node"]}
          cells=${(each) => [each.pod, html`<${JobLink} id=${each.job} />`, html`<${NodeLink} name=${each.node} />`]} />
          </section>`}
      <section class="panel wide">
        <h2>Jobs that wait <span class="note">${count(waiting.length, "job")} of ${plain(data.jobs.length)}</span></h2>
        <${Rows} label="Jobs that wait" rows=${waiting} head=${["Job", "queue", "phase", "cause", "message"]}
          cells=${(each) => [html`<${JobLink} id=${each.job} />`, html`<${QueueLink} name=${each.queue} />`, html`<${State}
          value=${each.phase} />`, each.code, each.message]} />
          </section>
    </div>`;
}

function Compared({ compared, own }) {
  const changed = (name) => `${own[name].length} → ${compared[name]}`;
  return html`
    <section class="panel wide" aria-live="polite"><h2>The same snapshot under ${compared.policy}</h2>
      ${compared.same ? html`<p class="notice">It decides the same.</p>` : html`
        <div class="stack">
          <div class="figures"><${Figure} value=${changed("binds")} name="binds" />
            <${Figure} value=${changed("evictions")} name="evictions" />
            <${Figure} value=${changed("nominations")} name="nominations" /></div>
          <ul class="difference">${compared.difference.map((line) => html`<li class="anywhere">${line}</li>`)}</ul>
        </div>`}
    </section>`;
}

function Rows({ label, rows, head, cells }) {
  if (!rows.length) return html`<${Empty}>None.<//>`;
  return html`
    <${Table} label=${label} tall columns=${head}>
      ${rows.map((each) => html`<tr>${cells(each).map((cell) => html`<td class="anywhere">${cell}</td>`)}</tr>`)}
    <//>`;
}
