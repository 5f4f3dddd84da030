// Lines over time or over a value, drawn by uPlot. The same figures stand in a table for readers that do not see the canvas.
import { html, useEffect, useRef } from "../core/dom.js";
import { themeColour, useThemeVersion } from "../core/preferences.js";

const LIGHT = [
  "#2166ac", "#c0502f", "#1b7837", "#762a83", "#8a6508", "#23756d", "#8c510a", "#b3166c", "#4d4d4d", "#3f8f4a", "#7a55a0", "#053061",
];
const DARK = [
  "#6baed6", "#f4a582", "#7fcf8f", "#c2a5cf", "#e5c15a", "#80cdc1", "#dfa86a", "#f09fc8", "#bababa", "#a6dba0", "#b9a0d8", "#9ecae1",
];

export function seriesColour(number) {
  const colours = isDark() ? DARK : LIGHT;
  return colours[number % colours.length];
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

// series: [{name, times, values}]; show(value) names a value; time: x is a moment in seconds; utc: of UTC; logX: x is logarithmic;
// steps: distances between ticks of x that may be chosen.
export function Plot({ label, series, show, showX, time = false, utc = false, logX = false, range, rangeX, steps, height = 220 }) {
  const host = useRef();
  const told = useRef();
  const theme = useThemeVersion();
  const columns = joined(series);
  const single = series.length === 1; // one line needs no legend: what the pointer is at stands below
  useEffect(() => {
    if (!columns[0].length) return undefined;
    const ink = themeColour("dim");
    const line = themeColour("line");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const underCursor = ({ cursor: { idx } }, name) => (idx === null || idx === undefined || columns[1][idx] === null
      ? name : `${(showX ?? show)(columns[0][idx])}: ${show(columns[1][idx])}`);
    const size = () => ({ width: Math.max(host.current?.clientWidth ?? 0, 200), height });
    const drawn = new window.uPlot(
      {
        ...size(),
        legend: { show: !single },
        hooks: single ? { setCursor: [(plot) => { told.current.textContent = underCursor(plot, series[0].name); }] } : {},
        series: [
          { label: utc ? "UTC" : time ? "time" : "at", value: (_, x) => (x === null || x === undefined ? "" : (showX ?? show)(x)) },
          ...series.map((each, number) => ({
            label: each.name,
            stroke: seriesColour(number),
            width: 1.6,
            spanGaps: true,
            points: { show: false },
            value: (_, value) => (value === null || value === undefined ? "" : show(value)),
          })),
        ],
        ...(utc ? { tzDate: (moment) => window.uPlot.tzDate(new Date(moment * 1000), "Etc/UTC") } : {}),
        scales: { x: { time, distr: logX ? 3 : 1, range: rangeX }, y: { range } },
        axes: [
          { ...axis, ...(steps ? { incrs: steps } : {}), space: 80, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : (showX ?? show)(tick))) },
          { ...axis, size: 62, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : show(tick))) },
        ],
      },
      columns,
      host.current,
    );
    const observer = new ResizeObserver(() => drawn.setSize(size()));
    observer.observe(host.current);
    return () => {
      observer.disconnect();
      drawn.destroy();
    };
  }, [series, theme, height]);
  if (!columns[0].length) return html`<p class="empty">Nothing to draw yet.</p>`;
  return html`
    <figure class="plot" aria-label=${label}>
      <div ref=${host} aria-hidden="true"></div>
      ${single && html`<p class="note told" ref=${told} aria-hidden="true">${series[0].name}</p>`}
      <div class="visually-hidden"><table>
        <caption>${label}</caption>
        <thead><tr><th scope="col">series</th><th scope="col">first</th><th scope="col">last</th><th scope="col">least</th>
          <th scope="col">most</th></tr></thead>
        <tbody>${series.map((each) => summary(each, show))}</tbody>
      </table></div>
    </figure>`;
}

function summary({ name, values }, show) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (!known.length) return html`<tr><th scope="row">${name}</th><td colspan="4">no values</td></tr>`;
  const least = known.reduce((a, b) => Math.min(a, b));
  const most = known.reduce((a, b) => Math.max(a, b));
  const cells = [known[0], known[known.length - 1], least, most];
  return html`<tr><th scope="row">${name}</th>${cells.map((value) => html`<td>${show(value)}</td>`)}</tr>`;
}

// Series with times of their own become columns over one common axis.
function joined(series) {
  const times = [...new Set(series.flatMap((each) => each.times))].sort((a, b) => a - b);
  const place = new Map(times.map((moment, i) => [moment, i]));
  return [times, ...series.map((each) => {
    const out = new Array(times.length).fill(null);
    each.times.forEach((moment, i) => { out[place.get(moment)] = each.values[i]; });
    return out;
  })];
}
