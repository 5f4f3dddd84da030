// Jobs: a grid of all jobs with filters in the address. What is "mine" the reader says once; it stays in the browser.
import { html, useMemo, useState } from "../core/dom.js";
import { age, plain } from "../core/format.js";
import { useTopic } from "../core/live.js";
import { useNarrow, usePreference } from "../core/preferences.js";
import { address, setQuery } from "../core/router.js";
import { objects, overlaid } from "../core/rows.js";
import { comparison, useStableOrder } from "../core/stable_order.js";
import { Grid } from "../parts/grid.js";
import { StateFilter, StartNote } from "../parts/job_summary.js";
import { Place, causeText, podsLong, podsShort, shownName, startText } from "../parts/job_cells.js";
import { QueueLink } from "../parts/names.js";
import { Empty, Loaded, State } from "../parts/notices.js";

const idOf = (row) => row.id;

const COLUMNS = [
  { id: "id", title: "Job", width: "21%", sortable: true, text: (row) => `${row.kind} ${shownName(row)}`, cell: (row) => html`<a
    href=${address(["jobs", ...row.id.split("/")])}>${shownName(row)}</a>${row.kind !== "PodGroup" && html` <span class="note">${row.kind}</span>`}` },
  { id: "queue", title: "Queue", width: "9%", sortable: true, minor: true, text: (row) => row.queue ?? "", cell: (row) => html`<${QueueLink}
    name=${row.queue} />` },
  { id: "state", title: "State", width: "98px", sortable: true, cell: (row) => html`<${State} value=${row.state} />` },
  { id: "pods", title: "Pods", width: "62px", num: true, minor: true, text: podsLong, cell: podsShort },
  { id: "gpus", title: "GPU", width: "54px", num: true, sortable: true, minor: true, cell: (row) => (row.gpus ? plain(row.gpus) : "–") },
  { id: "created", title: "Age", width: "76px", num: true, sortable: true, cell: (row) => age(row.created) },
  { id: "place", title: "Place", width: "104px", num: true, sortable: true, cell: (row) => html`<${Place}
    row=${row} />`, text: (row) => row.never },
  { id: "start", title: "Start", width: "112px", sortable: true, minor: true, text: (row) => row.startUnknown ?? "", cell: startText },
  { id: "cause", title: "Why it waits", sortable: true, cell: causeText },
];

// On a phone a row has two lines: the cause below the name, the start or the place below the state.
const NARROW_COLUMNS = [
  { ...COLUMNS[0], width: "auto", cell: (row) => html`${COLUMNS[0].cell(row)}<span class="second">${causeText(row) || row.queue}</span>` },
  { id: "state", title: "State", width: "98px", sortable: true, cell: (row) => html`<${State} value=${row.state} />
    <span class="second">${row.state !== "waiting" ? age(row.created) : row.start ? startText(row) : html`<${Place} row=${row} />`}</span>` },
];

const read = ({ columns, total, rows }) => ({ columns, total, rows: new Map(objects(columns, rows).map((row) => [row.id, row])) });
const merge = (data, change) => ({ ...data, rows: overlaid(data.rows, objects(data.columns, change.changed), change.removed, idOf) });

export function JobsPage({ query }) {
  const [mine] = usePreference("mine");
  const own = selection(query.mine ? mine : "");
  const served = { queue: query.queue, namespace: query.namespace || own.namespace, label: query.label || own.label };
  const preview = { text: query.text, state: query.state ?? "waiting", sort: query.sort ?? "place", limit: 200 };
  const source = useTopic("jobs", served, read, merge, preview);
  return html`
    <div class="fill">
      <div class="page-head"><h1 tabindex="-1">Jobs</h1></div>
      <${Filters} query=${query} mine=${mine} rows=${source.data?.rows} />
      <${Loaded} source=${source} what="jobs">${(data) => html`<${JobGrid} data=${data} query=${query} />`}<//>
    </div>`;
}

function JobGrid({ data, query }) {
  const narrow = useNarrow();
  const [again, setAgain] = useState(0);
  const accept = useMemo(() => withText(query.text), [query.text]);
  const inState = useMemo(() => (row) => (!query.state || row.state === query.state) && accept(row), [query.state, accept]);
  const sort = { id: (query.sort ?? "").replace(/^-/, ""), descending: (query.sort ?? "").startsWith("-") };
  const compare = useMemo(() => comparison(valueOf(sort.id || "urgency"), sort.descending, idOf), [query.sort]);
  const choice = [query.sort, query.state, query.text, query.queue, query.mine, query.namespace, query.label, again, data.partial].join("\n");
  const { ordered, moved } = useStableOrder(data.rows, inState, compare, choice);
  return html`
    <div class="row spread">
      <${StateFilter} rows=${data.rows} accept=${accept} state=${query.state} partial=${data.partial && data.total} />
      ${moved && html`<button type="button" onClick=${() => setAgain(again + 1)}>Sort again</button>`}
    </div>
    ${ordered.length === 0 ? html`<${Nothing} all=${data.total} query=${query} />` : html`
      <${StartNote} rows=${ordered} />
      <${Grid} label="Jobs" columns=${narrow ? NARROW_COLUMNS : COLUMNS} rowHeight=${narrow ? 48 : 28} count=${ordered.length}
        rowAt=${(i) => ordered[i]} keyOf=${idOf} sort=${sort}
        onSort=${({ id, descending }) => setQuery({ sort: (descending ? "-" : "") + id })} />`}`;
}

