// Both graphs as rows: what is the same in both is in one row. Rows of a scope are made when it is expanded.

const page = JSON.parse(byId('graph').textContent);
const { rows, nodes, calls, scopes, texts } = page;
const MARKS = ['', 'added', 'removed', 'changed'];
const SIGNS = { added: '+', removed: '−', changed: '~' };
const SIDE_NAMES = ['A', 'B'];
const rowsView = byId('rows');

const isScope = (item) => item < 0;
const scopeOf = (item) => scopes[-item];
const sideOf = (id, side) => (rows[id][side] ? nodes[rows[id][side][1]] : null);
const statusOf = (id) => MARKS[rows[id][2]];

/** Sums up to each node, so that those of a scope are differences. */
function sumsOf(valueOf) {
  const sums = [0];
  rows.forEach((_, id) => sums.push(sums[id] + valueOf(id)));
  return sums;
}
const held = [0, 1].map((side) => sumsOf((id) => sideOf(id, side)?.[7] ?? 0));
const present = [0, 1].map((side) => sumsOf((id) => (sideOf(id, side) ? 1 : 0)));
const leafMarks = (id) => [0, 1].some((side) => sideOf(id, side)?.[3].some(([, status]) => status));
const differs = (id) => Boolean(rows[id][2] || rows[id][3]?.length || leafMarks(id));
const counts = Object.fromEntries(MARKS.slice(1).map((mark) => [mark, sumsOf((id) => (statusOf(id) === mark ? 1 : 0))]));
const numDiffering = sumsOf((id) => (differs(id) ? 1 : 0));
const inside = (sums, { first, last }) => sums[last + 1] - sums[first];

const around = new Map();  // a node -> the module call that its scope is in

scopes.forEach((scope) => {  // a scope comes before those inside of it, which learn the module call around them
  const outer = scope.module ?? scope.around;
  for (const item of scope.items) {
    if (isScope(item)) scopeOf(item).around = outer;
    else if (outer !== undefined) around.set(item, outer);
  }
});

/** The name of a module without that of the one around it; an index keeps its parent. */
function nameInside(name, outer) {
  if (!outer || !name.startsWith(`${outer}.`)) return name;
  const start = outer.length + 1;
  return name.slice(/\d/.test(name[start]) ? outer.lastIndexOf('.') + 1 : start);
}

/** The name of a module call on one side; '' if there is none. */
const pathOf = (call, side) => (call === undefined || calls[call][side] < 0 ? '' : texts[calls[call][side]]);

/** The class of a node, and its module as it is called inside of the one around it: what is cut is the class. */
function nodeTitle(id, side, text) {
  const [name, module] = text.split('  ');
  if (!module) return part('what', text);
  const own = nameInside(module, pathOf(around.get(id), side));
  return html('span', { class: 'what', title: text }, part('op', name, text), ' ', part('own', own, text));
}

/** The text of a scope on one side; null if that graph does not have it. */
function scopeTitle(scope, side) {
  if (!inside(present[side], scope)) return null;
  if (scope.module === undefined) {
    const title = nameInside(scope.title, pathOf(scope.around, side));
    return scope.times ? `${title}  ×${scope.times.toLocaleString('en')}` : title;
  }
  const call = calls[scope.module];
  if (call[side] < 0) return null;
  return `${nameInside(texts[call[side]], pathOf(scope.around, side))}  ${texts[call[2]]}`;
}

/** The status of a scope: of its module call, or of all that is in it. */
function scopeStatus(scope) {
  const size = scope.last + 1 - scope.first;
  if (scope.module !== undefined && calls[scope.module][3]) return MARKS[calls[scope.module][3]];
  return ['added', 'removed'].find((mark) => inside(counts[mark], scope) === size) ?? '';
}

/** What changed inside of a scope, in signs: `+2 −1 ~3`. */
function countsInside(scope) {
  const words = MARKS.slice(1).map((mark) => [mark, inside(counts[mark], scope)]).filter(([, count]) => count);
  const texts = words.map(([mark, count]) => `${SIGNS[mark]}${count.toLocaleString('en')}`);
  return texts.length || !inside(numDiffering, scope) ? texts.join(' ') : '~';
}

/** The copies that an item of a repeat stands for: itself, or those in a box of many. */
const copiesIn = (item) => (isScope(item) && scopeOf(item).times ? scopeOf(item).items : [item]);
const nodesOf = (item) => (isScope(item) ? scopeOf(item) : { first: item, last: item });

/** The last part of the name of a leaf. */
function lastName(text) {
  const name = text.split('  ')[0];
  return name.slice(name.lastIndexOf('.') + 1);
}

/** The leaves of a node that only one graph has, without the name of the block they are in. */
const leavesThatDiffer = (id) => [0, 1].map((side) => (sideOf(id, side)?.[3] ?? []).filter(([, status]) => status)
  .map(([place, status]) => [lastName(texts[place]), status]));

/** A detail without the numbers of blocks in the names of modules. */
const inAnyBlock = (text) => text.replace(/(?<=[A-Za-z_]\w*(?:\.\w+)*\.)\d+/g, '*');

/** What differs in an item, as a text that is the same for copies with the same differences. */
function differencesIn(item) {
  const { first, last } = nodesOf(item);
  const found = [];
  for (let id = first; id <= last; id += 1) if (differs(id)) found.push([id - first, rows[id][2], rows[id][3]?.map((place) => inAnyBlock(texts[place])), leavesThatDiffer(id)]);
  const modules = calls.filter((call) => call[3] && call[5] >= first && call[5] <= last);
  return JSON.stringify([last - first, found, modules.map(([, , className, status, word, start]) => [start - first, className, status, word])]);
}

