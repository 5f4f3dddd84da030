// The first waiting jobs of the cluster or of a queue, each with its place, its start and its cause.
import { get } from "../core/api.js";
import { html, useEffect, useState } from "../core/dom.js";
import { age } from "../core/format.js";
import { useNarrow } from "../core/preferences.js";
import { objects } from "../core/rows.js";
import { Place, causeText, podsLong, podsShort, shownName, startText } from "./job_cells.js";
import { JobLink } from "./names.js";
import { Empty } from "./notices.js";
import { Table, num } from "./table.js";

// query: filters, order and number. Loaded again with each version of the page. `queues`: whether the queue stands below the name.
export function WaitingJobs({ query, version, queues = false }) {
  const [rows, setRows] = useState(null);
  const narrow = useNarrow();
  useEffect(() => {
    const abort = new AbortController();
    const show = (answer) => setRows(objects(answer.columns, answer.rows));
    get("jobs", { ...query, state: "waiting" }, abort.signal).then(show, () => {}); // an error shows in the page itself
    return () => abort.abort();
  }, [version, JSON.stringify(query)]);
  if (!rows?.length) return html`<${Empty}>${rows ? "Nothing waits." : "Loading …"}<//>`;
  if (narrow) return html`<ul class="brief" aria-label="Waiting jobs">${rows.map((row) => html`<${Brief} key=${row.id} row=${row} queues=${queues} />`)}</ul>`;
  const columns = ["Job", num("waits"), num("pods"), num("place"), "start", "why it waits"];
  return html`
    <${Table} label="Waiting jobs" columns=${columns}>${rows.map((row) => html`
      <tr key=${row.id}><td class="name"><${JobLink} id=${row.id} text=${shownName(row)} />${queues && html`<span class="second">${row.queue}</span>`}</td>
        <td class="num">${age(row.created)}</td>
        <td class="num" title=${podsLong(row)}>${podsShort(row)}</td><td class="num"><${Place} row=${row} /></td>
        <td class="nowrap" title=${row.startUnknown}>${startText(row)}</td>
        <td class="anywhere" title=${causeText(row)}><span class="clamp">${causeText(row) || "–"}</span></td></tr>`)}
    <//>`;
}

// On a phone: the name, the figures on one line, the cause.
function Brief({ row, queues }) {
  return html`
    <li>
      <div class="row spread"><${JobLink} id=${row.id} text=${shownName(row)} /><span class="note">${age(row.created)}</span></div>
      <div class="note">${queues && `${row.queue} · `}${podsShort(row)} pods · ${row.never ? html`<${Place} row=${row} />` : html`place <${Place} row=${row} /> · start ${startText(row)}`}</div>
      <div class="clamp">${causeText(row)}</div>
    </li>`;
}
