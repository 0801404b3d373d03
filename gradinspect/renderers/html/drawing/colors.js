// Color boxes by module, bytes held, dtype, device, file or gradient norm. Dark fills get white text, light ones black.

// ColorBrewer's Blues, light to dark, so that the order survives grayscale printing; Okabe-Ito tints for kinds.
const RAMP = ['#F0F6FC', '#DAE8F5', '#BAD6EB', '#89BEDC', '#539ECD', '#2B7BBA', '#0B559F', '#08306B'];
const KINDS = ['#CFE3F5', '#FBE3B5', '#D5F0E6', '#F7DCEB', '#FBF6C9', '#F6D3BF', '#E0DAF3', '#DDE3E8'];
const NOTHING = { fill: null, words: '' };
const BAD = { fill: '#FFE45C', words: 'NaN or Inf' };
const ZERO = { fill: '#FBD9C6', words: 'exactly zero' };
let coloring = null; // {look: item -> {fill, words}, scale: [{fill, words}]}

function channels(color) {
  return [1, 3, 5].map((place) => parseInt(color.slice(place, place + 2), 16));
}

function rampColor(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const step = Math.min(Math.floor(place), RAMP.length - 2);
  const [low, high] = [channels(RAMP[step]), channels(RAMP[step + 1])];
  return `#${low.map((value, index) => Math.round(value + (high[index] - value) * (place - step)).toString(16).padStart(2, '0')).join('')}`;
}

/** Black or white, whichever contrasts better with a fill, by the relative luminance of WCAG 2. */
function inkOn(fill) {
  const linear = channels(fill).map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) ? '#000000' : '#ffffff';
}

/** A logarithmic scale over the values that spans at least a factor of ten. */
function logScale(values, write) {
  const usable = values.filter((value) => value > 0 && Number.isFinite(value));
  if (!usable.length) return { fill: () => RAMP[0], scale: [] };
  const high = Math.log10(usable.reduce((a, b) => Math.max(a, b)));
  const low = Math.min(Math.log10(usable.reduce((a, b) => Math.min(a, b))), high - 1);
  const fillOf = (value) => rampColor((Math.log10(value) - low) / (high - low));
  const steps = [0, 1, 2, 3, 4].map((step) => 10 ** (low + (step / 4) * (high - low)));
  return { fill: fillOf, scale: steps.map((value) => ({ fill: fillOf(value), words: write(value), isStep: true })) };
}

function kindScale(names) {
  const shown = [...new Set(names.filter(Boolean))].sort();
  const fills = new Map(shown.map((name, index) => [name, KINDS[index % KINDS.length]]));
  return { fills, scale: shown.map((name) => ({ fill: fills.get(name), words: name })) };
}

/** One color per kind of node; a box with several kinds has none. */
function byKind(kindOf, several) {
  const { fills, scale } = kindScale(nodes.map((_, id) => kindOf(id)));
  const look = (item) => {
    const all = new Set(idsOf(item).map(kindOf).filter(Boolean));
    const [only] = all;
    return all.size === 1 ? { fill: fills.get(only), words: only } : { fill: null, words: all.size ? several : '' };
  };
  return { look, scale };
}

const idsOf = (item) => (isScope(item) ? scopeNodes(-item) : [item]);
const className = (id) => moduleOf(id)?.[1] || '';

