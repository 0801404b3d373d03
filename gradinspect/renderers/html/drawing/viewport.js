// Navigation by drag, wheel and keys. The picture has one group whose transform is the view.

const picture = byId('picture');
const canvas = svg('g');
picture.append(canvas);
const view = { x: 0, y: 0, scale: 1 };
const MIN_SCALE = 0.02, MAX_SCALE = 3, MARGIN = 28, NARROW_MARGIN = 8;
const COMFORTABLE = 0.75, LEGIBLE = 0.6;
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

const isNarrow = window.matchMedia('(max-width: 760px), (max-height: 480px)');
const margin = () => (isNarrow.matches ? NARROW_MARGIN : MARGIN);

/** The scales at which the width of something, and all of it, fit on the stage. */
function fittingScales({ width, height }) {
  const room = stageSize();
  const across = (room.width - 2 * margin()) / width;
  return { across, whole: Math.min(across, (room.height - 2 * MARGIN - 30) / height, 1.25) };
}

/** Fit the whole graph. */
function fit(layout) {
  showFromTop(layout, fittingScales(layout).whole);
}

/** Fit the whole graph if it is legible then; else as wide as fits, from the top. A narrow screen always fits the width. */
function fitLegibly(layout) {
  const { across, whole } = fittingScales(layout);
  const wide = Math.min(across, COMFORTABLE);
  showFromTop(layout, whole >= COMFORTABLE ? whole : isNarrow.matches ? wide : Math.max(wide, LEGIBLE));
}

function showFromTop(layout, scale) {
  const { width, height } = stageSize();
  const y = layout.height * scale > height - 2 * MARGIN ? margin() : (height - layout.height * scale) / 2 - 10;
  setView((width - layout.width * scale) / 2, Math.max(margin(), y), scale);
}

/** Fit some boxes with everything attached to them. */
function fitBoxes(boxes) {
  if (!boxes.length) return;
  const ends = (low, high) => [boxes.reduce((least, box) => Math.min(least, low(box)), Infinity), boxes.reduce((most, box) => Math.max(most, high(box)), -Infinity)];
  const [left, right] = ends((box) => box.x - box.left, (box) => box.x + box.right);
  const [top, bottom] = ends((box) => box.y - box.height / 2, (box) => box.y + box.height / 2);
  const scale = Math.max(fittingScales({ width: right - left, height: bottom - top }).whole, MIN_SCALE);
  const { width, height } = stageSize();
  setView(width / 2 - ((left + right) / 2) * scale, height / 2 - ((top + bottom) / 2) * scale, scale);
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
const fingers = new Map(); // pointer id -> its place

/** Two fingers zoom by their distance, and move by their middle. */
function pinch(before, after) {
  const far = ([one, other]) => Math.hypot(one.x - other.x, one.y - other.y) || 1;
  const middle = ([one, other]) => ({ x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 });
  const { left, top } = picture.getBoundingClientRect();
  const [from, to] = [middle(before), middle(after)];
  setView(view.x + to.x - from.x, view.y + to.y - from.y, view.scale);
  zoom(far(after) / far(before), to.x - left, to.y - top);
}

picture.addEventListener('pointerdown', (event) => {
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  wasDragged = fingers.size > 1;
  drag = event.button === 0 && fingers.size === 1 ? { x: event.clientX, y: event.clientY, from: { ...view } } : null;
});
window.addEventListener('pointermove', (event) => {
  if (fingers.has(event.pointerId)) {
    const before = [...fingers.values()];
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (fingers.size === 2) pinch(before, [...fingers.values()]);
  }
  if (!drag) return;
  const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
  if (!wasDragged && Math.hypot(x, y) < 4) return;
  wasDragged = true;
  picture.classList.add('dragged');
  setView(drag.from.x + x, drag.from.y + y, view.scale);
});
for (const end of ['pointerup', 'pointercancel']) {
  window.addEventListener(end, (event) => { fingers.delete(event.pointerId); drag = null; picture.classList.remove('dragged'); });
}
picture.addEventListener('wheel', (event) => {
  event.preventDefault();
  const { left, top } = picture.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.03 : 0.0015)), event.clientX - left, event.clientY - top);
}, { passive: false });
