// Simulations: the reports of `navarch simulate --report` that the server finds.
import { html } from "../core/dom.js";
import { bytes, clock } from "../core/format.js";
import { useOnce } from "../core/live.js";
import { address } from "../core/router.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Table, num } from "../parts/table.js";

export function SimulationsPage() {
  const source = useOnce(["simulations"]);
  return html`
    <div class="page-head"><h1 tabindex="-1">Simulations</h1></div>
    <${Loaded} source=${source} what="simulations">${({ items }) => html`
      <section class="panel">
        ${!items.length ? html`<${Empty}>None. <code>navarch simulate ... --report DIR/NAME</code> writes a report, <code>navarch web --simulations DIR</code> shows all reports of a folder.<//>` : html`
          <${Table} label="Reports" columns=${["Report", "title", "policies", "written", num("size")]}>${items.map((each) => html`
              <tr key=${each.name}><td><a href=${address(["simulations", each.name])}>${each.name}</a></td>
                <td class="anywhere">${each.title}</td><td class="anywhere">${each.policies.join(", ")}</td>
                <td class="nowrap">${clock(each.modified)}</td><td class="num">${bytes(each.bytes)}</td></tr>`)}
            <//>`}
      </section>`}
    <//>`;
}
