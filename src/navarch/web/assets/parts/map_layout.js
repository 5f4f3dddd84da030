// Where each cell of the node map stands. Pure functions: nodes in groups become blocks, blocks flow from left to right into lines.

const GAP = 10;
const LABEL = 16;
const SMALLEST = 5;
const LARGEST = 88; // cells of a small cluster have room for a name

// groups: [{name, nodes: [index]}]; returns {cell, height, blocks: [{name, nodes, x, y, columns, width, height}]}.
// Cells are as large as fits into about `wanted` pixels of height; the map becomes higher where cells would be too small to see.
export function layout(groups, width, wanted) {
  let best = null;
  for (let cell = LARGEST; cell >= SMALLEST; cell--) {
    best = placed(groups, width, cell);
    if (best.height <= wanted) break;
  }
  return best;
}

function placed(groups, width, cell) {
  const blocks = [];
  const most = Math.max(1, Math.floor(width / cell));
  let x = 0;
  let y = 0;
  let line = 0;
  for (const group of groups) {
    const wide = groups.length === 1 ? most : Math.ceil(Math.sqrt(group.nodes.length * 1.6)); // one group has the whole width
    const columns = Math.min(most, group.nodes.length, Math.max(1, wide));
    const blockWidth = columns * cell;
    const blockHeight = LABEL + Math.ceil(group.nodes.length / columns) * cell;
    if (x > 0 && x + blockWidth > width) {
      x = 0;
      y += line + GAP;
      line = 0;
    }
    blocks.push({ name: group.name, nodes: group.nodes, x, y, columns, width: blockWidth, height: blockHeight });
    line = Math.max(line, blockHeight);
    x += Math.max(blockWidth, 34) + GAP;
  }
  return { cell, height: y + line, blocks, label: LABEL };
}

// The block and the place in it at a point, or null.
export function cellAt({ blocks, cell, label }, x, y) {
  for (let b = 0; b < blocks.length; b++) {
    const block = blocks[b];
    if (x < block.x || x >= block.x + block.width || y < block.y + label || y >= block.y + block.height) continue;
    const place = Math.floor((y - block.y - label) / cell) * block.columns + Math.floor((x - block.x) / cell);
    return place < block.nodes.length ? { block: b, place } : null;
  }
  return null;
}

// The upper left corner of a cell.
export function corner({ blocks, cell, label }, { block, place }) {
  const found = blocks[block];
  return { x: found.x + (place % found.columns) * cell, y: found.y + label + Math.floor(place / found.columns) * cell };
}

// The cell that an arrow key leads to: within the block where there is one, else the next or previous block.
export function moved({ blocks }, at, key) {
  const { columns, nodes } = blocks[at.block];
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
  const place = at.place + step;
  if (place >= 0 && place < nodes.length) return { block: at.block, place };
  const block = at.block + Math.sign(step);
  if (block < 0 || block >= blocks.length) return at;
  return { block, place: step < 0 ? blocks[block].nodes.length - 1 : 0 };
}
