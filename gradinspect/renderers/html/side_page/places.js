// The head of the page, and the list of differences with links to where they are.

const MAX_LINKS = 3; // before a button shows the others
const NAMES = { '+': 'added', '-': 'removed', '~': 'changed' };

byId('title').textContent = page.sides.map(([label]) => label).join(' → ');
byId('summary').textContent = [page.summary, page.torch[0] === page.torch[1] ? `torch ${page.torch[0]}` : `torch ${page.torch.join(' → ')}`].join('  ·  ');
byId('failures').append(...page.failures.map((text) => html('p', { text: `failed  ${text}` })));
byId('figures').append(html('tr', {}, ...['', 'A', 'B', 'change'].map((text) => html('th', { scope: 'col', text }))),
  ...page.figures.map((cells) => html('tr', {}, ...cells.map((text) => html('td', { text })))));
page.sides.forEach(([label, captured], side) => byId(side ? 'head-b' : 'head-a').append(html('b', { text: `${SIDE_NAMES[side]}  ${label}` }), ` ${captured}`));

/** Links to a node: one for each graph that has it. */
function nodeLinks(id) {
  return [0, 1].flatMap((side) => (rows[id][side] ? [html('a', { href: `#${SIDE_NAMES[side].toLowerCase()}${rows[id][side][0]}`, text: `${SIDE_NAMES[side]} #${rows[id][side][0]}` })] : []));
}

const scopesOfCall = new Map();
scopes.forEach((scope, index) => { if (scope.module !== undefined && !scopesOfCall.has(scope.module)) scopesOfCall.set(scope.module, index); });

/** A link to a module call, or to the only node in it. */
function callLinks(call) {
  const [before, after, , , , first] = calls[call];
  const index = scopesOfCall.get(call);
  if (index !== undefined) return [html('a', { href: `#s${index}`, text: texts[after < 0 ? before : after] })];
  return first < 0 ? [] : nodeLinks(first);
}

function placesOf(entry) {
  const links = [...(entry.calls ?? []).map(callLinks), ...(entry.nodes ?? []).map(nodeLinks)].filter((found) => found.length);
  if (!links.length) return null;
  const places = html('small', { class: 'places' }, ...links.slice(0, MAX_LINKS).flat());
  if (links.length > MAX_LINKS) {
    const more = html('button', { type: 'button', text: `${links.length - MAX_LINKS} more` });
    more.addEventListener('click', () => more.replaceWith(...links.slice(MAX_LINKS).flat()));
    places.append(more);
  }
  return places;
}

function entryOf(entry) {
  const kind = NAMES[entry.sign] ?? '';
  const extra = [entry.bytes, entry.line].filter(Boolean).join('  ');
  return html('li', { class: kind }, kind && html('span', { class: 'sign', 'aria-label': kind, text: SIGNS[kind] }), entry.words,
    ...(entry.details ?? []).map((text) => html('small', { text })), extra && html('small', { text: extra }), placesOf(entry));
}

byId('differences').append(...page.differences.flatMap(({ title, entries }) => [html('h2', { text: title }), html('ul', {}, ...entries.map(entryOf))]));
if (!page.differences.length) byId('differences').append(html('p', { text: 'No difference.' }));
