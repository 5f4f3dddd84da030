// Whether what the pages show is current: whether the dashboard answers, and whether the cluster's API server answers the dashboard.
import { get } from "./api.js";
import { useEffect, useState } from "./dom.js";
import { useConnection } from "./live.js";

const CALM = 10_000; // milliseconds between two looks
const HURRIED = 2000; // while something is wrong

// {apiServer: {answers, reason, lastAnswer}, dashboard: the moment of its last answer, answers: whether it answered last}
export function useStatus() {
  const [status, setStatus] = useState({ answers: true, dashboard: Date.now() / 1000, apiServer: null });
  const connection = useConnection();
  useEffect(() => {
    const abort = new AbortController();
    let timer = null;
    const look = async () => {
      let calm = true;
      if (!document.hidden) {
        try {
          const { apiServer } = await get("status", {}, abort.signal);
          calm = apiServer.answers;
          setStatus({ answers: true, dashboard: Date.now() / 1000, apiServer });
        } catch (error) {
          if (abort.signal.aborted) return;
          calm = error.status !== undefined; // it answered, if only to refuse: the page itself says so
          setStatus((old) => ({ ...old, answers: calm }));
        }
      }
      timer = setTimeout(look, calm ? CALM : HURRIED);
    };
    timer = setTimeout(look, connection === "connecting" ? HURRIED : 0);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [connection]);
  return status;
}
