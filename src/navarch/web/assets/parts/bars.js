// Horizontal bars: parts of a whole, with marks for what is owed or allowed. Widths are set through the CSSOM, which the content security
// policy allows; the text of the bar is its label for screen readers.
import { html } from "../core/dom.js";

// parts: [{value, kind}], kinds are classes of the stylesheet (used, free, useless, borrowed); marks: [{value, name}].
export function Bar({ parts, whole, marks = [], label, thin = false }) {
  const share = (value) => `${whole > 0 ? Math.max(0, Math.min(100, (100 * value) / whole)) : 0}%`;
  return html`
    <div class=${thin ? "bar thin" : "bar"} role="img" aria-label=${label} title=${label}>
      ${parts.filter((part) => part.value > 0).map((part) => html`<i class=${part.kind} style=${{ width: share(part.value) }}>
        </i>`)}
      ${marks.filter((mark) => mark.value > 0 && mark.value <= whole * 1.0001).map(
        (mark) => html`<b title=${mark.name} style=${{ left: `calc(${share(mark.value)} - 1px)` }}></b>`,
      )}
    </div>`;
}

// What the colours of bars mean: [[class, text], ...].
export function Key({ entries }) {
  return html`<div class="key">${entries.map(([kind, text]) => html`<span><i class=${kind}></i>${text}</span>`)}</div>`;
}
