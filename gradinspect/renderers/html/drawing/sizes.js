// The size of each box. A box has a column, the line its edges follow, independent of what is beside the box.

const FONTS = { title: '600 12.5px system-ui, sans-serif', small: '11px ui-monospace, Consolas, monospace',
  chip: '11px system-ui, sans-serif', argument: '10px system-ui, sans-serif' };
const PAD = 12, CHIP_GAP = 16, CHIP_HEIGHT = 20, CHIP_STEP = 24, MAX_CHIPS = 5, HEAD = 32, INSET = 16;
const MAX_TITLE = 44;
const pen = document.createElement('canvas').getContext('2d');
const widths = new Map();

function widthOf(text, font) {
  const key = font + text;
  if (!widths.has(key)) { pen.font = FONTS[font]; widths.set(key, pen.measureText(text).width); }
  return widths.get(key);
}

/** Shorten a long text by cutting its middle. */
function shorten(text, length = MAX_TITLE) {
  if (text.length <= length) return text;
  const head = Math.ceil((length - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}

/** The chips beside a node: its leaves, and one more for the rest if there are too many. */
function chipsOf(id) {
  const leaves = leavesOf(id);
  const shown = leaves.length > MAX_CHIPS ? leaves.slice(0, MAX_CHIPS - 1) : leaves;
  const chips = shown.map((leaf) => {
    const short = nameInside(leaf, id);
    const uses = nodes[leaf].leaf.uses;
    return { leaf, text: shorten(short, 30) + (uses > 1 ? ` · ${uses.toLocaleString('en')} uses` : ''), isShared: uses > 1 };
  });
  if (shown.length < leaves.length) chips.push({ leaf: null, text: `${leaves.length - shown.length} more`, isShared: false });
  const cut = cutWords([id]);
  if (cut) chips.push({ leaf: null, text: cut, isCut: true });
  return chips;
}

/** The text in a node's box. */
function nodeWords(id) {
  const { alone, function: own } = nodes[id];
  const call = moduleOf(id);
  const shapes = outputsOf(id);
  const more = shapes.length > 1 ? ` +${shapes.length - 1}` : '';
  return {
    over: alone && call ? `${shortPath(call[0]) || call[1]} · ${call[1]}` : '',
    title: shorten(isLeaf(id) ? leafName(id) : nodeName(id)),
    small: [own ? shorten(textAt(own)) : shapes.length ? shapes[0] + more : textAt(nodes[id].kind).replace('_', ' '), heldWords(id)].filter(Boolean).join(' · '),
  };
}

/** The text in a collapsed scope's box. */
function scopeWords(place) {
  const { name, detail, call } = scopeTitle(place);
  const small = [formatCount(countNodes(scopes[place]), 'node'), heldWords(-place), scopes[place].odd, cutWords(open.has(place) ? [] : scopeNodes(place))].filter(Boolean).join(' · ');
  const title = shorten(name);
  return { title, detail: shorten(detail) + (call > 1 ? ` · call ${call}` : ''), small };
}

/** Size of a node or collapsed scope: extent on both sides of its column, height, and frame width. */
function sizeOf(item) {
  const pills = isScope(item) ? pillsOfScope(-item) : rootsAt.get(item) || [];
  const pill = pills.length ? shorten(pills.length > 1 ? `${pills.length} roots` : pills[0], 24) : '';
  const before = pill ? widthOf(pill, 'title') + 38 : 0;
  if (isScope(item)) {
    const words = scopeWords(-item);
    const width = Math.max(120, 46 + widthOf(`${words.title}  ${words.detail}`, 'title'), 30 + widthOf(words.small, 'small'));
    const chips = scopes[-item].kind === 'shapes' ? chipsOf(scopes[-item].last) : [];
    return { frame: width, left: width / 2 + before, right: width / 2 + roomForChips(chips, 6), height: heightWith(chips, 46), words, pill, chips };
  }
  const words = nodeWords(item);
  const chips = chipsOf(item);
  const width = Math.max(84, 2 * PAD + widthOf(words.title, 'title'), 2 * PAD + widthOf(words.small, 'small'),
    2 * PAD + widthOf(words.over, 'chip'));
  return { frame: width, left: width / 2 + before, right: width / 2 + roomForChips(chips, 0), height: heightWith(chips, words.over ? 60 : 42),
    words, chips, pill };
}

const heightWith = (chips, height) => Math.max(height, chips.length * CHIP_STEP - 4);

/** How far the chips extend beyond a box; `without` if there are none. */
function roomForChips(chips, without) {
  return chips.length ? CHIP_GAP + Math.max(...chips.map((chip) => widthOf(chip.text, 'chip') + 16)) : without;
}

function pillsOfScope(place) {
  const { first, last } = scopes[place];
  return [...rootsAt].flatMap(([node, names]) => (node >= first && node <= last ? names : []));
}
