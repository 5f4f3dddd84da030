// Where the reader is: the path and the filters live in the fragment of the address (#/jobs?queue=a), so a page can be reloaded, sent
// to a colleague and served below any prefix, such as the service proxy of an API server.
import { useEffect, useState } from "./dom.js";

const listeners = new Set();

export function currentRoute() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return {
    parts: path.split("/").filter((part) => part !== "").map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

// The address of a page. Every part is encoded, so a name with a slash or a quote stays one part. Empty filters are left out.
export function address(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(kept).toString();
  return "#/" + parts.map((part) => encodeURIComponent(part)).join("/") + (search ? "?" + search : "");
}

export function navigate(parts, query = {}) {
  location.hash = address(parts, query).slice(1);
}

// Changes filters without a new entry in the history: one press of Back leaves the page, however many letters were typed.
export function setQuery(changes) {
  const { parts, query } = currentRoute();
  history.replaceState(null, "", address(parts, { ...query, ...changes }));
  tell();
}

export function useRoute() {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const listener = () => setRoute(currentRoute());
    listeners.add(listener);
    listener();
    return () => listeners.delete(listener);
  }, []);
  return route;
}

function tell() {
  for (const listener of listeners) listener();
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

addEventListener("hashchange", tell);
