// Held memory: a treemap of the modules by bytes held, and the curve of its release during backward.

const memoryView = byId('memory');
const MAP_HEAD = 18, MAP_GAP = 2, MAP_SIZE = { width: 1000, height: 460 }, CURVE_SIZE = { width: 1000, height: 200 }, MAX_FREED = 8;

/** The item of a module in the picture: its first box, or its only node. */
function itemOfModule(path) {
  if (!itemOfModule.found) {
    itemOfModule.found = new Map();
    scopes.forEach((scope, place) => { if (scope.kind === 'module') keepFirst(itemOfModule.found, modules[scope.module][0], -place); });
    nodes.forEach((node, id) => { if (node.alone) keepFirst(itemOfModule.found, moduleOf(id)[0], id); });
  }
  return itemOfModule.found.get(path);
}

function keepFirst(map, key, value) { if (!map.has(key)) map.set(key, value); }

/** Squarified treemap of values sorted from large to small: {x, y, width, height} for each. */
function squares(values, { x, y, width, height }) {
  const total = values.reduce((sum, value) => sum + value, 0);
  const scale = total ? (width * height) / total : 0;
  const placed = [];
  let row = [];
  const worst = (areas, side) => {
    const sum = areas.reduce((a, b) => a + b, 0);
    return Math.max((side * side * Math.max(...areas)) / (sum * sum), (sum * sum) / (side * side * Math.min(...areas)));
  };
  const put = () => {
    const sum = row.reduce((a, b) => a + b, 0), isWide = width >= height;
    const depth = sum / (isWide ? height : width) || 0;
    let along = isWide ? y : x;
    for (const area of row) {
      const length = area / depth || 0;
      placed.push(isWide ? { x, y: along, width: depth, height: length } : { x: along, y, width: length, height: depth });
      along += length;
    }
    if (isWide) { x += depth; width -= depth; } else { y += depth; height -= depth; }
    row = [];
  };
  for (const value of values) {
    const area = value * scale, side = Math.min(width, height);
    if (row.length && worst([...row, area], side) > worst(row, side)) put();
    row.push(area);
  }
  if (row.length) put();
  return placed;
}

/** The name with its bytes if there is room, else the name, else its first characters. */
function cellText(room, name, bytes) {
  const letters = Math.floor((room.width - 10) / 6.4);
  const shown = [`${name} ${bytes}`, name].find((words) => words.length <= letters) ?? (letters > 3 ? `${name.slice(0, letters - 1)}…` : '');
  return shown && room.height > 14 ? svg('text', { x: round(room.x + 5), y: round(room.y + 13), text: shown }) : null;
}

/** One module with its submodules. Bytes of its own, in no submodule, get a cell too. */
function moduleCell([label, className, path, bytes, inside], room, depth) {
  const item = path ? itemOfModule(path) : undefined;
  const isOpen = inside.length > 0 && room.width > 60 && room.height > 44;
  const rect = svg('rect', { x: round(room.x), y: round(room.y), width: round(Math.max(0, room.width - MAP_GAP)), height: round(Math.max(0, room.height - MAP_GAP)), rx: 4 });
  const title = cellText(room, label || className, formatBytes(bytes));
  const kind = isOpen ? (depth % 2 ? 'open odd' : 'open') : path ? '' : 'own';
  const cell = svg(item === undefined ? 'g' : 'a', { class: `cell ${kind}`, href: item === undefined ? null : hashOf(item),
    'aria-label': `${path || className}, ${formatBytes(bytes)}` }, svg('title', { text: `${path || label} ${className}, ${formatBytes(bytes)}` }), rect, title);
  if (!isOpen) return [cell];
  const own = bytes - inside.reduce((sum, module) => sum + module[3], 0);
  const parts = [...inside, ...(own > 0 ? [['itself', className, '', own, []]] : [])].sort((a, b) => b[3] - a[3]);
  const rooms = squares(parts.map((part) => part[3]), { x: room.x + 4, y: room.y + MAP_HEAD, width: room.width - 10, height: room.height - MAP_HEAD - 6 });
  return [cell, ...parts.flatMap((part, index) => moduleCell(part, rooms[index], depth + 1))];
}

/** What is held because of backward, and beside it the weights, which are in memory anyway. */
const formatHeld = (held, weights) => `${formatBytes(held)} held${weights ? ` (+ ${formatBytes(weights)} of weights, in memory anyway)` : ''}`;

function moduleMap() {
  const tops = [...page.memory.modules].sort((a, b) => b[3] - a[3]);
  const rooms = squares(tops.map((part) => part[3]), { x: 0, y: 0, ...MAP_SIZE });
  return svg('svg', { class: 'map', viewBox: `0 0 ${MAP_SIZE.width} ${MAP_SIZE.height}`, role: 'group', 'aria-label': 'Modules by bytes held' },
    ...tops.flatMap((part, index) => moduleCell(part, rooms[index], 0)));
}

/** The bytes still held after each node, in the order backward runs them. */
function releaseCurve() {
  const { moments, extra } = page.memory;
  const { width, height } = CURVE_SIZE;
  const last = Math.max(1, nodes.length - 1);
  const x = (node) => round((node / last) * width), y = (bytes) => round(height - (bytes / extra) * (height - 6));
  let path = `M0,${y(extra)}`;
  for (const [node, , held] of moments) path += `H${x(node)}V${y(held)}`;
  path += `H${width}`;
  return svg('svg', { class: 'curve', viewBox: `0 -14 ${width} ${height + 34}`, role: 'img', 'aria-label': `Held memory falls from ${formatBytes(extra)} to 0` },
    svg('path', { class: 'area', d: `${path}V${height}H0Z` }), svg('path', { class: 'line', d: path }),
    svg('text', { x: 4, y: -3, class: 'small', text: formatBytes(extra) }),
    svg('text', { x: 0, y: height + 14, class: 'small', text: 'start of backward' }),
    svg('text', { x: width, y: height + 14, class: 'small', 'text-anchor': 'end', text: 'end' }));
}

function largestReleases() {
  const largest = [...page.memory.moments].sort((a, b) => b[1] - a[1]).slice(0, MAX_FREED);
  return html('ul', {}, ...largest.map(([node, freed, held]) => html('li', {}, link(node),
    html('span', { class: 'quiet', text: `  frees ${formatBytes(freed)}, ${formatBytes(held)} left` }))));
}

function drawMemory() {
  const { total, extra, kinds } = page.memory;
  const words = Object.entries(kinds).filter(([kind]) => kind !== 'parameter' && kind !== 'buffer').map(([kind, bytes]) => `${formatBytes(bytes)} ${kind}`).join(', ');
  memoryView.replaceChildren(html('p', { text: `${formatHeld(extra, total - extra)}: ${words}` }),
    html('h2', { text: page.memory.by }), moduleMap(), html('h2', { text: 'During backward' }), releaseCurve(),
    html('h2', { text: 'Largest releases' }), largestReleases());
}
