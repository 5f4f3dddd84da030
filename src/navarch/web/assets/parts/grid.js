// A table of very many rows: all rows have one height, and only those in view exist. A native table, so screen readers know it as one;
// aria-rowcount and aria-rowindex tell them the rows that do not exist.
//
// columns: [{id, title, width, num, minor, cell(row), sortable}]; a `minor` column is hidden on a phone. The first column is the row's
// header and holds its link. rowAt(i) may return undefined for a row that is not loaded yet.
import { html, useLayoutEffect, useRef, useState } from "../core/dom.js";

const ROW_HEIGHT = 28; // pixels
const BEYOND = 8; // rows drawn above and below what is in view

export function Grid({ label, columns, count, rowAt, keyOf, sort, onSort, rowHeight = ROW_HEIGHT }) {
  const box = useRef();
  const wanted = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);

  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setHeight(entry.contentRect.height));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const first = Math.max(0, Math.min(count - 1, Math.floor(top / rowHeight)) - BEYOND);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + BEYOND);

  // After a key moved to a row that was out of view, the row exists only now.
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const link = box.current.querySelector(`[data-row="${wanted.current}"] a`);
    if (link) {
      wanted.current = null;
      link.focus({ preventScroll: true });
    }
  });

  const onKeyDown = (event) => {
    const row = event.target.closest?.("[data-row]");
    const at = row ? Number(row.dataset.row) : -1;
    const page = Math.max(1, Math.floor(height / rowHeight) - 2);
    const target = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1 }[event.key];
    if (target === undefined || !count || event.target.closest?.("thead")) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(count - 1, target));
    wanted.current = next;
    const start = next * rowHeight;
    if (start < box.current.scrollTop) box.current.scrollTop = start;
    const room = height - rowHeight * 2; // the header covers one row
    if (start > box.current.scrollTop + room) box.current.scrollTop = start - room;
    setTop(box.current.scrollTop);
    const link = box.current.querySelector(`[data-row="${next}"] a`);
    if (link) {
      wanted.current = null;
      link.focus({ preventScroll: true });
    }
  };

  const rows = [];
  for (let i = first; i < last; i++) {
    const row = rowAt(i);
    rows.push(html`
      <tr key=${row === undefined ? `at ${i}` : keyOf(row)} data-row=${i} aria-rowindex=${i + 2}>
        ${row === undefined
          ? html`<td colspan=${columns.length} class="note">…</td>`
          : columns.map((column, n) => cell(column, row, n === 0))}
      </tr>`);
  }
  return html`
    <div class="grid" ref=${box} role="region" aria-label=${label} tabindex="0"
      onScroll=${(event) => setTop(event.currentTarget.scrollTop)} onKeyDown=${onKeyDown}>
      <table style=${{ "--row": `${rowHeight}px` }} aria-label=${label} aria-rowcount=${count + 1}>
        <colgroup>${columns.map((column) => html`<col class=${column.minor ? "minor" : ""}
          style=${{ width: column.width ?? "auto" }} />`)}</colgroup>
        <thead><tr aria-rowindex="1">${columns.map((column) => heading(column, sort, onSort))}</tr></thead>
        <tbody>
          ${first > 0 && spacer(first * rowHeight, columns)}
          ${rows}
          ${last < count && spacer((count - last) * rowHeight, columns)}
        </tbody>
      </table>
    </div>`;
}

function cell(column, row, isHeader) {
  const names = [column.num && "num", column.minor && "minor"].filter(Boolean).join(" ");
  const content = column.cell(row);
  const title = column.text ? column.text(row) : typeof content === "string" ? content : undefined;
  return isHeader ? html`<th scope="row" class=${names} title=${title}>${content}</th>` : html`<td class=${names}
    title=${title}>${content}</td>`;
}

function heading(column, sort, onSort) {
  const names = [column.num && "num", column.minor && "minor"].filter(Boolean).join(" ");
  if (!column.sortable || !onSort) return html`<th scope="col" class=${names}>${column.title}</th>`;
  const own = sort?.id === column.id;
  const direction = own ? (sort.descending ? "descending" : "ascending") : "none";
  const press = () => onSort(own ? { id: column.id, descending: !sort.descending } : { id: column.id, descending: false });
  return html`
    <th scope="col" class=${names} aria-sort=${direction}>
      <button type="button" onClick=${press}>${column.title}${own ? (sort.descending ? " ↓" : " ↑") : ""}</button>
    </th>`;
}

function spacer(height, columns) {
  return html`<tr class="spacer" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${height}px` }}></td></tr>`;
}
