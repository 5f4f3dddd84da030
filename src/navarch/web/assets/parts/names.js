// Links to jobs, queues and nodes. A name that the reader may not see arrives as null and is shown as "hidden", or as a text in
// parentheses such as "(another namespace)", which leads nowhere.
import { html } from "../core/dom.js";
import { address } from "../core/router.js";

// `text`: a shorter name than the id, where there is one.
export function JobLink({ id, text = shortened(id) }) {
  if (id === null) return html`<span class="note">hidden</span>`;
  if (!id || id.startsWith("(")) return id || "–";
  return html`<a href=${address(["jobs", ...id.split("/")])} title=${text === id ? undefined : id}>${text}</a>`;
}

// The id of a job without a group names the kind of its owner: "ml/pod/a", "ml/replicaset/web-1". People know it as "ml/a".
function shortened(id) {
  const parts = (id ?? "").split("/");
  return parts.length === 3 ? `${parts[0]}/${parts[2]}` : id;
}

export function QueueLink({ name }) {
  if (name === null) return html`<span class="note">hidden</span>`;
  if (!name || name.startsWith("(")) return name || "–";
  return html`<a href=${address(["queues", name])}>${name}</a>`;
}

export function NodeLink({ name }) {
  return name ? html`<a href=${address(["nodes", name])}>${name}</a>` : "–";
}

// The first few of a list of links, and how many more there are.
export function Few({ items, most = 4 }) {
  const shown = items.slice(0, most);
  const rest = items.length - shown.length;
  return html`${shown.map((item, i) => [i > 0 && ", ", item])}${rest > 0 && html` <span class="note">and ${rest} more</span>`}`;
}
