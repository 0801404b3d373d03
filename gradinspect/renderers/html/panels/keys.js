// What the keys do, and the page that lists them.

const keysPage = byId('keys');
const KEYS = [
  { keys: ['/'], words: 'Search', action: () => { query.focus(); query.select(); } },
  { keys: ['f'], words: 'Fit the whole graph', action: () => fit(layout) },
  { keys: ['+', '='], words: 'Zoom in', action: () => zoom(1.25) },
  { keys: ['-'], words: 'Zoom out', action: () => zoom(0.8) },
  { keys: ['t'], words: 'Table of all nodes, or back', action: () => toggleView('table') },
  { keys: ['m'], words: 'Memory, or back', action: () => toggleView('memory') },
  { keys: ['c'], words: 'Copy the panel as text', action: () => copyPanel() },
  { keys: ['Escape'], words: 'Stop highlighting, or close the panel', action: stopOrClose },
  { keys: ['?'], words: 'This list', action: toggleKeys },
];
const MOVES = [['↑ ↓', 'Go along the edges'], ['← →', 'Go out of a box, or into it'], ['Enter', 'Expand or collapse a box, show a node'],
  ['Drag, wheel', 'Move, zoom; on a touch screen with one finger, with two']];

const actionOf = (key) => KEYS.find(({ keys }) => keys.includes(key))?.action;

function stopOrClose() {
  if (highlight) setHighlight(null);
  else if (!panel.hidden) closePanel();
}

function toggleKeys() {
  if (keysPage.open) { keysPage.close(); return; }
  const rows = [...MOVES, ...KEYS.map(({ keys, words }) => [keys[0], words])];
  const button = html('button', { type: 'button', text: 'Close' });
  button.addEventListener('click', () => keysPage.close());
  keysPage.replaceChildren(html('h2', { text: 'Keys' }), html('dl', {}, ...rows.flatMap(([key, words]) => [html('dt', {}, html('kbd', { text: key })), html('dd', { text: words })])), button);
  keysPage.showModal();
}
byId('help').addEventListener('click', toggleKeys);
