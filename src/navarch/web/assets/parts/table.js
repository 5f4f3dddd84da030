// A plain table in a box that scrolls where it is wider or higher than its place. The box takes the focus, so that keys scroll it too.
// On a phone each row becomes a card: the first cell is its title, and each other cell has the name of its column before it.
import { html, useLayoutEffect, useRef } from "../core/dom.js";

// columns: texts, or {title, className, text} such as num("pods"); `text` names the column where its title is more than text. `tall`: the box has a greatest height.
export function Table({ label, columns, tall = false, className = "", children }) {
  const body = useRef();
  useLayoutEffect(() => {
    for (const row of body.current.rows) {
      [...row.cells].forEach((cell, i) => {
        cell.dataset.column = titleOf(columns[i]);
      });
    }
  });
  return html`
    <div class=${tall ? "table-scroll tall" : "table-scroll"} role="region" aria-label=${label} tabindex="0">
      <table class=${`cards ${className}`}>
        <thead><tr>${columns.map(heading)}</tr></thead>
        <tbody ref=${body}>${children}</tbody>
      </table>
    </div>`;
}

export function num(title, text) {
  return { title, text, className: "num" };
}

export function bar(title) {
  return { title, className: "wide-bar" };
}

const titleOf = (column) => (typeof column === "string" ? column : (column?.text ?? column?.title ?? ""));

function heading(column) {
  if (typeof column === "string") return html`<th scope="col">${column}</th>`;
  return html`<th scope="col" class=${column.className}>${column.title}</th>`;
}