const COLORINGS = {
  module: () => {
    const { fills, scale } = kindScale(nodes.map((_, id) => className(id)));
    const look = (item) => {
      const name = isScope(item) && scopes[-item].kind === 'module' ? modules[scopes[-item].module][1] : isScope(item) ? '' : className(item);
      return name ? { fill: fills.get(name) || null, words: name } : NOTHING;
    };
    return { look, scale };
  },
  bytes: () => {
    const { fill: fillOf, scale } = logScale([...nodes.map((node) => node.bytes || 0), ...scopes.map((_, place) => (place ? heldBytes(-place) : 0))], (value) => formatBytes(Math.round(value)));
    return { look: (item) => (heldBytes(item) ? { fill: fillOf(heldBytes(item)), words: `${heldWords(item)} held` } : NOTHING), scale };
  },
  flops: () => {
    const sum = (item) => idsOf(item).reduce((total, id) => total + (nodes[id].flops || 0), 0);
    const { fill: fillOf, scale } = logScale([...nodes.map((node) => node.flops || 0), ...scopes.map((_, place) => (place ? sum(-place) : 0))], (value) => formatFlops(Math.round(value)));
    const look = (item) => { const total = sum(item); return total ? { fill: fillOf(total), words: `${formatFlops(total)}, forward and backward` } : NOTHING; };
    return { look, scale };
  },
  dtype: () => byKind((id) => textAt(nodes[id].dtype), 'several dtypes'),
  device: () => byKind((id) => textAt(nodes[id].device) || (nodes[id].dtype === undefined ? '' : page.device), 'several devices'),
  file: () => byKind((id) => frames[nodes[id].frame]?.[0] || '', 'several files'),
  grad: () => {
    const norms = nodes.map((node) => (node.norm === undefined ? null : Number(String(node.norm).replace('inf', 'Infinity'))));
    const { fill: fillOf, scale } = logScale(norms.filter((norm) => norm !== null), (value) => value.toExponential(0));
    const look = (item) => {
      const inside = idsOf(item).map((id) => norms[id]).filter((norm) => norm !== null);
      if (!inside.length) return { fill: null, words: 'no gradient' };
      if (inside.some((norm) => !Number.isFinite(norm))) return BAD;
      return inside[0] ? { fill: fillOf(inside[0]), words: `norm ${inside[0].toExponential(1)}` } : ZERO;
    };
    const marks = [norms.some((norm) => norm === 0) && ZERO, norms.some((norm) => norm !== null && !Number.isFinite(norm)) && BAD];
    return { look, scale: [...scale, ...marks.filter(Boolean)] };
  },
};

function paint(element, look) {
  const rect = element.querySelector('rect.frame') || element.querySelector('rect');
  if (!look.fill) return;
  rect.style.fill = look.fill;
  for (const words of element.querySelectorAll('text, tspan')) words.style.fill = inkOn(look.fill);
}

const colored = new WeakSet(); // drawn boxes are kept, and colored once

/** Color what is drawn, except expanded boxes: their contents are colored. */
function colorBoxes(layout) {
  if (!coloring) return;
  for (const box of layout.boxes) {
    if (box.isOpen || colored.has(box.element)) continue;
    colored.add(box.element);
    const look = coloring.look(box.item);
    paint(box.element, look);
    if (look.words) box.element.append(svg('title', { text: look.words }));
    for (const chip of box.element.parentNode.querySelectorAll('.chip')) {
      const leaf = Number(chip.dataset.leaf);
      if (Number.isInteger(leaf)) paint(chip, coloring.look(leaf));
    }
  }
}

const MAX_KINDS = 10; // in the legend

/** The steps of the scale, or those kinds that are on the picture. */
function legendOfColors(layout) {
  const items = layout.boxes.filter((box) => !box.isOpen).flatMap((box) => [box.item, ...(box.chips || []).map((chip) => chip.leaf ?? box.item)]);
  const seen = new Set(items.map((item) => coloring.look(item).words));
  const shown = coloring.scale.filter(({ isStep, words }) => isStep || seen.has(words));
  const entries = shown.slice(0, MAX_KINDS).map(({ fill: color, words }) => {
    const swatch = html('i');
    swatch.style.background = color;
    return html('span', {}, swatch, html('span', { text: shorten(words) }));
  });
  return shown.length > MAX_KINDS ? [...entries, html('span', { text: `${shown.length - MAX_KINDS} more` })] : entries;
}
