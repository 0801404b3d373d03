// From layout to SVG elements.

const round = (value) => Math.round(value * 10) / 10;

/** A smooth line through points: straight down inside a row, a curve between rows. */
function pathOf(points, hasTip) {
  const end = points.at(-1);
  const shown = hasTip ? [...points.slice(0, -1), [end[0], end[1] - 5]] : points;
  let path = `M${round(shown[0][0])},${round(shown[0][1])}`;
  for (let index = 1; index < shown.length; index += 1) {
    const [x, y] = shown[index - 1], [toX, toY] = shown[index];
    const middle = (y + toY) / 2;
    path += Math.abs(toX - x) < 0.5 ? `L${round(toX)},${round(toY)}`
      : `C${round(x)},${round(middle)} ${round(toX)},${round(middle)} ${round(toX)},${round(toY)}`;
  }
  return path;
}

function drawEdge(edge) {
  const end = edge.points.at(-1);
  const tip = edge.hasTip && svg('path', { class: 'tip', d: `M${round(end[0])},${round(end[1])}l-4,-7l8,0z` });
  const group = svg('g', { class: edge.isSkip ? 'stream skip' : 'stream' }, svg('path', { class: 'edge', d: pathOf(edge.points, edge.hasTip) }), tip, edgeName(edge));
  edge.element = group;
  return group;
}

const NAME_SPOTS = [0.5, 0.7, 0.3, 0.85, 0.15]; // along the first turn of an edge
let taken = []; // where names and boxes are: [left, top, right, bottom]

/** The argument name of an edge, at its first turn, where the edges of one box have separated and nothing else is. */
function edgeName({ points, names }) {
  if (!names || points.length < 3) return null;
  const [[x, y], [toX, toY]] = points.slice(1, 3);
  const width = widthOf(names, 'argument');
  for (const share of NAME_SPOTS) {
    const left = x + (toX - x) * share + 5, base = y + (toY - y) * share + (Math.abs(toX - x) < 8 ? 3 : -4);
    const room = [left, base - 8, left + width, base + 2];
    if (taken.some((other) => room[0] < other[2] && other[0] < room[2] && room[1] < other[3] && other[1] < room[3])) continue;
    taken.push(room);
    return svg('text', { class: 'argument', x: round(left), y: round(base), text: names });
  }
  return null; // better no name than two on top of each other
}

const text = (x, y, content, className, anchor) => svg('text', { x: round(x), y: round(y), class: className, 'text-anchor': anchor, text: content });

function frame(box, radius) {
  return svg('rect', { class: 'frame', x: round(box.x - box.frame / 2), y: round(box.y - box.height / 2), width: round(box.frame),
    height: round(box.height), rx: radius });
}

/** A class name with its suffix `Backward0` in muted ink. */
function nameText(x, y, name) {
  const parts = /^(.+?)(Backward\d*)$/.exec(name);
  const line = text(x, y, parts ? '' : name, 'strong', 'middle');
  if (parts) line.append(svg('tspan', { text: parts[1] }), svg('tspan', { class: 'suffix', text: parts[2] }));
  return line;
}

function drawNode(box) {
  const { words, item, x, y } = box;
  const kind = textAt(nodes[item].kind);
  const tall = words.over ? 18 : 0;
  const shared = { ...box, height: words.over ? 60 : 42 };
  const middle = y - shared.height / 2;
  return svg('g', { class: `box node ${kind}`, 'data-item': item, role: 'button', tabindex: -1, 'aria-label': nodeLabel(item) },
    frame(shared, 7), words.over && text(x, middle + 16, words.over, 'overline', 'middle'),
    nameText(x, middle + 18 + tall, words.title), text(x, middle + 33 + tall, words.small, 'small', 'middle'));
}

/** The label of a node for screen readers. */
function nodeLabel(id) {
  const leaves = leavesOf(id).map(leafName).join(', ');
  return [`node ${numberOf(id)}`, nodeTitle(id), outputsOf(id).join(', '), leaves && `leaves ${leaves}`, moduleOf(id)?.[0]].filter(Boolean).join(', ');
}

function drawClosed(box) {
  const { words, item, x, y } = box;
  const { kind, times } = scopes[-item];
  const isRepeat = kind === 'repeat' || times > 0;
  const title = text(x, y - 3, `▸ ${words.title}`, 'strong', 'middle');
  if (words.detail) title.append(svg('tspan', { class: 'suffix', text: `  ${words.detail}` }));
  const copies = isRepeat ? [6, 3].map((shift) => svg('rect', { class: 'copy', x: round(x - box.frame / 2 + shift),
    y: round(y - box.height / 2 + shift), width: round(box.frame), height: round(box.height), rx: 7 })) : [];
  return svg('g', { class: `box closed ${isRepeat ? 'repeat' : ''}`, 'data-item': item, role: 'button', tabindex: -1,
    'aria-expanded': 'false', 'aria-label': `${words.title} ${words.detail}, ${words.small}` },
  ...copies, frame(box, 7), title, text(x, y + 14, words.small, 'small', 'middle'));
}

