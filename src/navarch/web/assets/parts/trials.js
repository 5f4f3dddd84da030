// "What would help": asks the server to run the trials of `navarch explain` for a job. Trials cost CPU, so they run only when asked for.
import { html, useState } from "../core/dom.js";
import { post } from "../core/api.js";
import { span } from "../core/format.js";
import { Few, JobLink } from "./names.js";

// {running, error, explanation, run}
export function useTrials(id) {
  const [state, setState] = useState({ running: false, error: null, explanation: null });
  const run = async () => {
    setState((old) => ({ ...old, running: true, error: null }));
    try {
      const { explanation } = await post(["jobs", ...id.split("/"), "trials"]);
      setState({ running: false, error: null, explanation });
    } catch (error) {
      setState((old) => ({ ...old, running: false, error }));
    }
  };
  return { ...state, run };
}

export function TrialsButton({ trials, text }) {
  return html`
    <div class="row" aria-live="polite">
      <button type="button" class="primary" onClick=${trials.run}
        disabled=${trials.running}>${trials.running ? "Trying changes …" : text}</button>
      ${trials.explanation && !trials.running && html`<span class="note">${effort(trials.explanation)}</span>`}
      ${trials.error && html`<span class="notice bad">${trials.error.message}</span>`}
    </div>`;
}

function effort({ trials, seconds, complete }) {
  return `${trials} trials in ${span(seconds)}${complete ? "" : ", not complete"}`;
}

export function BlockersButton({ id }) {
  const trials = useTrials(id);
  const blockers = trials.explanation?.blockers;
  return html`
    <${TrialsButton} trials=${trials} text="What blocks it" />
    ${blockers && html`<div>
      ${blockers.jobs.length
        ? html`Blocked by <${Few} items=${blockers.jobs.map((job) => html`<${JobLink} id=${job} />`)}
          most=${8} />${blockers.minimal && html` <span class="note">none can be left out</span>`}`
        : trials.explanation.state === "impossible" ? "It does not start on the empty cluster either." : "No set of jobs was found whose end alone starts it."}
    </div>`}`;
}
