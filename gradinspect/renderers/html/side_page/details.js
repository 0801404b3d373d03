// What is known of one node, side by side.

/** The texts of one property on a side, those that the other side lacks with a sign. */
function factLines(title, lines, others, side) {
  if (!lines.length) return [];
  const isKnown = new Set(others ?? lines);
  const shown = lines.map((line) => (isKnown.has(line) ? html('code', { text: `  ${line}` })
    : html('code', { class: side ? 'gained' : 'lost', text: `${side ? '+' : '−'} ${line}` })));
  return [html('h3', { text: title }), ...shown];
}

const FACTS = [['output', 1], ['input', 2], ['leaf', 3], ['saved', 4]];
const linesOf = (node, place) => node[place].map((one) => texts[Array.isArray(one) ? one[0] : one]);

function factsOf(id, side, isCompared) {
  const [node, other] = [sideOf(id, side), isCompared ? sideOf(id, 1 - side) : null];
  if (!node) return html('div', {}, html('p', { text: `Not in ${SIDE_NAMES[side]}.` }));
  const [, , , , , line, code, bytes] = node;
  const parts = FACTS.flatMap(([title, place]) => factLines(title, linesOf(node, place), other && linesOf(other, place), side));
  const source = texts[line] ? factLines(texts[line], [texts[code] || '(no source)'], other && [texts[other[6]] || '(no source)'], side) : [];
  return html('div', {}, html('p', { text: `${SIDE_NAMES[side]} #${rows[id][side][0]}  ${texts[node[0]]}  ${bytes ? `${formatBytes(bytes)} held` : ''}` }), ...parts, ...source);
}

/** Create the details of a node: once if both graphs have the same. */
function makeFacts(id, level) {
  const [mine, theirs] = rows[id];
  const isSame = mine && theirs && mine[1] === theirs[1];
  const details = (rows[id][3] ?? []).map((place) => html('p', { text: `~ ${texts[place]}` }));
  const one = isSame ? factsOf(id, 1, false) : null;
  one?.classList.add('wide');
  const shown = one ? [one] : [factsOf(id, 0, mine && theirs), html('div', { class: 'gap' }), factsOf(id, 1, mine && theirs)];
  const facts = html('div', { class: 'facts' }, details.length ? html('div', { class: 'wide differences' }, ...details) : null, ...shown);
  facts.style.setProperty('--level', level);
  return facts;
}
