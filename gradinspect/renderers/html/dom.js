// Create elements. Text from the user's program only goes through textContent and setAttribute.

const SVG = 'http://www.w3.org/2000/svg';
const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'text') node.textContent = value;
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value);
  }
  for (const child of children) if (child) node.append(child);
  return node;
}

/** Create an HTML element; `text` is its text, the rest are attributes. */
function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Split a long name where a line may break: after an underscore, before a capital. */
function pieces(name) {
  return name.split(/(?<=_)(?=[^_])|(?<=[a-z0-9])(?=[A-Z])/).flatMap((piece, place) => (place ? [html('wbr'), piece] : [piece]));
}

/** Create an SVG element in the same way. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** One digit, as Python writes it: a tie goes to the even one. */
const oneDigit = (count) => (count % 1 === 0.25 ? count - 0.05 : count).toFixed(1);

function formatBytes(count) {
  let unit = 0;
  while ((unit ? Number(oneDigit(count)) : count) >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${unit ? oneDigit(count) : count} ${units[unit]}`;
}

/** FLOPs with a decimal prefix. */
const formatFlops = (count) => `${new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(count)} FLOPs`;

const formatCount = (count, noun) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
