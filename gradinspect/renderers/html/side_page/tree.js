// Expand, collapse, move, and go to a difference.

const parents = new Map(); // of each item, the scope it is in
scopes.forEach((scope, index) => scope.items.forEach((item) => parents.set(item, index)));
const MAX_ROWS = 1000; // at first

const rowOf = (item) => rowsView.querySelector(`[data-item="${item}"]`);
const insideOf = (row) => (row.nextElementSibling?.classList.contains('inside') ? row.nextElementSibling : null);
const isOpen = (row) => row.getAttribute('aria-expanded') === 'true';

function fillScope(view, scope, level) {
  view.append(...scope.items.map((item) => makeRow(item, level)));
}

function expand(row) {
  if (isOpen(row)) return;
  const item = Number(row.dataset.item);
  const level = Number(row.getAttribute('aria-level'));
  const view = html('div', { class: 'inside', role: 'rowgroup' });
  if (isScope(item)) fillScope(view, scopeOf(item), level);
  else view.append(makeFacts(item, level - 1));
  row.after(view);
  mark(row, true);
}

function collapse(row) {
  insideOf(row)?.remove();
  mark(row, false);
}

function mark(row, isExpanded) {
  row.setAttribute('aria-expanded', isExpanded);
  for (const toggle of row.querySelectorAll('.toggle')) toggle.textContent = isExpanded ? '▾' : '▸';
}

const toggle = (row) => (isOpen(row) ? collapse(row) : expand(row));
const shownRows = () => [...rowsView.querySelectorAll('.row')].filter((row) => row.offsetParent !== null);

/** Only one row is in the tab order. */
function focusRow(row) {
  rowsView.querySelector('.row[tabindex="0"]')?.setAttribute('tabindex', -1);
  row.setAttribute('tabindex', 0);
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}

/** Expand what is around an item, and show it; `side` is the graph that a link is about. */
function show(item, side) {
  const path = [];
  for (let at = parents.get(item); at; at = parents.get(-at)) path.unshift(-at);
  for (const scope of path) { const row = rowOf(scope); if (row) expand(row); }
  const row = rowOf(item);
  if (!row) return;
  if (row.classList.contains('same')) showOnly(false);
  for (const old of rowsView.querySelectorAll('.shown')) old.classList.remove('shown', 'at-a', 'at-b');
  row.classList.add('shown');
  if (side !== undefined) row.classList.add(side ? 'at-b' : 'at-a');
  focusRow(row);
  row.scrollIntoView({ block: 'center' });
  current = isScope(item) ? scopeOf(item).first - 1 : item;
}

const numbers = [0, 1].map((side) => new Map(rows.flatMap((row, id) => (row[side] ? [[row[side][0], id]] : []))));

/** Follow the address: `#a12` is node 12 of A, `#s3` a scope. */
function followAddress() {
  const [, kind, number] = /^#([abs])(\d+)$/.exec(window.location.hash) || [];
  if (kind === 's' && scopes[Number(number)]) show(-Number(number));
  else if (kind) {
    const side = kind === 'b' ? 1 : 0;
    const id = numbers[side].get(Number(number));
    if (id !== undefined) show(id, side);
  }
}

let current = -1; // the node from which the next difference is looked for

/** Go to the next node that differs, or to the one before; from the last to the first. */
function step(direction) {
  const total = numDiffering.at(-1);
  if (!total) return;
  const ids = rows.flatMap((_, id) => (differs(id) && parents.has(id) ? [id] : []));
  const next = direction > 0 ? ids.find((id) => id > current) ?? ids[0] : ids.findLast((id) => id < current) ?? ids.at(-1);
  if (next !== undefined) show(next);
}

function showOnly(isOnly) {
  rowsView.classList.toggle('only', isOnly);
  byId('only').setAttribute('aria-pressed', isOnly);
}

function unfold() {
  let room = 1500 - shownRows().length;
  for (const row of rowsView.querySelectorAll('.scope[aria-expanded="false"]')) {
    room -= scopeOf(Number(row.dataset.item)).items.length;
    if (room < 0) break;
    expand(row);
  }
}

function fold() {
  for (const row of [...rowsView.children].filter((child) => child.classList.contains('row'))) collapse(row);
}

/** Expand the scopes that differ, outer ones first, while there is room; of copies that differ alike, the first. */
function openAtFirst() {
  fillScope(rowsView, scopes[0], 0);
  const waiting = [...scopes[0].items];
  let room = MAX_ROWS - waiting.length;
  for (const item of waiting) { // grows during iteration
    if (!isScope(item) || !inside(numDiffering, scopeOf(item)) || repeated.has(item)) continue;
    if (scopeOf(item).items.length > room) continue;
    room -= scopeOf(item).items.length;
    expand(rowOf(item));
    waiting.push(...scopeOf(item).items);
  }
  rowsView.querySelector('.row')?.setAttribute('tabindex', 0);
}

const ACTIONS = { n: () => step(1), p: () => step(-1), d: () => showOnly(!rowsView.classList.contains('only')), c: fold, e: unfold };

function move(row, key) {
  const shown = shownRows();
  const place = shown.indexOf(row);
  if (key === 'ArrowDown' && shown[place + 1]) focusRow(shown[place + 1]);
  else if (key === 'ArrowUp' && shown[place - 1]) focusRow(shown[place - 1]);
  else if (key === 'ArrowRight') { if (isOpen(row)) move(row, 'ArrowDown'); else expand(row); }
  else if (key === 'ArrowLeft' && isOpen(row)) collapse(row);
  else if (key === 'ArrowLeft') { const outer = row.parentElement.previousElementSibling; if (outer?.classList.contains('row')) focusRow(outer); }
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest?.('.row');
  if (ACTIONS[event.key]) { event.preventDefault(); ACTIONS[event.key](); }
  else if (row && event.key.startsWith('Arrow')) { event.preventDefault(); move(row, event.key); }
  else if (row && (event.key === 'Enter' || event.key === ' ')) { event.preventDefault(); toggle(row); }
});
rowsView.addEventListener('click', (event) => {
  const row = event.target.closest('.row');
  if (!row || window.getSelection().toString()) return;
  toggle(row);
  focusRow(row);
});
for (const [id, key] of [['next', 'n'], ['previous', 'p'], ['only', 'd'], ['fold', 'c'], ['unfold', 'e']]) byId(id).addEventListener('click', ACTIONS[key]);
if (window.matchMedia('(max-width: 760px)').matches) byId('list').open = false;
window.addEventListener('beforeprint', () => { byId('list').open = true; });
measureLines();
openAtFirst();
window.addEventListener('hashchange', followAddress);
followAddress();
