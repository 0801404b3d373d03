// The layout of everything expanded: each scope on its own, from the inside out, then nested.
// An edge between scopes leaves the first through a port at its bottom and enters the other through a port at its top.
// Edges to the same box share ports and continue as one stream.

/** Lay out everything expanded: {boxes: [{item, x, y, ...}], edges: [{points, pairs, hasTip}], width, height}. */
function layOutOpen() {
  const seen = visibleBoxes();
  const parts = new Map([...open].filter((place) => seen.depth.has(place)).map((place) => [place, newPart(place)]));
  const pairs = pairsBetween(seen);
  pairs.forEach((pair, number) => joinParts(parts, seen, pair, number));
  for (const place of [...parts.keys()].sort((a, b) => seen.depth.get(b) - seen.depth.get(a))) layOutPart(parts, place);
  return { ...putTogether(parts, pairs), pairs, boxOf: seen.boxOf, items: seen.items };
}

/** Number the visible boxes and nodes, and find the one that represents each node. */
function visibleBoxes() {
  const boxOf = new Int32Array(nodes.length).fill(-1);
  const items = [], depth = new Map([[0, 0]]);
  eachVisible((item, _, level) => {
    if (isScope(item) && open.has(-item)) { depth.set(-item, level + 1); return; }
    if (isScope(item)) boxOf.fill(items.length, scopes[-item].first, scopes[-item].last + 1);
    else boxOf[item] = items.length;
    items.push(item);
  });
  return { boxOf, items, depth };
}

const MAX_NAMES = 2;

/** The forward arguments of a piece of an edge, where it leaves a node with several; the number of edges out of a scope. */
function namesOn(edge, pairs, count) {
  const from = edge.start.item;
  if (from !== undefined && isScope(from) && edge.start.port === null) return edge.isSkip ? 'skip' : count > 1 ? `×${count.toLocaleString('en')}` : '';
  if (from === undefined || isScope(from) || edgesOf(from).filter(Boolean).length < 2) return '';
  return joinNames(edge.pairs.flatMap((number) => pairs[number].names.map((way) => textAt(way[2]))).filter(Boolean));
}

/** Names of arguments in short: `tensors[1-198]` for the elements of one list, or the first few. */
function joinNames(names) {
  const parts = names.map((name) => /^(.+)\[(\d+)\]$/.exec(name));
  const isRange = names.length > 1 && parts.every((part, index) => part && part[1] === parts[0][1] && Number(part[2]) === Number(parts[0][2]) + index);
  if (isRange) return `${parts[0][1]}[${parts[0][2]}-${parts.at(-1)[2]}]`;
  return names.slice(0, MAX_NAMES).join(', ') + (names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '');
}

/** The edges between boxes; those between the same two are merged and counted. */
function pairsBetween({ boxOf, items }) {
  const found = new Map();
  for (let from = 0; from < nodes.length; from += 1) {
    const tail = boxOf[from];
    if (tail < 0) continue;
    for (const [position, edge] of edgesOf(from).entries()) {
      const head = edge ? boxOf[edge[0]] : -1;
      if (head < 0 || head === tail) continue;
      const isSkip = isScope(items[tail]) && isSkipOf(-items[tail], from, position);
      const key = `${tail}>${head}${isSkip ? ' skip' : ''}`;
      const pair = found.get(key) || { tail: items[tail], head: items[head], count: 0, names: [], isSkip };
      found.set(key, pair);
      pair.count += 1;
      if (items[tail] === from) pair.names.push(edge);
    }
  }
  return [...found.values()];
}

/** Whether an edge leaves a closed scope around its body, as a residual connection does. */
function isSkipOf(place, from, position) {
  return (scopes[place].skips || []).some(([tail, at]) => tail === from && at === position);
}

function newPart(place) {
  return { place, edges: new Map(), ins: new Map(), outs: new Map() };
}

/** Route a pair: out of the scopes around its tail, across, and into the scopes around its head. */
function joinParts(parts, seen, pair, number) {
  let from = { item: pair.tail, port: null }, to = { item: pair.head, port: null };
  let tailPart = parentOf(pair.tail), headPart = parentOf(pair.head);
  const port = pair.isSkip ? `skip ${pair.head}` : pair.head; // a skip has a line of its own, beside the others
  const depth = (place) => seen.depth.get(place);
  while (tailPart !== headPart) {
    if (depth(tailPart) >= depth(headPart)) {
      addEdge(parts.get(tailPart), from, { port }, number, pair.isSkip);
      from = { item: -tailPart, port };
      tailPart = parentOfScope[tailPart];
    } else {
      addEdge(parts.get(headPart), { port }, to, number, pair.isSkip);
      to = { item: -headPart, port };
      headPart = parentOfScope[headPart];
    }
  }
  addEdge(parts.get(tailPart), from, to, number, pair.isSkip);
}

/** Add an edge of a scope; an end without an item is a port of that scope itself. */
function addEdge(part, from, to, number, isSkip) {
  if (from.item === undefined) part.ins.set(from.port, -1);
  if (to.item === undefined) part.outs.set(to.port, -1);
  const key = `${from.item}:${from.port}>${to.item}:${to.port}${isSkip ? ' skip' : ''}`;
  const edge = part.edges.get(key);
  if (edge) edge.pairs.push(number);
  else part.edges.set(key, { start: from, end: to, pairs: [number], isSkip });
}

