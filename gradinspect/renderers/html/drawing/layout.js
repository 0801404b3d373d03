// A layered layout of one scope: what gradients reach later is lower.
// Vertices are in topological order, so no edge has to be reversed.

const ROW_GAP = 30, COLUMN_GAP = 26, LANE_GAP = 14, ORDER_SWEEPS = 8, PLACE_SWEEPS = 24, LAST_SWEEPS = 6;

/**
 * Position each vertex.
 * vertices: {left, right, height, role: 'in' | 'item' | 'out'}; edges: {from, to, fromX, toX}, offsets from the columns.
 * Adds x (of the column) and y (of the middle) to vertices, and points to edges; returns {width, height}.
 */
function layOut(vertices, edges) {
  const ranks = rankOf(vertices, edges);
  const { rows, lanes } = makeRows(vertices, edges, ranks);
  orderRows(rows);
  keepThrough(rows);
  placeColumns(rows);
  straighten(rows, lanes);
  return finish(vertices, edges, rows, lanes);
}

function rankOf(vertices, edges) {
  const ranks = new Int32Array(vertices.length);
  const hasBefore = new Uint8Array(vertices.length);
  const next = vertices.map(() => []);
  for (const { from, to } of edges) { next[from].push(to); hasBefore[to] = 1; }
  const start = vertices.some((vertex) => vertex.role === 'in') ? 1 : 0;
  let lowest = start;
  vertices.forEach((vertex, place) => {
    if (vertex.role !== 'in') ranks[place] = Math.max(ranks[place], start);
    for (const to of next[place]) ranks[to] = Math.max(ranks[to], ranks[place] + 1);
    lowest = Math.max(lowest, ranks[place]);
  });
  for (let place = vertices.length - 1; place >= 0; place -= 1) { // vertices without incoming edges go just above their first target
    if (vertices[place].role !== 'item' || hasBefore[place] || !next[place].length) continue;
    ranks[place] = Math.max(start, Math.min(...next[place].map((to) => ranks[to])) - 1);
  }
  const bottom = Math.max(0, ...vertices.map((vertex, place) => (vertex.role === 'item' ? ranks[place] + 1 : 0)));
  vertices.forEach((vertex, place) => { if (vertex.role === 'out') ranks[place] = Math.max(bottom, ranks[place]); });
  return ranks;
}

/** Split long edges into lanes, one for each row they cross. */
function makeRows(vertices, edges, ranks) {
  const spots = vertices.map((vertex, place) => ({ ...vertex, rank: ranks[place], place, up: [], down: [], x: 0 }));
  const rows = [];
  const ends = new Uint8Array(vertices.length).fill(1); // no outgoing edges
  for (const { from } of edges) ends[from] = 0;
  const put = (spot) => { (rows[spot.rank] ||= []).push(spot); };
  spots.forEach(put);
  const lanes = edges.map(({ from, to, fromX, toX }) => {
    const lane = [spots[from]];
    for (let rank = ranks[from] + 1; rank < ranks[to]; rank += 1) {
      const spot = { rank, place: -1, left: 2, right: 2, height: 0, up: [], down: [], x: 0, role: 'lane' };
      put(spot);
      lane.push(spot);
    }
    lane.push(spots[to]);
    for (let step = 1; step < lane.length; step += 1) {
      const [above, below] = [lane[step - 1], lane[step]];
      const weight = weightOf(above, below, ends[to]);
      const shift = (step === lane.length - 1 ? toX : 0) - (step === 1 ? fromX : 0);
      above.down.push({ spot: below, shift, weight });
      below.up.push({ spot: above, shift: -shift, weight });
    }
    return lane;
  });
  for (let rank = 0; rank < rows.length; rank += 1) rows[rank] ||= [];
  return { rows, lanes };
}

/** How straight a piece of an edge should be: side branches that end yield to paths that continue. */
function weightOf(above, below, isEnd) {
  if (above.role === 'lane' && below.role === 'lane') return 8;
  if (below.role === 'out' || above.role === 'in') return 6;
  if (isEnd) return 0.001;
  return above.role === 'lane' || below.role === 'lane' ? 2 : 3;
}

/** Order each row by the positions of its neighbors, alternately from above and below, to reduce crossings. */
function orderRows(rows) {
  const number = (row) => row.forEach((spot, index) => { spot.order = index; });
  rows.forEach(number);
  for (let sweep = 0; sweep < ORDER_SWEEPS; sweep += 1) {
    const fromAbove = sweep % 2 === 0;
    for (const row of fromAbove ? rows : [...rows].reverse()) {
      for (const spot of row) {
        const near = fromAbove ? spot.up : spot.down;
        const sum = near.reduce((total, { spot: other, shift }) => total + other.order + Math.sign(shift) * 0.1, 0);
        spot.target = near.length ? sum / near.length : spot.order;
      }
      row.sort((a, b) => a.target - b.target || a.order - b.order);
      number(row);
    }
  }
}

/** If one stream enters and one leaves, keep them in one column, so that chained scopes line up. */
function keepThrough(rows) {
  if (!rows.length) return;
  const ins = rows[0].filter((spot) => spot.role === 'in'), outs = rows.at(-1).filter((spot) => spot.role === 'out');
  if (ins.length === 1 && outs.length === 1) outs[0].up.push({ spot: ins[0], shift: 0, weight: 40 });
}

