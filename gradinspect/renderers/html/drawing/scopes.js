// Which boxes are expanded, and which box represents a node.
// An item is a node id, or minus the index of a scope; scope 0 is the whole graph and has no parent.

const parentOfScope = new Int32Array(scopes.length).fill(-1);
const parentOfNode = new Int32Array(nodes.length).fill(-1);
const open = new Set([0]);

scopes.forEach((scope, place) => {
  for (const item of scope.items) {
    if (item < 0) parentOfScope[-item] = place;
    else parentOfNode[item] = place;
  }
});
const isScope = (item) => item < 0;
const parentOf = (item) => (isScope(item) ? parentOfScope[-item] : parentOfNode[item]);
const countNodes = (scope) => Math.max(0, scope.last - scope.first + 1);

let heldBefore = null; // node id -> bytes held by all nodes before it

/** The bytes held for backward by a node, or by all nodes of a scope. */
function heldBytes(item) {
  if (!heldBefore) {
    heldBefore = [0];
    nodes.forEach((node, id) => heldBefore.push(heldBefore[id] + (node.bytes || 0)));
  }
  const [first, last] = isScope(item) ? [scopes[-item].first, scopes[-item].last] : [item, item];
  return last < first ? 0 : heldBefore[last + 1] - heldBefore[first];
}

/** What an item holds, in words; '' for nothing. */
const heldWords = (item) => (heldBytes(item) ? formatBytes(heldBytes(item)) : '');

/** The scopes around an item, innermost first. */
function around(item) {
  const found = [];
  for (let scope = parentOf(item); scope >= 0; scope = parentOfScope[scope]) found.push(scope);
  return found;
}

function openPathTo(item) {
  for (const scope of around(item)) open.add(scope);
}

/** Expand scopes down to the depth that the page was made for; of a repeat, the first copy, which is no level of its own. */
function openAtFirst() {
  let level = scopes[0].items;
  for (let depth = 0; level.length && depth < page.depth; depth += 1) {
    level = level.filter(canOpen).flatMap((item) => {
      open.add(-item);
      const { kind, items } = scopes[-item];
      if (kind !== 'repeat') return items;
      if (!canOpen(items[0])) return items.slice(0, 1);
      open.add(-items[0]);
      return scopes[-items[0]].items;
    });
  }
}

const canOpen = (item) => isScope(item) && scopes[-item].kind !== 'shapes';

/** Collapse a scope and everything in it. */
function close(scope) {
  for (const inner of open) {
    if (inner === scope || around(-inner).includes(scope)) open.delete(inner);
  }
  open.add(0);
}

/** Visit the visible items, outer ones first: `visit(item, parent, depth)`. */
function eachVisible(visit) {
  const waiting = [[0, 0]];
  while (waiting.length) {
    const [place, depth] = waiting.pop();
    for (const item of scopes[place].items) {
      visit(item, place, depth);
      if (isScope(item) && open.has(-item)) waiting.push([-item, depth + 1]);
    }
  }
}

/** The title of a scope. */
function scopeTitle(place) {
  const { kind, title, module, first, last, times } = scopes[place];
  if (kind === 'module') {
    const [path, className, call] = modules[module];
    const inside = around(-place).some((outer) => scopes[outer].kind === 'module');
    return { name: path ? (inside || /^\d/.test(path) ? shortPath(path) : path) : className, detail: path ? className : '', call };
  }
  if (kind === 'repeat') return { name: title, detail: `× ${times.toLocaleString('en')}`, call: 1 };
  if (kind === 'run' && !title) return { name: `#${numberOf(first)} to #${numberOf(last)}`, detail: '', call: 1 };
  return { name: kind === 'copy' ? `copy ${title}` : title, detail: '', call: 1 };
}
