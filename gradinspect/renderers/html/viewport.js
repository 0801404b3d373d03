// Navigation by drag, wheel and keys. The picture has one group whose transform is the view.

const picture = byId('picture');
const canvas = svg('g');
picture.append(canvas);
const view = { x: 0, y: 0, scale: 1 };
const MIN_SCALE = 0.02, MAX_SCALE = 3, MARGIN = 28;
const viewListeners = [];

function setView(x, y, scale) {
  Object.assign(view, { x, y, scale });
  canvas.setAttribute('transform', `translate(${round(x)},${round(y)}) scale(${scale.toFixed(4)})`);
  for (const listener of viewListeners) listener();
}

// Reading an element's size forces the browser to lay out pending changes, so the size is cached until it may change.
let stage = null;
const stageSize = () => (stage ||= { width: picture.clientWidth || 800, height: picture.clientHeight || 600 });
const forgetStage = () => { stage = null; };
new ResizeObserver(forgetStage).observe(picture);

/** Fit the whole graph, or at startup as much from the top as is legible. */
function fit(layout, smallest = MIN_SCALE) {
  const { width, height } = stageSize();
  const whole = Math.min((width - 2 * MARGIN) / layout.width, (height - 2 * MARGIN - 30) / layout.height, 1.25);
  const scale = Math.max(whole, Math.min(smallest, 1));
  const y = layout.height * scale > height - 2 * MARGIN ? MARGIN : (height - layout.height * scale) / 2 - 10;
  setView((width - layout.width * scale) / 2, Math.max(MARGIN, y), scale);
}

function zoom(factor, x = stageSize().width / 2, y = stageSize().height / 2) {
  const scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, view.scale * factor));
  const real = scale / view.scale;
  setView(x - (x - view.x) * real, y - (y - view.y) * real, scale);
}

/** Scroll a box into view, unless it is already visible. */
function reveal(box, isCentered = false) {
  const { width, height } = stageSize();
  const [left, top] = [(box.x - box.left) * view.scale + view.x, (box.y - box.height / 2) * view.scale + view.y];
  const [right, bottom] = [(box.x + box.right) * view.scale + view.x, (box.y + box.height / 2) * view.scale + view.y];
  const isSeen = left >= 0 && top >= 0 && right <= width && bottom <= height;
  if (isSeen && !isCentered) return;
  const scale = Math.max(view.scale, 0.7);
  setView(width / 2 - box.x * scale, height / 2 - box.y * scale, scale);
}

let drag = null, wasDragged = false;
picture.addEventListener('pointerdown', (event) => {
  if (event.button === 0) drag = { x: event.clientX, y: event.clientY, from: { ...view } };
  wasDragged = false;
});
window.addEventListener('pointermove', (event) => {
  if (!drag) return;
  const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
  if (!wasDragged && Math.hypot(x, y) < 4) return;
  wasDragged = true;
  picture.classList.add('dragged');
  setView(drag.from.x + x, drag.from.y + y, view.scale);
});
window.addEventListener('pointerup', () => { drag = null; picture.classList.remove('dragged'); });
picture.addEventListener('wheel', (event) => {
  event.preventDefault();
  const { left, top } = picture.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.03 : 0.0015)), event.clientX - left, event.clientY - top);
}, { passive: false });