/** Align the pieces of a long edge where nothing is in the way. */
function straighten(rows, lanes) {
  for (const lane of lanes) {
    const spots = lane.slice(1, -1);
    if (spots.length < 2) continue;
    const places = spots.map((spot) => spot.x);
    const line = [Math.max(...places), Math.min(...places)].find((x) => spots.every((spot) => isFree(rows[spot.rank], spot.order, x)));
    if (line !== undefined) for (const spot of spots) spot.x = line;
  }
}

function isFree(row, index, x) {
  const [left, right] = [row[index - 1], row[index + 1]];
  return (!left || x - left.x >= gap(left, row[index]) - 0.1) && (!right || right.x - x >= gap(row[index], right) - 0.1);
}

/** Move columns toward their neighbors as far as order and width allow, keeping lanes straight first. */
function placeColumns(rows) {
  for (const row of rows) {
    let x = 0;
    row.forEach((spot, index) => { x += index ? gap(row[index - 1], spot) : 0; spot.x = x; });
  }
  const upwards = [...rows].reverse();
  for (const row of rows) for (const spot of row) spot.both = [...spot.up, ...spot.down];
  let moved = Infinity, before = Infinity;
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep += 1) {
    if (moved + before < 1) sweep = Math.max(sweep, PLACE_SWEEPS - LAST_SWEEPS); // converged
    const isLast = sweep >= PLACE_SWEEPS - LAST_SWEEPS;
    const fromAbove = sweep % 2 === 0;
    [before, moved] = [moved, 0];
    for (const row of fromAbove ? rows : upwards) {
      for (const spot of row) aim(spot, isLast ? spot.both : fromAbove ? spot.up : spot.down);
      moved = Math.max(moved, settle(row));
    }
    if (isLast && moved < 0.05) break;
  }
}

const gap = (left, right) => left.right + right.left
  + (left.role === 'item' && right.role === 'item' ? COLUMN_GAP : LANE_GAP);

function aim(spot, near) {
  let sum = 0, weights = 0;
  for (const { spot: other, shift, weight } of near) { sum += weight * (other.x + shift); weights += weight; }
  spot.target = weights ? sum / weights : spot.x;
  spot.weight = weights || 0.1;
}

/** Move to the closest positions to the targets that keep order and gaps, in blocks where needed; return how far. */
function settle(row) {
  const blocks = [];
  let shift = 0;
  row.forEach((spot, index) => {
    shift += index ? gap(row[index - 1], spot) : 0;
    spot.shift = shift;
    let block = { sum: (spot.target - shift) * spot.weight, weight: spot.weight, first: index };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight >= block.sum / block.weight) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, weight: before.weight + block.weight, first: before.first };
    }
    blocks.push(block);
  });
  let moved = 0;
  blocks.forEach((block, index) => {
    const stop = index + 1 < blocks.length ? blocks[index + 1].first : row.length;
    for (let at = block.first; at < stop; at += 1) {
      const x = block.sum / block.weight + row[at].shift;
      moved = Math.max(moved, Math.abs(x - row[at].x));
      row[at].x = x;
    }
  });
  return moved;
}

function finish(vertices, edges, rows, lanes) {
  let left = Infinity, right = -Infinity, y = 0;
  const spots = rows.flat();
  for (const spot of spots) { left = Math.min(left, spot.x - spot.left); right = Math.max(right, spot.x + spot.right); }
  for (const spot of spots) spot.x -= left;
  rows.forEach((row, rank) => {
    const height = Math.max(0, ...row.map((spot) => spot.height));
    for (const spot of row) { spot.top = y; spot.bottom = y + height; }
    for (const spot of row) if (spot.place >= 0) Object.assign(vertices[spot.place], { x: spot.x, y: y + height / 2 });
    y += height + (rank < rows.length - 1 ? roomBelow(row) : 0);
  });
  edges.forEach((edge, index) => { edge.points = pointsOf(lanes[index], edge); });
  return { width: spots.length ? right - left : 1, height: Math.max(y, 1) };
}

/** Rows connected by flat curves are further apart, so that the curves stay distinguishable. */
function roomBelow(row) {
  const reach = Math.max(0, ...row.flatMap((spot) => spot.down.map(({ spot: other, shift }) => Math.abs(other.x - spot.x + shift))));
  return row.every((spot) => spot.role === 'in') ? 14 + Math.min(26, reach * 0.08) : ROW_GAP + Math.min(50, reach * 0.1);
}

/** The points of an edge: vertical inside each row, free between rows. */
function pointsOf(lane, { fromX, toX }) {
  const [first, last] = [lane[0], lane.at(-1)];
  const middle = (spot) => (spot.top + spot.bottom) / 2;
  const points = [[first.x + fromX, middle(first) + first.height / 2], [first.x + fromX, first.bottom]];
  for (const spot of lane.slice(1, -1)) points.push([spot.x, spot.top], [spot.x, spot.bottom]);
  points.push([last.x + toX, last.top], [last.x + toX, middle(last) - last.height / 2]);
  return points;
}
