// The nodes as a sortable table, also for screen readers and printing.

const tableView = byId('table');
const MAX_TABLE_ROWS = 2000;
const COLUMNS = [
  ['#', (id) => id], ['Class', nodeName], ['Leaf', (id) => (nodes[id].leaf ? leafName(id) : leavesOf(id).map((leaf) => nameInside(leaf, id)).join(', '))],
  ['Module', (id) => moduleOf(id)?.[0] ?? ''], ['Output', (id) => outputsOf(id).join(', ')],
  ['Held', (id) => nodes[id].bytes || 0], ...(page.hasGradients ? [['Gradient norm', (id) => nodes[id].norm ?? '']] : []),
  ['Source', (id) => { const frame = frames[nodes[id].frame]; return frame ? `${frame[0]}:${frame[1]}` : ''; }],
];
const WIDEST_CODE = 70; // characters
const sorting = { column: 0, isDown: false };

function compare(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return typeof a === 'number' ? 1 : typeof b === 'number' ? -1 : a.localeCompare(b, 'en', { numeric: true });
}

function sortedIds() {
  const [, valueOf] = COLUMNS[sorting.column];
  const values = nodes.map((_, id) => valueOf(id));
  const sign = sorting.isDown ? -1 : 1;
  return nodes.map((_, id) => id).sort((a, b) => sign * compare(values[a], values[b]) || a - b);
}

function headCell([name], column) {
  const button = html('button', { type: 'button', text: name + (column === sorting.column ? (sorting.isDown ? ' ↓' : ' ↑') : '') });
  button.addEventListener('click', () => {
    sorting.isDown = column === sorting.column ? !sorting.isDown : ['Held', 'Gradient norm'].includes(name);
    sorting.column = column;
    drawTable();
    tableView.querySelectorAll('th button')[column].focus();
  });
  const order = column === sorting.column ? (sorting.isDown ? 'descending' : 'ascending') : 'none';
  return html('th', { scope: 'col', 'aria-sort': order }, button);
}

function tableRow(id) {
  return html('tr', {}, ...COLUMNS.map(([name, valueOf], column) => {
    const value = valueOf(id);
    if (column === 1) return html('td', {}, html('a', { href: hashOf(id), text: value }));
    if (name === 'Source') return html('td', {}, value, html('span', { class: 'quiet', text: shorten(frames[nodes[id].frame]?.[3] || '', WIDEST_CODE) }));
    const words = name === 'Held' ? (value ? formatBytes(value) : '') : name === '#' ? `#${numberOf(value)}` : String(value);
    return html('td', { class: typeof value === 'number' ? 'number' : '', text: words });
  }));
}

function drawTable() {
  const ids = sortedIds();
  const rows = ids.slice(0, MAX_TABLE_ROWS).map(tableRow);
  const caption = ids.length > MAX_TABLE_ROWS ? `The first ${MAX_TABLE_ROWS.toLocaleString('en')} of ${ids.length.toLocaleString('en')} nodes in this order`
    : formatCount(ids.length, 'node');
  tableView.replaceChildren(html('table', {}, html('caption', { text: caption }), html('thead', {}, html('tr', {}, ...COLUMNS.map(headCell))),
    html('tbody', {}, ...rows)));
}
