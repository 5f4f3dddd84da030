// A band above every page while what it shows is not current, with since when.
import { html } from "../core/dom.js";
import { clock } from "../core/format.js";

// status: what useStatus of core/status.js returns.
export function isCurrent({ answers, apiServer }) {
  return answers && (!apiServer || apiServer.answers);
}

export function StatusBand({ status }) {
  const { answers, dashboard, apiServer } = status;
  if (isCurrent(status)) return null;
  if (!answers) {
    return html`<p class="band" role="alert"><b>The dashboard does not answer.</b> This page shows what it knew at ${clock(dashboard)}, and tries again by itself.</p>`;
  }
  const since = apiServer.lastAnswer ? `This page shows the cluster as it was at ${clock(apiServer.lastAnswer)}.` : "";
  return html`<p class="band" role="alert"><b>The dashboard cannot reach the cluster's API server.</b> ${since} <span class="note">${apiServer.reason}</span></p>`;
}
