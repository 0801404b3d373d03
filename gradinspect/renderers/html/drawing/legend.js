// What the marks of the picture mean: only those that are on it, and how much of the graph is not.

const legend = byId('legend');
const isRepeated = ({ kind, times }) => kind === 'repeat' || times > 0;

/** Which marks are on the picture. */
function marksOn(layout) {
  const marks = new Set();
  for (const { item, isOpen, chips } of layout.boxes) {
    if (isScope(item) && isRepeated(scopes[-item])) marks.add('repeat');
    else if (isScope(item) && !isOpen) marks.add('closed');
    else if (!isScope(item) && textAt(nodes[item].kind) === 'custom') marks.add('custom');
    for (const chip of isOpen ? [] : chips || []) marks.add(chip.isCut ? 'cut' : chip.isShared ? 'shared' : 'leaf');
  }
  if (layout.edges.some((edge) => edge.isSkip)) marks.add('skip');
  return marks;
}

const MARKS = { closed: 'collapsed box', repeat: 'repeated block', leaf: 'leaf', shared: 'leaf used more than once',
  custom: 'custom Function', skip: 'residual connection', cut: 'edge to hidden nodes' };
const FILLED = ['closed', 'repeat', 'leaf', 'shared', 'custom']; // a coloring replaces these

function drawLegend(layout) {
  const marks = marksOn(layout);
  const shown = Object.entries(MARKS).filter(([name]) => marks.has(name) && !(coloring && FILLED.includes(name)));
  const entries = shown.map(([name, words]) => html('span', {}, html('i', { class: name }), html('span', { text: words })));
  legend.replaceChildren(html('span', { text: '↓ gradients flow down' }), ...(coloring ? legendOfColors(layout) : []), ...entries, ...closedWords(layout));
}

/** How much of the graph is not on the picture. */
function closedWords(layout) {
  const closed = layout.boxes.filter((box) => !box.isOpen && canOpen(box.item)).length;
  return closed ? [html('span', { id: 'closed', text: `${formatCount(closed, 'block')} closed; a click or Expand opens them` })] : [];
}

/** On a narrow screen, the controls, the legend and the map are behind a button each. */
for (const [button, element] of [['menu', 'controls'], ['show-legend', 'legend'], ['show-map', 'minimap']]) {
  byId(button).addEventListener('click', () => {
    const isShown = byId(element).classList.toggle('shown');
    byId(button).setAttribute('aria-expanded', String(isShown));
  });
}
