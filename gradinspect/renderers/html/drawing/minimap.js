// The whole graph in a corner, with a frame around the visible part.

const minimap = byId('minimap');
const MAP_WIDTH = 200, MAP_HEIGHT = 150, MAX_MAPPED = 4000;
const mapView = svg('rect', { class: 'view' });
let mapScale = 1;

function drawMinimap(layout) {
  mapScale = Math.min(MAP_WIDTH / layout.width, MAP_HEIGHT / layout.height);
  minimap.setAttribute('width', Math.max(20, layout.width * mapScale + 8));
  minimap.setAttribute('height', layout.height * mapScale + 8);
  const rects = layout.boxes.slice(0, MAX_MAPPED).map((box) => svg('rect', { class: box.isOpen ? 'open' : 'box',
    x: round(4 + (box.x - (box.isOpen ? box.left : box.frame / 2)) * mapScale), y: round(4 + (box.y - box.height / 2) * mapScale),
    width: round(Math.max(1.5, box.frame * mapScale)), height: round(Math.max(1, box.height * mapScale)) }));
  minimap.replaceChildren(...rects, mapView);
  showView();
}

function showView() {
  const { width, height } = stageSize();
  const at = { x: 4 + (-view.x / view.scale) * mapScale, y: 4 + (-view.y / view.scale) * mapScale,
    width: (width / view.scale) * mapScale, height: (height / view.scale) * mapScale };
  for (const [name, value] of Object.entries(at)) mapView.setAttribute(name, round(value));
}
viewListeners.push(showView);

function moveTo(event) {
  const { left, top } = minimap.getBoundingClientRect();
  const { width, height } = stageSize();
  const [x, y] = [(event.clientX - left - 4) / mapScale, (event.clientY - top - 4) / mapScale];
  setView(width / 2 - x * view.scale, height / 2 - y * view.scale, view.scale);
}
minimap.addEventListener('pointerdown', (event) => { minimap.setPointerCapture(event.pointerId); moveTo(event); });
minimap.addEventListener('pointermove', (event) => { if (event.buttons) moveTo(event); });
