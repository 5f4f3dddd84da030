// All nodes as cells of a canvas, in blocks by rack or another level of the topology. The pointer and the arrow keys move a mark over the
// cells; what stands under it is told as text. Screen readers and readers of figures have the table of the page instead.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../core/dom.js";
import { themeColour, useThemeVersion } from "../core/preferences.js";
import { cellAt, corner, layout, moved } from "./map_layout.js";

const WANTED_HEIGHT = 560;
const READABLE = 60; // pixels of a cell that has room for text

// groups: [{name, nodes: [index]}]; colourOf(index) is a colour; tell(index) describes a node; open(index) shows its page; textOf(index)
// are the lines that are written into a large cell.
export function NodeMap({ groups, colourOf, textOf, tell, open, label }) {
  const box = useRef();
  const canvas = useRef();
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState(null);
  const theme = useThemeVersion();
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const plan = useMemo(() => (width > 0 ? layout(groups, width, WANTED_HEIGHT) : null), [groups, width]);
  useEffect(() => {
    if (plan) draw(canvas.current, plan, width, colourOf, textOf);
  }, [plan, colourOf, theme]);

  const valid = plan && at && at.block < plan.blocks.length && at.place < plan.blocks[at.block].nodes.length ? at : null;
  const nodeAt = (cell) => plan.blocks[cell.block].nodes[cell.place];
  const onMove = (event) => {
    const frame = canvas.current.getBoundingClientRect();
    setAt(plan && cellAt(plan, event.clientX - frame.left, event.clientY - frame.top));
  };
  const onKeyDown = (event) => {
    if (!plan?.blocks.length) return;
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const next = valid ? moved(plan, valid, event.key) : { block: 0, place: 0 };
      setAt(next);
      const { y } = corner(plan, next);
      const frame = box.current;
      if (y < frame.scrollTop) frame.scrollTop = y - 20;
      if (y + plan.cell > frame.scrollTop + frame.clientHeight) frame.scrollTop = y + plan.cell - frame.clientHeight + 20;
    } else if (event.key === "Enter" && valid) open(nodeAt(valid));
  };
  const mark = valid && corner(plan, valid);
  return html`
    <div class="map" ref=${box} tabindex="0" role="application" aria-roledescription="node map"
      aria-label=${`${label}. Arrow keys move, Enter opens a node. The table has the same figures.`} onKeyDown=${onKeyDown}>
      <canvas ref=${canvas} aria-hidden="true" onPointerMove=${onMove} onPointerLeave=${() => setAt(null)}
        onClick=${() => valid && open(nodeAt(valid))}>
        </canvas>
      ${mark && html`<i class="map-mark"
        style=${{ left: `${mark.x}px`, top: `${mark.y}px`, width: `${plan.cell}px`, height: `${plan.cell}px` }}>
        </i>`}
    </div>
    <p class="map-told" role="status">${valid ? tell(nodeAt(valid)) : "Point at a cell, or move with the arrow keys."}</p>`;
}

function draw(canvas, plan, width, colourOf, textOf) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.floor(width * ratio);
  canvas.height = Math.floor(plan.height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${plan.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.clearRect(0, 0, width, plan.height);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const inset = plan.cell > 7 ? 2 : 1;
  const ink = themeColour("dim");
  for (const block of plan.blocks) {
    pen.fillStyle = ink;
    pen.fillText(fitting(pen, block.name, Math.max(block.width, 34)), block.x, block.y + plan.label / 2);
    block.nodes.forEach((node, place) => {
      pen.fillStyle = colourOf(node);
      const x = block.x + (place % block.columns) * plan.cell;
      const y = block.y + plan.label + Math.floor(place / block.columns) * plan.cell;
      pen.fillRect(x, y, plan.cell - inset, plan.cell - inset);
      if (plan.cell >= READABLE) write(pen, textOf(node), x, y, plan.cell);
    });
  }
}

// Dark text on light cells, and light text on dark ones.
function write(pen, lines, x, y, cell) {
  const [red, green, blue] = numbers(pen.fillStyle);
  pen.fillStyle = 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#12243a" : "#ffffff";
  lines.forEach((line, i) => pen.fillText(fitting(pen, line, cell - 12), x + 5, y + 13 + 15 * i));
}

// A canvas gives back colours as #rrggbb.
function numbers(colour) {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
}

function fitting(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(text.slice(0, length) + "…").width > width) length--;
  return text.slice(0, length) + "…";
}