function Nothing({ all, query }) {
  if (Object.keys(query).length === 0 || all === 0) {
    return html`<${Empty}>There are no jobs. <code>navarch submit --name train --gpus 1 --image pytorch -- python train.py</code> submits one.<//>`;
  }
  return html`<${Empty}>No job matches. <a href="#/jobs">Show all jobs</a><//>`;
}

function Filters({ query, mine, rows }) {
  const [asking, setAsking] = useState(query.mine && !mine);
  const [offered, setOffered] = useState([]);
  const toggle = () => (mine ? setQuery({ mine: query.mine ? "" : "1" }) : setAsking(true));
  const field = (name) => (event) => setQuery({ [name]: event.currentTarget.value });
  return html`
    <form class="filters" role="search" aria-label="Filter jobs" onSubmit=${(event) => event.preventDefault()}>
      <button type="button" aria-pressed=${query.mine ? "true" : "false"}
        onClick=${toggle}>${mine ? `Mine (${mine.replace(/^(namespace|label):/, "")})` : "Mine"}</button>
      ${mine && html`<button type="button" class="quiet" onClick=${() => setAsking(!asking)}>Change</button>`}
      <label class="search">Text <input type="search" value=${query.text ?? ""} data-search
        onInput=${field("text")} placeholder="name, queue or cause" title="The key / leads here" />
        </label>
      ${["queue", "namespace"].map((name) => html`<label class="field">${name === "queue" ? "Queue" : "Namespace"}
        <input type="text" size="12" value=${query[name] ?? ""} onChange=${field(name)} onFocus=${() => setOffered(namesIn(rows, name))}
          list="offered-names" autocomplete="off" /></label>`)}
      <datalist id="offered-names">${offered.map((name) => html`<option value=${name} />`)}</datalist>
      <label class="field">Label <input type="text" size="14" value=${query.label ?? ""}
        onChange=${field("label")} placeholder="key=value" />
        </label>
      ${Object.keys(query).length > 0 && html`<a href="#/jobs">Clear</a>`}
    </form>
    ${asking && html`<${MineForm} done=${() => setAsking(false)} />`}`;
}

// The reader's own jobs: those of a namespace, or those with a label such as user=jane.
function MineForm({ done }) {
  const [mine, setMine] = usePreference("mine");
  const [kind, setKind] = useState(mine.startsWith("label:") ? "label" : "namespace");
  const [value, setValue] = useState(mine.replace(/^(namespace|label):/, ""));
  const save = (event) => {
    event.preventDefault();
    setMine(value.trim() ? `${kind}:${value.trim()}` : "");
    setQuery({ mine: value.trim() ? "1" : "" });
    done();
  };
  return html`
    <form class="filters notice" onSubmit=${save} aria-label="Which jobs are mine">
      <label>My jobs are those
        <select value=${kind} onChange=${(event) => setKind(event.currentTarget.value)}>
          <option value="namespace" selected=${kind === "namespace"}>in the namespace</option>
          <option value="label" selected=${kind === "label"}>with the label</option>
        </select>
      </label>
      <input type="text" aria-label=${kind === "label" ? "Label, as key=value" : "Namespace"}
        placeholder=${kind === "label" ? "user=jane" : "ml"} value=${value}
        onInput=${(event) => setValue(event.currentTarget.value)} />
      <button type="submit" class="primary">Save</button>
      <button type="button" onClick=${done}>Cancel</button>
    </form>`;
}

export function selection(mine) {
  const [kind, ...rest] = mine.split(":");
  const value = rest.join(":");
  return value ? { [kind]: value } : {};
}

function withText(text) {
  const wanted = (text ?? "").toLowerCase();
  const holds = (row) => `${row.id}\n${row.name}\n${row.queue}\n${row.cause}\n${row.never}`.toLowerCase().includes(wanted);
  return (row) => !wanted || holds(row);
}

const MOST_OFFERED = 200;

// Names that a field offers while the reader types.
function namesIn(rows, column) {
  const found = new Set();
  for (const row of rows?.values() ?? []) if (row[column]) found.add(row[column]);
  return [...found].sort().slice(0, MOST_OFFERED);
}

// Without a chosen order: what waits comes first, by queue and place, then what runs, then what is done; the newest first.
const URGENCY = { waiting: 0, terminating: 1, running: 2, empty: 3, failed: 4, succeeded: 5 };

function valueOf(id) {
  if (id === "urgency") {
    return (row) => (URGENCY[row.state] ?? 9) * 1e12 + (row.state === "waiting" ? (row.place ?? 1e9) : 1e11 - (row.created ?? 0));
  }
  if (id === "created") return (row) => (row.created ? -row.created : null); // Age: the youngest first
  if (id === "start") return (row) => row.start?.[0] ?? null;
  if (id === "place") return (row) => (row.never ? 1e9 : row.place);
  if (id === "id") return shownName;
  return (row) => row[id];
}