/** Items in which nothing else differs than in a copy above them. */
const repeated = new Set();

scopes.filter((scope) => scope.times).forEach((scope) => {
  const known = new Set();
  for (const item of scope.items) {
    const found = copiesIn(item).map(differencesIn);
    if (inside(numDiffering, nodesOf(item)) && found.every((one) => known.has(one))) repeated.add(item);
    for (const one of found) known.add(one);
  }
});

const missing = (side) => html('div', { role: 'gridcell', class: `cell ${SIDE_NAMES[side].toLowerCase()} gone`, 'aria-label': `not in ${SIDE_NAMES[side]}`, text: '—' });
const cell = (side, ...children) => html('div', { role: 'gridcell', class: `cell ${SIDE_NAMES[side].toLowerCase()}`, 'data-side': SIDE_NAMES[side] }, ...children);
const part = (name, text, title = text) => (text ? html('span', { class: name, title }, ...pieces(text)) : null);

const LINE_LETTERS = 20;
const cutStart = (text) => (text.length > LINE_LETTERS ? `…${text.slice(1 - LINE_LETTERS)}` : text);

const placeOf = (line) => cutStart(line.slice(line.lastIndexOf('/') + 1));

/** Give lines as much room as the longest needs, and what is left to names. */
function measureLines() {
  let longest = 0;
  for (let id = 0; id < rows.length; id += 1) {
    for (const node of [sideOf(id, 0), sideOf(id, 1)]) longest = Math.max(longest, node ? placeOf(texts[node[5]]).length : 0);
  }
  document.documentElement.style.setProperty('--line-letters', String(longest));
}

/** What a row is, then what gives way to it where there is no room: its tensors, leaves that are the same, its line with the whole path as a title. */
const saying = (name, shape, line, leaves = []) => html('span', { class: 'saying' }, html('span', { class: 'naming' }, html('span', { class: 'toggle', 'aria-hidden': 'true', text: '▸' }), ...name),
  html('span', { class: 'tensor', title: shape || null }, ...leaves.flatMap((one) => [one, ' ']), shape), line && html('span', { class: 'line', text: placeOf(line), title: line }));
const heldBytes = (bytes) => html('span', { class: 'held', text: bytes ? formatBytes(bytes) : '' });

function scopeCell(scope, side) {
  const title = scopeTitle(scope, side);
  if (title === null) return missing(side);
  const count = inside(present[side], scope);
  const bytes = inside(held[side], scope);
  return cell(side, saying([part('what', title)], formatCount(count, 'node'), ''), heldBytes(bytes));
}

function chip([place, status]) {
  const mark = MARKS[status];
  return part(`chip ${mark}`, `${mark ? `${SIGNS[mark]} ` : ''}◆ ${lastName(texts[place])}`, `${mark} ${texts[place]}`.trim());
}

function nodeCell(id, side) {
  const node = sideOf(id, side);
  if (!node) return missing(side);
  const [name, outputs, , leaves, , line, , bytes] = node;
  const named = [part('quiet', `#${rows[id][side][0]}`), nodeTitle(id, side, texts[name]), ...leaves.filter(([, status]) => status).map(chip)];
  return cell(side, saying(named, outputs.map((place) => texts[place]).join(', '), texts[line], leaves.filter(([, status]) => !status).map(chip)), heldBytes(bytes));
}

/** What a cell says apart from its number and its line: a narrow page has no room for lines. */
const saidIn = (one) => [...one.querySelectorAll('.what, .tensor, .chip, .held, .quiet')].map((each) => each.textContent).filter((text) => !text.startsWith('#')).join(' ');

/** Create the row of an item, with the element that takes what is inside. */
function makeRow(item, level) {
  const scope = isScope(item) ? scopeOf(item) : null;
  const status = scope ? scopeStatus(scope) : statusOf(item);
  const isDifferent = scope ? inside(numDiffering, scope) > 0 || status !== '' : differs(item);
  const cells = [0, 1].map((side) => (scope ? scopeCell(scope, side) : nodeCell(item, side)));
  const sign = SIGNS[status] ?? (!scope && isDifferent ? '~' : '');
  const word = scope?.module === undefined ? '' : texts[calls[scope.module][4]];
  const inIt = [scope && status === '' ? countsInside(scope) : '', repeated.has(item) ? 'as above' : ''].filter(Boolean).join(' ');
  const mark = html('div', { role: 'gridcell', class: 'mark', 'aria-label': [status, word, scope && status ? countsInside(scope) : '', inIt].filter(Boolean).join(' ') || 'same' },
    sign && html('b', { text: sign }), html('span', { text: ` ${word || inIt}` }));
  const isAlike = cells.every((one) => !one.classList.contains('gone')) && saidIn(cells[0]) === saidIn(cells[1]);
  const names = ['row', scope ? 'scope' : 'node', status, isDifferent ? '' : 'same', isAlike ? 'alike' : ''];
  const row = html('div', { role: 'row', class: names.filter(Boolean).join(' '), 'aria-level': level + 1, 'aria-expanded': 'false', tabindex: -1, 'data-item': item },
    cells[0], mark, cells[1]);
  row.style.setProperty('--level', level);
  return row;
}
