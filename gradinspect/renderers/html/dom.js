// Making elements. What comes from the user's program goes through textContent and setAttribute only.

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

/** Make an HTML element; `text` is its text, all else are attributes. */
function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** A long name as pieces that a line may end between: behind an underscore, before a capital. */
function pieces(name) {
  return name.split(/(?<=_)(?=[^_])|(?<=[a-z0-9])(?=[A-Z])/).flatMap((piece, place) => (place ? [html('wbr'), piece] : [piece]));
}

/** Make an SVG element in the same way. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

function formatBytes(count) {
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${unit ? count.toFixed(1) : count} ${units[unit]}`;
}

const formatCount = (count, noun) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
