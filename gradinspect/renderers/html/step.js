// The memory of whole steps: the curve, and who is alive at the moment that is chosen.

const { title, figures, notes, left_out: leftOut, left, margin, top, height, kinds, devices } = JSON.parse(byId('graph').textContent);
const MAX_ROWS = 60;
const slider = byId('place');
const chooser = byId('device');
const number = (text) => html('td', { class: 'number', text });
const head = (...names) => html('tr', {}, ...names.map((text, place) => html('th', { class: place < 2 && text !== 'kind' ? 'number' : null, text })));

byId('title').textContent = title;
byId('figures').textContent = figures;
byId('notes').textContent = notes;
byId('left-out').textContent = leftOut;
let curve;
let here;
let right;
let { points, spans, peak } = devices[0];

// As `format_share` in Python: `100%` only of all of it.
function share(bytes, all) {
  const percent = all ? 100 * bytes / all : 0;
  if (percent < 1) return all ? '<1%' : '';
  return percent < 99.5 || bytes >= all ? `${Math.round(percent)}%` : '>99%';
}

const INDEX = /(?<![^.])[0-9]{1,18}(?![^.])/g;

function listed(indices) {
  const sorted = [...new Set(indices)].sort((one, other) => one - other);
  const last = sorted[sorted.length - 1];
  if (sorted.length === 1) return `${last}`;
  if (last - sorted[0] === sorted.length - 1) return `${sorted[0]}-${last}`;
  return sorted.length <= 4 ? sorted.join(',') : `${sorted[0]},${sorted[1]}..${last}`;
}

function nameTogether(names) {
  const indices = names.map((name) => name.match(INDEX) || []);
  let place = -1;
  return names[0].replace(INDEX, () => { place += 1; return listed(indices.map((found) => Number(found[place]))); });
}

// Rows of equal blocks as one, as `fit` prints them: h.0-11.weight ×12, with the least and the most of each.
function folded(alive) {
  const groups = new Map();
  for (const span of alive) {
    const [, , , kind, what, module, line] = span;
    const key = JSON.stringify([kind, what.replace(INDEX, '*'), module.replace(INDEX, '*'), line]);
    groups.set(key, [...groups.get(key) || [], span]);
  }
  const rows = [...groups.values()].flatMap((same) => (same.length < 3 ? same : [together(same)]));
  return rows.sort((one, other) => other[2] - one[2]);
}

// The place of the size farthest from the median of the others, and how many times it that is: as `odd_one` in Python.
function oddOne(sizes) {
  const times = sizes.map((size, place) => {
    const others = sizes.filter((_, other) => other !== place).sort((one, other) => one - other);
    const median = (others[(others.length - 1) >> 1] + others[others.length >> 1]) / 2;
    if (median) return size / median;
    return size ? Infinity : 1;
  });
  const far = times.map((factor) => (factor > 0 ? Math.abs(Math.log(factor)) : Infinity));
  const place = far.indexOf(Math.max(...far));
  const others = sizes.filter((_, other) => other !== place);
  const spread = Math.log(Math.max(...others) / Math.max(Math.min(...others), 1));
  return far[place] >= Math.log(3) && spread <= far[place] / 2 ? [place, times[place]] : null;
}

/** What a span is, and of how many storages. */
const counted = (what, count) => (count > 1 ? `${what} ×${count.toLocaleString('en')}` : what);

function together(same) {
  const [first, last, , kind, , , line, code] = same[0];
  const sizes = same.map((span) => span[2]);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)].map(formatBytes);
  const count = same.reduce((sum, span) => sum + span[8], 0);
  const each = `${least === most ? least : `${least} to ${most}`} ${count === same.length ? 'each' : `in each of ${same.length}`}`;
  const [what, module] = [4, 5].map((place) => nameTogether(same.map((span) => span[place])));
  const odd = oddOne(sizes);
  const name = odd && (same[odd[0]][4] === what ? same[odd[0]][5] : same[odd[0]][4]);
  const words = odd ? `${each}, ${name}: ${odd[1].toFixed(1)} times the others` : each;
  return [first, last, sizes.reduce((sum, size) => sum + size, 0), kind, `${counted(what, count)}, ${words}`, module, line, code, 1];
}

/** A text of which a part of a name moves to the next line whole, and is broken only if it is longer than that. */
function whole(text) {
  return text.split(/(?<=[._])(?=[^.\d])|(?= )|(?<= )/).map((piece) => (piece === ' ' ? piece : html('span', { class: 'whole', text: piece })));
}

function show(place) {
  const [when, bytes, byKind] = points[place];
  slider.value = place;
  slider.setAttribute('aria-valuetext', `${when}, ${formatBytes(bytes)}`);
  const x = left + (right - left) * (place + 0.5) / points.length;
  here.setAttribute('d', `M${x} ${top}V${top + height}`);
  byId('moment').textContent = `${when}: ${formatBytes(bytes)} alive${place === peak ? ', the peak' : ''}`;
  const sums = kinds.map((kind, index) => [kind, byKind[index]]).filter(([, sum]) => sum);
  byId('kinds').replaceChildren(head('bytes', '%', 'kind'),
    ...sums.map(([kind, sum]) => html('tr', {}, number(formatBytes(sum)), number(share(sum, bytes)), html('td', { text: kind }))));
  const alive = folded(spans.filter(([first, last]) => first <= place && place <= last));
  const shown = alive.slice(0, MAX_ROWS);
  const rest = bytes - shown.reduce((sum, span) => sum + span[2], 0);
  const rows = shown.map(([, , size, kind, what, module, line, code, count]) => html('tr', {}, number(formatBytes(size)), number(share(size, bytes)),
    html('td', { text: kinds[kind] }), html('td', {}, ...whole(counted(what, count))), html('td', {}, ...whole(module)), html('td', { text: line }, code ? html('code', { text: code }) : null)));
  const smaller = rest > 0 ? [html('tr', {}, number(formatBytes(rest)), number(share(rest, bytes)), html('td', { text: 'others, each smaller', colspan: 4 }))] : [];
  byId('alive').replaceChildren(head('bytes', '%', 'kind', 'what', 'module', 'made at'), ...rows, ...smaller);
}

function placeOf(event) {
  const box = curve.getBoundingClientRect();
  const x = (event.clientX - box.left) * curve.viewBox.baseVal.width / box.width;
  return Math.min(points.length - 1, Math.max(0, Math.floor((x - left) / (right - left) * points.length)));
}

const narrow = window.matchMedia('(max-width: 760px)');

function draw(number) {
  const picture = devices[number].pictures[Number(narrow.matches)];
  curve = document.importNode(new DOMParser().parseFromString(picture, 'image/svg+xml').documentElement, true);
  right = curve.viewBox.baseVal.width - margin;
  here = svg('path', { class: 'here' });
  curve.append(here);
  curve.addEventListener('click', (event) => show(placeOf(event)));
  byId('curve').replaceChildren(curve);
}

function choose(number) {
  ({ points, spans, peak } = devices[number]);
  draw(number);
  slider.max = points.length - 1;
  if (points.length) show(peak);
}

slider.addEventListener('input', () => show(Number(slider.value)));
byId('peak').addEventListener('click', () => show(peak));
chooser.append(...devices.map(({ name }, number) => html('option', { value: number, text: name })));
chooser.addEventListener('change', () => choose(Number(chooser.value)));
byId('devices').hidden = devices.length < 2;
narrow.addEventListener('change', () => {
  draw(Number(chooser.value));
  if (points.length) show(Number(slider.value));
});
choose(0);
