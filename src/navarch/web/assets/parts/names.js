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

// The id of a job without a group names the kind of its owner: "ml/pod/a", "ml/replicaset/web-1". A PodGroup of a Volcano Job has the
// Job's uid in its name, a ReplicaSet a hash of its pods. People know these as "ml/a", "ml/bert", "ml/web".
const UID = /-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const HASH = /-[bcdf-hj-np-tv-xz2456789]{6,10}$/;

export function shortened(id) {
  const parts = (id ?? "").split("/");
  if (parts.length === 3) return `${parts[0]}/${parts[1] === "replicaset" ? parts[2].replace(HASH, "") : parts[2]}`;
  return id?.replace(UID, "");
}

// Names of jobs in a text, as people gave them.
export const withoutUids = (text) => text?.replace(UID, "") ?? "";

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
