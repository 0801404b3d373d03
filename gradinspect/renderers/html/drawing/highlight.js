// Highlight the boxes and edges on the paths from the loss to the selection, or from the selection to the parameters.

let highlight = null; // {kind, node, isSoft}; a soft one dims nothing; for kind 'storage', node is a storage

/** All nodes reachable from a set of nodes, given a function that takes one step. */
function reach(starts, step) {
  const seen = new Uint8Array(nodes.length);
  const waiting = [...starts];
  for (const id of waiting) seen[id] = 1;
  while (waiting.length) {
    for (const next of step(waiting.pop())) if (!seen[next]) { seen[next] = 1; waiting.push(next); }
  }
  return seen;
}

const stepDown = (id) => edgesOf(id).flatMap((edge) => (edge ? [edge[0]] : []));
const stepUp = (id) => usersOf(id).map(([user]) => user);

/** Mark the nodes of a highlight with 1. */
function highlighted({ kind, node }) {
  if (kind === 'storage') {
    const marks = new Uint8Array(nodes.length);
    for (const id of keepersOf(node)) marks[id] = 1;
    return marks;
  }
  const starts = isScope(node) ? scopeNodes(-node) : [node];
  if (kind === 'from') return reach(starts, stepUp);
  return reach(starts, stepDown);
}

/** Dim everything that is not highlighted. */
function showHighlight(layout) {
  canvas.classList.toggle('dimmed', highlight !== null && !highlight.isSoft);
  for (const element of canvas.querySelectorAll('.lit')) element.classList.remove('lit');
  if (!highlight) return;
  const marks = highlighted(highlight);
  const lit = (item) => (isScope(item) ? scopeNodes(-item).some((id) => marks[id]) : marks[item]);
  const litBoxes = new Set();
  for (const box of layout.boxes) {
    if (!lit(box.item)) continue;
    litBoxes.add(box.item);
    box.element.classList.add('lit');
  }
  for (const edge of layout.edges) {
    const isOn = edge.pairs.some((number) => litBoxes.has(layout.pairs[number].tail) && litBoxes.has(layout.pairs[number].head));
    if (isOn) edge.element.classList.add('lit');
  }
  for (const chip of canvas.querySelectorAll('.chip')) if (marks[Number(chip.dataset.leaf)]) chip.classList.add('lit');
}

/** A button that highlights the nodes that keep a storage alive; null if only one does. */
function storageButton(storage) {
  const kept = keepersOf(storage);
  if (kept.length < 2) return null;
  const element = html('button', { type: 'button', class: 'keepers', text: `kept by ${kept.length}`, title: `#${kept.slice(0, 12).map(numberOf).join(', #')}` });
  element.addEventListener('click', () => {
    const isOn = highlight?.kind === 'storage' && highlight.node === storage;
    setHighlight(isOn ? null : { kind: 'storage', node: storage });
  });
  return element;
}

/** The highlight buttons of an item in the panel. */
function highlightButtons(item) {
  const isALeaf = !isScope(item) && isLeaf(item);
  const button = (kind, words) => {
    const element = html('button', { type: 'button', 'aria-pressed': String(highlight?.kind === kind && highlight.node === item && !highlight.isSoft), text: words });
    element.addEventListener('click', () => {
      const isOn = element.getAttribute('aria-pressed') === 'true';
      setHighlight(isOn ? null : { kind, node: item });
      for (const other of element.parentNode.children) other.setAttribute('aria-pressed', String(other === element && !isOn));
    });
    return element;
  };
  return html('div', { class: 'lights', role: 'group', 'aria-label': 'Highlight' },
    button('from', 'Highlight path to loss'), isALeaf ? null : button('to', 'Highlight path to parameters'));
}

function setHighlight(wanted) {
  highlight = wanted;
  showHighlight(layout);
  if (highlight && !highlight.isSoft) fitBoxes(layout.boxes.filter((box) => !box.isOpen && box.element.classList.contains('lit')));
}
