// The frame of the dashboard: navigation, theme, state of the connection, and the page that the address names.
import { html, render, useEffect, useErrorBoundary, useRef } from "./core/dom.js";
import { useConnection } from "./core/live.js";
import { applyTheme, preference, usePreference } from "./core/preferences.js";
import { address, useRoute } from "./core/router.js";
import { useStatus } from "./core/status.js";
import { CyclePage } from "./pages/cycle.js";
import { CyclesPage } from "./pages/cycles.js";
import { JobPage } from "./pages/job.js";
import { JobsPage } from "./pages/jobs.js";
import { NodePage } from "./pages/node.js";
import { NodesPage } from "./pages/nodes.js";
import { OverviewPage } from "./pages/overview.js";
import { QueuePage } from "./pages/queue.js";
import { QueuesPage } from "./pages/queues.js";
import { SimulationPage } from "./pages/simulation.js";
import { SimulationsPage } from "./pages/simulations.js";
import { shortened } from "./parts/names.js";
import { StatusBand, isCurrent } from "./parts/status_band.js";

// First part of the address -> title, page of the list, page of one item.
const PAGES = {
  overview: ["Overview", OverviewPage],
  jobs: ["Jobs", JobsPage, JobPage],
  queues: ["Queues", QueuesPage, QueuePage],
  nodes: ["Nodes", NodesPage, NodePage],
  cycles: ["Cycles", CyclesPage, CyclePage],
  simulations: ["Simulations", SimulationsPage, SimulationPage],
};
const THEMES = { system: "Colours: system", light: "Colours: light", dark: "Colours: dark" };
const CONNECTIONS = { live: ["on", "live"], connecting: ["", "connecting"], idle: ["on", "loaded"], old: ["off", "not current"] };

function App() {
  const { parts, query } = useRoute();
  const [section = "overview", ...rest] = parts;
  const [title, List, Item] = PAGES[section] ?? ["No such page", NoSuchPage];
  const Page = rest.length && Item ? Item : List;
  const where = parts.join("/");
  const status = useStatus();
  const main = useRef();
  const before = useRef(where);
  useEffect(() => {
    document.title = `${rest.length ? shortened(rest.join("/")) + " · " : ""}${title} · Navarch`;
    if (before.current !== where) main.current.querySelector("h1")?.focus(); // screen readers go on at the new page
    before.current = where;
  }, [where]);
  return html`
    <a class="skip" href="#main"
      onClick=${(event) => { event.preventDefault(); main.current.querySelector("h1")?.focus(); }}>Skip to content</a>
    <header class="top">
      <a class="brand" href="#/overview"><${Mark} />Navarch</a>
      <nav aria-label="Pages">
        ${Object.entries(PAGES).map(([name, [text]]) => html`<a href=${address([name])}
          aria-current=${name === section ? "page" : undefined}>${text}</a>`)}
      </nav>
      <div class="right"><${Connection} current=${isCurrent(status)} /><${ThemeButton} /></div>
    </header>
    <${StatusBand} status=${status} />
    <main id="main" ref=${main}><${Contained} key=${where}><${Page} parts=${rest} query=${query} /><//></main>`;
}

// An error while a page is drawn stays on that page.
function Contained({ children }) {
  const [error, reset] = useErrorBoundary((found) => console.error(found));
  if (!error) return children;
  return html`<h1 tabindex="-1">This page failed</h1><p class="notice bad" role="alert">${error.message}</p><p>
    <button type="button" onClick=${reset}>Try again</button></p>`;
}

function Connection({ current }) {
  const connection = useConnection();
  const [style, text] = CONNECTIONS[current ? connection : "old"];
  return html`<span class=${`live ${style}`} role="status">${text}</span>`;
}

function ThemeButton() {
  const [theme, setTheme] = usePreference("theme", "system");
  useEffect(() => applyTheme(theme), [theme]);
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(theme) + 1) % names.length];
  return html`<button type="button" class="quiet" aria-label=${`${THEMES[theme]}. Change to ${next}`}
    onClick=${() => setTheme(next)}>${THEMES[theme]}</button>`;
}

function Mark() {
  return html`<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M11 2v11H4zM13 5l7 8h-7zM2 15h20l-3 6H5z" /></svg>`;
}

function NoSuchPage() {
  return html`<h1 tabindex="-1">No such page</h1><p><a href="#/overview">Overview</a></p>`;
}

// The key / leads to the search field of the page, as in many other tools.
addEventListener("keydown", (event) => {
  const field = document.querySelector("[data-search]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !field || event.target.closest?.("input, select, textarea")) return;
  event.preventDefault();
  field.focus();
});

// The token of the address became a cookie; it does not stay in the address or the history.
const found = new URL(location.href);
if (found.searchParams.has("token")) {
  found.searchParams.delete("token");
  history.replaceState(null, "", found);
}
applyTheme(preference("theme", "system"));
const host = document.getElementById("app");
host.replaceChildren(); // the frame that was painted while modules were loading
render(html`<${App} />`, host);