function openBox(box) {
  const left = box.x - box.left;
  const { title, detail, small } = scopeWords(-box.item);
  const line = text(left + 12, box.y - box.height / 2 + 20, `▾ ${title}`, 'title');
  line.append(svg('tspan', { class: 'suffix', text: `  ${detail}` }), svg('tspan', { class: 'small', text: `  ${small}` }));
  const rect = svg('rect', { class: 'frame', x: round(left), y: round(box.y - box.height / 2), width: round(box.frame),
    height: round(box.height), rx: 10 });
  const kind = scopes[-box.item].kind;
  const group = svg('g', { class: `box open ${kind} ${box.depth % 2 ? 'odd' : ''}`, 'data-item': box.item, role: 'button', tabindex: -1,
    'aria-expanded': 'true', 'aria-label': `${title} ${detail}, ${small}` }, rect);
  const strip = svg('rect', { class: 'strip', x: round(left + 8), y: round(box.y - box.height / 2 + 7), width: round(titleWidth(-box.item) - 10), height: 18, rx: 4 });
  return { group, title: svg('g', { class: `box open ${kind} ${box.depth % 2 ? 'odd' : ''}`, 'data-item': box.item }, strip, line) };
}

/** The leaves of a node, to its right, each connected to it. */
function drawChips(box) {
  const left = box.x + box.frame / 2 + CHIP_GAP;
  const start = box.y - ((box.chips.length - 1) * CHIP_STEP) / 2;
  return box.chips.flatMap(({ leaf, text: name, isShared, isCut }, index) => {
    const y = start + index * CHIP_STEP;
    const tie = svg('path', { class: 'tie', d: `M${round(left - CHIP_GAP)},${round(box.y)}C${round(left - 7)},${round(box.y)} ${round(left - 9)},${round(y)} ${round(left)},${round(y)}` });
    const rect = svg('rect', { x: round(left), y: round(y - CHIP_HEIGHT / 2), width: round(widthOf(name, 'chip') + 16), height: CHIP_HEIGHT, rx: 10 });
    const chip = svg('g', { class: `chip ${isCut ? 'cut' : isShared ? 'shared' : ''}`, 'data-leaf': leaf ?? `of${box.item}` }, rect, text(left + 8, y + 4, name));
    return [tie, chip];
  });
}

/** The roots at a node, to its left. */
function drawPill(box) {
  if (!box.pill) return null;
  const width = widthOf(box.pill, 'title') + 16;
  const left = box.x - box.frame / 2 - width - 16;
  return svg('g', { class: 'root' }, svg('rect', { x: round(left), y: round(box.y - 11), width: round(width), height: 22, rx: 11 }),
    text(left + width / 2, box.y + 4, box.pill, '', 'middle'),
    svg('path', { class: 'edge', d: `M${round(left + width)},${round(box.y)}h10` }),
    svg('path', { class: 'tip', d: `M${round(box.x - box.frame / 2)},${round(box.y)}l-7,-4l0,8z` }));
}

/** A collapsed box or a node with everything attached to it, drawn once at the origin, then only moved. */
const unitsDrawn = new Map();

function unitOf(box) {
  if (!unitsDrawn.has(box.item)) {
    const still = { ...box, x: 0, y: 0 };
    const element = isScope(box.item) ? drawClosed(still) : drawNode(still);
    unitsDrawn.set(box.item, { element, whole: svg('g', {}, ...drawChips(still), drawPill(still), element) });
  }
  return unitsDrawn.get(box.item);
}

/** Discard what was drawn, because the next drawing may look different. */
const forgetUnits = () => unitsDrawn.clear();

const layers = ['behind', 'edges', 'titles', 'front'].map(() => svg('g'));

/** Draw a layout into a group: scopes, edges, then boxes. Elements that stay are moved, not recreated. */
function drawAll(layout, group) {
  const [behind, edges, titles, front] = layers;
  if (!behind.parentNode) group.append(...layers);
  const scopesDrawn = [], lines = [], shown = new Set();
  for (const box of [...layout.boxes].sort((a, b) => a.depth - b.depth)) {
    if (box.isOpen) {
      const { group: element, title } = openBox(box);
      box.element = element;
      scopesDrawn.push(element);
      lines.push(title);
      continue;
    }
    const { element, whole } = unitOf(box);
    box.element = element;
    element.setAttribute('tabindex', -1);
    whole.setAttribute('transform', `translate(${round(box.x)},${round(box.y)})`);
    shown.add(whole);
  }
  for (const whole of [...front.children]) if (!shown.has(whole)) whole.remove();
  front.append(...[...shown].filter((whole) => !whole.parentNode));
  behind.replaceChildren(...scopesDrawn);
  taken = layout.boxes.filter((box) => !box.isOpen).map((box) => [box.x - box.frame / 2, box.y - box.height / 2, box.x + box.right, box.y + box.height / 2]);
  edges.replaceChildren(...layout.edges.map(drawEdge));
  titles.replaceChildren(...lines);
}