function layOutPart(parts, place) {
  const part = parts.get(place);
  const { items } = scopes[place];
  const port = (role) => ({ role, left: 4, right: 4, height: 0 });
  const vertices = [];
  for (const key of part.ins.keys()) { part.ins.set(key, vertices.length); vertices.push(port('in')); }
  const at = new Map();
  for (const item of items) { at.set(item, vertices.length); vertices.push({ ...boxSize(parts, item), role: 'item', item }); }
  for (const key of part.outs.keys()) { part.outs.set(key, vertices.length); vertices.push(port('out')); }
  const edges = [...part.edges.values()].map((edge) => ({
    ...edge,
    from: edge.start.item === undefined ? part.ins.get(edge.start.port) : at.get(edge.start.item),
    to: edge.end.item === undefined ? part.outs.get(edge.end.port) : at.get(edge.end.item),
    fromX: portX(parts, edge.start, 'outs') + asideOf(edge, edge.start), toX: portX(parts, edge.end, 'ins') + asideOf(edge, edge.end),
  }));
  const { width, height } = layOutOnce(place, vertices, edges);
  const title = place ? titleWidth(place) : 0;
  part.inner = { width, height, margin: Math.max(0, (title - width) / 2), vertices, edges };
  part.size = sizeOfPart(part);
}

const laidOut = new Map(); // by scope: its last input and layout

/** Lay out a scope unless it is unchanged: expanding one box leaves most others as they are. */
function layOutOnce(place, vertices, edges) {
  const sizes = vertices.map((vertex) => (vertex.item < 0 || vertex.role !== 'item' ? [vertex.left, vertex.right, vertex.height] : 0));
  const signature = JSON.stringify([sizes, edges.map(({ from, to, fromX, toX }) => [from, to, fromX, toX])]);
  const before = laidOut.get(place);
  if (before?.signature === signature) {
    vertices.forEach((vertex, index) => { [vertex.x, vertex.y] = before.places[index]; });
    edges.forEach((edge, index) => { edge.points = before.lines[index]; });
    return before;
  }
  const { width, height } = layOutParts(vertices, edges);
  laidOut.set(place, { signature, width, height, places: vertices.map(({ x, y }) => [x, y]), lines: edges.map(({ points }) => points) });
  return { width, height };
}

const titleWidth = (place) => {
  const { title, detail, small } = scopeWords(place);
  return widthOf(`${title}  ${detail}`, 'title') + widthOf(small, 'small') + 30;
};

/** The column of an expanded scope is where most of its edges enter, so that they come in straight. */
function sizeOfPart({ inner, ins, outs }) {
  const width = inner.width + 2 * (INSET + inner.margin);
  const port = [...ins.values()][0] ?? [...outs.values()][0];
  const column = port === undefined ? width / 2 : inner.vertices[port].x + INSET + inner.margin;
  return { frame: width, left: column, right: width - column, height: inner.height + HEAD + INSET - (outs.size ? 4 : 0), column };
}

const boxSize = (parts, item) => (isScope(item) && open.has(-item) ? parts.get(-item).size : sizeOf(item));

const SKIP_ASIDE = 30;

/** How far beside the column of a box a skip begins or ends. */
const asideOf = (edge, end) => (edge.isSkip && end.item !== undefined && end.port === null ? SKIP_ASIDE : 0);

/** The distance of a port from its box's column. */
function portX(parts, end, side) {
  if (end.item === undefined || end.port === null) return 0;
  const part = parts.get(-end.item);
  return part.inner.vertices[part[side].get(end.port)].x + INSET + part.inner.margin - part.size.column;
}

/** Convert positions inside each scope to positions in the picture. */
function putTogether(parts, pairs) {
  const boxes = [], edges = [];
  const top = parts.get(0).inner;
  const waiting = [[0, 0, 0, 0]];
  while (waiting.length) {
    const [place, left, upper, depth] = waiting.pop();
    const { inner, outs } = parts.get(place);
    for (const vertex of inner.vertices) {
      if (vertex.role !== 'item') continue;
      const box = { ...vertex, x: vertex.x + left, y: vertex.y + upper, depth, isOpen: isScope(vertex.item) && open.has(-vertex.item) };
      boxes.push(box);
      if (!box.isOpen) continue;
      const innerPart = parts.get(-vertex.item);
      waiting.push([-vertex.item, box.x - vertex.left + INSET + innerPart.inner.margin, box.y - vertex.height / 2 + HEAD, depth + 1]);
    }
    for (const edge of inner.edges) {
      const points = edge.points.map(([x, y]) => [x + left, y + upper]);
      if (edge.start.item === undefined) points[0][1] = upper - HEAD;
      if (edge.end.item === undefined) points[points.length - 1][1] = upper + inner.height + INSET - (outs.size ? 4 : 0);
      const hasTip = edge.end.item !== undefined && edge.end.port === null;
      const count = edge.pairs.reduce((sum, number) => sum + pairs[number].count, 0);
      edges.push({ points, pairs: edge.pairs, hasTip, count, depth, isSkip: edge.isSkip, names: namesOn(edge, pairs, count) });
    }
  }
  return { boxes, edges, width: top.width, height: top.height };
}
