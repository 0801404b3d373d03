// User interaction and startup.

let layout = null;
let current = null; // the item with keyboard focus
let chosen = null; // the item in the panel

const boxAt = (item) => layout.boxes.find((box) => box.item === item);

/** Lay out and draw again, keeping the anchor's upper left corner in place. */
function update(anchor) {
  const before = anchor !== undefined && layout ? boxAt(anchor) : null;
  layout = layOutOpen();
  drawAll(layout, canvas);
  const after = before && boxAt(anchor);
  if (after) {
    const [x, y] = [(before.x - before.left) - (after.x - after.left), (before.y - before.height / 2) - (after.y - after.height / 2)];
    setView(view.x + x * view.scale, view.y + y * view.scale, view.scale);
  }
  colorBoxes(layout);
  showHighlight(layout);
  drawMinimap(layout);
  drawLegend(layout);
  markChosen();
  setCurrent(boxAt(current) ? current : layout.boxes[0]?.item, false);
}

/** Move the keyboard focus to a box; only this one is in the tab order. */
function setCurrent(item, hasFocus = true) {
  const old = boxAt(current);
  if (old) old.element.setAttribute('tabindex', -1);
  const box = boxAt(item);
  current = item;
  if (!box) return;
  box.element.setAttribute('tabindex', 0);
  if (hasFocus) { box.element.focus({ preventScroll: true }); reveal(box); }
}

function toggle(item) {
  if (open.has(-item)) close(-item);
  else open.add(-item);
  current = item;
  update(item);
  setCurrent(item);
}

function activate(item) {
  if (!isScope(item)) { goTo(item); return; }
  toggle(item);
  choose(item);
}

/** Show an item in the panel; null for none. */
function choose(item) {
  chosen = item;
  const isParameter = item !== null && !isScope(item) && isLeaf(item);
  if (isParameter && (!highlight || highlight.isSoft)) setHighlight({ kind: 'from', node: item, isSoft: true });
  else if (highlight?.isSoft) setHighlight(null);
  if (item !== null) showPanel(item);
  markChosen();
}

function markChosen() {
  for (const element of canvas.querySelectorAll('.chosen')) element.classList.remove('chosen');
  if (chosen === null) return;
  boxAt(chosen)?.element.classList.add('chosen');
  for (const chip of canvas.querySelectorAll(`[data-leaf="${chosen}"]`)) chip.classList.add('chosen');
}

/** Select an item by its address, so that the browser's back and forward buttons work. */
function goTo(item) {
  if (window.location.hash === hashOf(item)) followAddress();
  else window.location.hash = hashOf(item);
}

/** Expand the scopes around the item that the address names, and show it. */
function followAddress() {
  const [, kind, number] = /^#([ns])(\d+)$/.exec(window.location.hash) || [];
  const place = kind === 'n' ? idOf(Number(number)) : Number(number);
  const isThere = kind === 'n' ? place >= 0 && place < nodes.length : kind === 's' && place > 0 && place < scopes.length;
  if (!isThere) { if (!window.location.hash) { panel.hidden = true; choose(null); } return; }
  const item = kind === 's' ? -place : place;
  choose(item);
  if (byId('stage').hidden) return; // another view is shown; the picture follows when it is back
  const stand = whereToLook(item);
  if (boxAt(stand) === undefined) { openPathTo(stand); update(); }
  setCurrent(stand, false);
  if (boxAt(stand)) { reveal(boxAt(stand)); if (!found.contains(document.activeElement)) boxAt(stand).element.focus({ preventScroll: true }); }
  markChosen();
}

/** A leaf has no box of its own: show a node that uses it, a visible one if possible. */
function whereToLook(item) {
  if (isScope(item) || !isLeaf(item) || parentOf(item) >= 0) return item;
  const nodesUsing = usersOf(item).map(([user]) => user);
  return nodesUsing.find((user) => boxAt(user)) ?? nodesUsing[0] ?? item;
}

/** Expand every box by one level, while the picture stays manageable. */
function unfold() {
  const closed = layout.boxes.filter((box) => isScope(box.item) && !box.isOpen && scopes[-box.item].kind !== 'shapes');
  let room = 1500 - layout.boxes.length;
  for (const { item } of closed) {
    room -= scopes[-item].items.length;
    if (room < 0) break;
    open.add(-item);
  }
  update();
  fitLegibly(layout);
}

function fold() {
  open.clear();
  open.add(0);
  update();
  fitLegibly(layout);
}

/** The box that an arrow key leads to: along edges for up and down, in drawing order for left and right. */
function neighbor(key) {
  const along = key === 'ArrowDown' ? 'tail' : 'head';
  const pair = layout.pairs.find((pair) => pair[along] === current);
  const closed = layout.boxes.filter((box) => !box.isOpen);
  const index = layout.boxes.findIndex((box) => box.item === current);
  switch (key) {
    case 'ArrowDown': return pair ? pair.head : layout.boxes[index + 1]?.item;
    case 'ArrowUp': return pair ? pair.tail : layout.boxes[index - 1]?.item;
    case 'ArrowLeft': return parentOf(current) > 0 ? -parentOf(current) : closed[0]?.item;
    default: return isScope(current) && open.has(-current) ? scopes[-current].items[0] : layout.boxes[index + 1]?.item;
  }
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, textarea')) return;
  const isInPicture = event.target.closest('#picture') || event.target === document.body;
  if (keysPage.open && event.key !== '?') return;
  const action = actionOf(event.key);
  if (action) { event.preventDefault(); action(); return; }
  if (!isInPicture) return;
  if (event.key.startsWith('Arrow')) {
    event.preventDefault();
    const item = neighbor(event.key);
    if (item !== undefined) setCurrent(item);
  } else if ((event.key === 'Enter' || event.key === ' ') && current !== null) {
    event.preventDefault();
    activate(current);
  }
}

function clicked(event) {
  if (wasDragged) return;
  const leaf = event.target.closest('[data-leaf]');
  if (leaf) { goTo(Number(leaf.dataset.leaf.replace('of', ''))); return; }
  const box = event.target.closest('[data-item]');
  if (box) activate(Number(box.dataset.item));
}

/** Color the boxes by one of the `COLORINGS`, or by kind. */
function colorBy(name) {
  coloring = name ? COLORINGS[name]() : null;
  byId('color').value = name;
  forgetUnits();
}

byId('title').textContent = page.title;
byId('captured').textContent = page.captured;
byId('figures').textContent = [...page.figures, `torch ${page.torch}`].join('  ·  ');
byId('figures').setAttribute('title', byId('figures').textContent);
if (page.warnings.length) {
  byId('warnings').textContent = formatCount(page.warnings.length, 'warning');
  byId('warnings').hidden = false;
  byId('warnings').addEventListener('click', showWarnings);
}
byId('fold').addEventListener('click', fold);
byId('unfold').addEventListener('click', unfold);
byId('in').addEventListener('click', () => zoom(1.25));
byId('out').addEventListener('click', () => zoom(0.8));
byId('fit').addEventListener('click', () => fit(layout));
picture.addEventListener('click', clicked);
document.addEventListener('keydown', pressed);
if (!page.hasGradients) byId('color').querySelector('[value=grad]').remove();
byId('color').addEventListener('change', () => { colorBy(byId('color').value); update(); });
colorBy(page.colorBy === 'grad' && !page.hasGradients ? '' : page.colorBy || '');
openAtFirst();
update();
fitLegibly(layout);
window.addEventListener('hashchange', followAddress);
window.addEventListener('popstate', followAddress);
followAddress();
