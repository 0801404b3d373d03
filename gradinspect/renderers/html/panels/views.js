// Views that replace the picture: the table of nodes, and held memory.

const views = { table: { element: tableView, button: byId('as-table'), draw: drawTable },
  memory: { element: memoryView, button: byId('as-memory'), draw: drawMemory } };
let shownView = null;

/** Show a view, or the picture again. */
function toggleView(name) {
  if (views[name].button.hidden) return;
  shownView = shownView === name ? null : name;
  for (const [key, { element, button, draw }] of Object.entries(views)) {
    const isShown = key === shownView;
    element.hidden = !isShown;
    button.setAttribute('aria-pressed', String(isShown));
    if (isShown) draw();
  }
  byId('stage').hidden = shownView !== null;
  forgetStage();
  if (!shownView) followAddress();
}

for (const [name, { button }] of Object.entries(views)) button.addEventListener('click', () => toggleView(name));
if (!page.memory) views.memory.button.hidden = true;
