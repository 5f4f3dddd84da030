// Data that stays current. A page loads a resource once, then follows the stream of changes that the server sends from that version on.
// The stream says `reset` where it cannot continue from a version; the resource is then loaded again.
import { useEffect, useRef, useState } from "./dom.js";
import { get, url } from "./api.js";

const FIRST_RETRY = 1000; // milliseconds
const LONGEST_RETRY = 15000;
const watchers = new Set();
const streams = new Map(); // open streams -> "live" or "connecting"

// Whether the streams of this page are connected: "live", "connecting", or "idle" where the page has none.
export function useConnection() {
  const [state, setState] = useState(connection);
  useEffect(() => {
    const listener = () => setState(connection());
    watchers.add(listener);
    listener();
    return () => watchers.delete(listener);
  }, []);
  return state;
}

function connection() {
  const states = [...streams.values()];
  return states.length === 0 ? "idle" : states.every((state) => state === "live") ? "live" : "connecting";
}

function setStream(key, state) {
  if (state === null) streams.delete(key);
  else streams.set(key, state);
  for (const watcher of watchers) watcher();
}

// Follows one topic. read(answer) makes the page's data of an answer of the API; merge(data, change) returns new data with a change of
// the stream laid over it. query: filters of the request, which the stream has as well. preview: filters of a small request that goes
// before a large one, so that the page shows something at once.
export function useTopic(topic, query, read, merge, preview = null) {
  const [state, setState] = useState({ data: undefined, error: null });
  const wanted = JSON.stringify(query);
  useEffect(() => {
    let whole = false;
    const abort = new AbortController();
    if (preview) {
      const shown = (answer) => whole || setState({ data: { ...read(answer), partial: true }, error: null });
      get(topic, { ...query, ...preview }, abort.signal).then(shown, () => {}); // the large request reports errors
    }
    const follower = follow({
      load: (signal) => get(topic, query, signal),
      topics: topic,
      filters: query,
      onLoad: (answer) => {
        whole = true;
        setState({ data: read(answer), error: null });
      },
      onChange: (change) => {
        const over = (old) => (old.data === undefined ? old : { data: merge(old.data, change[topic]), error: null });
        if (change[topic]) setState(over);
      },
      onError: (error) => setState((old) => ({ ...old, error })),
    });
    return () => {
      abort.abort();
      follower.stop();
      setState({ data: undefined, error: null });
    };
  }, [topic, wanted]);
  return state;
}

// Loads one resource again whenever concerns(change) says that a change of the topic is about it.
export function useResource(path, topic, concerns, filters = {}) {
  const [state, setState] = useState({ data: undefined, error: null });
  const again = useRef(() => {});
  const key = path.join("/");
  useEffect(() => {
    const follower = follow({
      load: (signal) => get(path, {}, signal),
      topics: topic,
      filters,
      onLoad: (data) => setState({ data, error: null }),
      onChange: (change) => change[topic] && concerns(change[topic]) && follower.reload(),
      onError: (error) => setState((old) => ({ ...old, error })),
    });
    again.current = follower.reload;
    return () => {
      follower.stop();
      setState({ data: undefined, error: null });
    };
  }, [key, topic]);
  return { ...state, reload: () => again.current() };
}

// Loads a resource once.
export function useOnce(path, query = {}) {
  const [state, setState] = useState({ data: undefined, error: null });
  const key = url(path, query);
  useEffect(() => {
    const abort = new AbortController();
    setState({ data: undefined, error: null });
    get(path, query, abort.signal).then(
      (data) => setState({ data, error: null }),
      (error) => abort.signal.aborted || setState({ data: undefined, error }),
    );
    return () => abort.abort();
  }, [key]);
  return state;
}

function follow({ load, topics, filters, onLoad, onChange, onError }) {
  const abort = new AbortController();
  const key = {};
  let source = null;
  let retry = FIRST_RETRY;
  let timer = null;
  let loading = false;
  let stale = false;

  async function reload() {
    if (loading) {
      stale = true; // one more load when this one is done
      return;
    }
    loading = true;
    try {
      const answer = await load(abort.signal);
      retry = FIRST_RETRY;
      onLoad(answer);
      if (!source && !document.hidden) open(answer.version);
    } catch (error) {
      if (abort.signal.aborted) return;
      onError(error);
      if (!source && error.status !== 401 && error.status !== 404) later();
      else if (!source) setStream(key, null);
    } finally {
      loading = false;
    }
    if (stale && !abort.signal.aborted) {
      stale = false;
      reload();
    }
  }

  function open(version) {
    source = new EventSource(url("events", { ...filters, topics, since: version }));
    source.onopen = () => setStream(key, "live");
    source.addEventListener("change", (event) => onChange(JSON.parse(event.data)));
    source.addEventListener("reset", reload);
    source.onerror = () => {
      setStream(key, "connecting");
      if (source.readyState === EventSource.CLOSED) {
        source = null; // the browser gave up, so begin anew
        later();
      }
    };
  }

  // Browsers allow few connections to one server. A page in a hidden tab gives up its stream and loads again when it is shown.
  function onVisibility() {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (!source) reload();
  }

  function later() {
    setStream(key, "connecting");
    timer = setTimeout(reload, retry);
    retry = Math.min(2 * retry, LONGEST_RETRY);
  }

  setStream(key, "connecting");
  document.addEventListener("visibilitychange", onVisibility);
  reload();
  return {
    reload,
    stop() {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibility);
      source?.close();
      setStream(key, null);
    },
  };
}
