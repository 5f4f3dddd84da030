// A plain table in a box that scrolls where it is wider or higher than its place. The box takes the focus, so that keys scroll it too.
import { html } from "../core/dom.js";

// columns: texts, or {title, className} such as num("pods"). `tall`: the box has a greatest height.
export function Table({ label, columns, tall = false, className = "", children }) {
  return html`
    <div class=${tall ? "table-scroll tall" : "table-scroll"} role="region" aria-label=${label} tabindex="0">
      <table class=${className}>
        <thead><tr>${columns.map(heading)}</tr></thead>
        <tbody>${children}</tbody>
      </table>
    </div>`;
}

export function num(title) {
  return { title, className: "num" };
}

export function bar(title) {
  return { title, className: "wide-bar" };
}

function heading(column) {
  if (typeof column === "string") return html`<th scope="col">${column}</th>`;
  return html`<th scope="col" class=${column.className}>${column.title}</th>`;
}
