// The side panel: details of the selection.

const panel = byId('panel');
const hashOf = (item) => (isScope(item) ? `#s${-item}` : `#n${numberOf(item)}`);
const link = (id, content) => html('a', { href: hashOf(id), text: content || `#${numberOf(id)} ${nodeTitle(id)}` });
const section = (title, ...children) => (children.some(Boolean) ? html('section', {}, html('h3', { text: title }), ...children) : null);
const list = (rows) => (rows.length ? html('ul', {}, ...rows) : null);
const MAX_ROWS = 200;
const formulas = new Map(page.formulas);

/** A list that says how many items it leaves out. */
function longList(items, row) {
  const rows = items.slice(0, MAX_ROWS).map(row);
  if (items.length > MAX_ROWS) rows.push(html('li', { class: 'quiet', text: `and ${(items.length - MAX_ROWS).toLocaleString('en')} more` }));
  return list(rows);
}

function edgeRows(id) {
  return edgesOf(id).map((edge, position) => {
    const argument = html('span', { class: 'argument', text: (edge && textAt(edge[2])) || String(position) });
    if (!edge) return html('li', {}, argument, html('span', { class: 'quiet', text: page.cut?.lost[id]?.includes(position) ? 'cut: leads to a hidden node' : 'None: requires no gradient' }));
    return html('li', {}, argument, link(edge[0]), edge[1] ? html('span', { class: 'quiet', text: `  input_nr ${edge[1]}` }) : null);
  });
}

function userRow([user, position]) {
  const edge = edgesOf(user)[position];
  return html('li', {}, link(user), html('span', { class: 'quiet', text: `  ${textAt(edge[2]) || position}` }));
}

function savedTable(id) {
  const rows = (nodes[id].saved || []).map(([attribute, value, bytes, status, origin, storage]) => html('tr', {},
    html('td', {}, html('span', {}, ...pieces(textAt(attribute))), html('br'), html('small', { text: [textAt(status), textAt(origin)].filter(Boolean).join(' · ') }), storageButton(storage)),
    html('td', { text: textAt(value) }), html('td', { class: 'number', text: typeof bytes === 'number' ? formatBytes(bytes) : '' })));
  return rows.length ? html('table', { 'aria-label': 'Saved attributes' }, html('tbody', {}, ...rows)) : null;
}

/** A line with its context, if the file was available when the page was made. */
function codeBlock(frame) {
  const [before, line, after] = page.around[frame] || [[], frames[frame][3], []];
  const beside = (lines) => (lines.length ? html('span', { class: 'quiet', text: lines.join('\n') }) : null);
  return html('pre', {}, beside(before), before.length ? '\n' : null, html('span', { text: line }), after.length ? '\n' : null, beside(after));
}

/** The line that made a node, and its callers. */
function sourceLines(id) {
  const lines = [];
  for (let place = nodes[id].frame; place !== undefined && place !== null; place = frames[place][4]) {
    const [file, line, name, code, , address] = frames[place];
    const words = html('code', { text: `${file}:${line}` });
    const shown = address ? html('a', { href: address, target: '_blank', rel: 'noreferrer' }, words) : words;
    lines.push(html('p', {}, shown, html('span', { class: 'quiet', text: name ? `  in ${name}` : '' })));
    if (code) lines.push(place === nodes[id].frame ? codeBlock(place) : html('pre', { text: code }));
  }
  return lines;
}

function leafFacts(id) {
  const { leaf } = nodes[id];
  if (!leaf) return [];
  const aliases = (leaf.aliases || []).map(textAt);
  return [html('p', {}, html('code', { text: textAt(leaf.tensor) }), html('span', { text: `  ${textAt(leaf.kind)}, ${formatCount(leaf.uses, 'use')}` })),
    aliases.length ? html('p', { class: 'quiet', text: `also called ${aliases.join(', ')}` }) : null];
}

function nodePanel(id) {
  const node = nodes[id];
  const call = moduleOf(id);
  const texts_ = (places) => (places || []).map((place) => html('p', {}, html('code', { text: textAt(place) })));
  return [
    html('h2', {}, ...pieces(`#${numberOf(id)} ${nodeName(id)}`)),
    node.leaf ? html('p', { text: leafName(id) }) : null,
    html('p', { class: 'quiet', text: [textAt(node.kind).replaceAll('_', ' '), rootsAt.has(id) && `root ${rootsAt.get(id).join(', ')}`].filter(Boolean).join(' · ') }),
    node.function === undefined ? null : html('p', {}, html('code', { text: textAt(node.function) })),
    node.made_by === undefined ? null : html('p', { class: 'quiet', text: `made by the backward of ${textAt(node.made_by)}` }),
    section('Leaf', ...leafFacts(id)),
    node.leaf ? null : section('Forward outputs', ...texts_(node.outputs)),
    section('Gradient norm', node.norm === undefined ? null : html('p', {}, html('code', { text: String(node.norm) }))),
    section('Gradients go to', list(edgeRows(id))),
    section('Gradients come from', longList(usersOf(id), userRow)),
    section('Saved for backward', savedTable(id)),
    section('Formula', ...(formulas.get(nodeName(id)) || []).map((line) => html('p', {}, html('code', { text: line })))),
    section('Module', call && html('p', {}, html('code', { text: call[0] || '(outermost)' }), html('span', { class: 'quiet', text: `  ${call[1]}${call[2] > 1 ? `, call ${call[2]}` : ''}` }))),
    section('Source', ...sourceLines(id)),
    section('Hooks', ...texts_(node.hooks)),
  ];
}

/** The nodes in a scope, without leaves. */
function scopeNodes(place) {
  const { first, last } = scopes[place];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

function scopePanel(place) {
  const scope = scopes[place];
  const { name, detail, call } = scopeTitle(place);
  const inside = scopeNodes(place);
  const parameters = [...new Set(inside.flatMap(leavesOf))];
  const path = scope.kind === 'module' ? modules[scope.module][0] : '';
  return [
    html('h2', { text: `${name} ${detail}` }),
    html('p', { class: 'quiet', text: [formatCount(inside.length, 'node'), heldBytes(-place) && `${heldWords(-place)} held`, scope.odd, call > 1 && `call ${call}`].filter(Boolean).join(' · ') }),
    section('Module', path ? html('p', {}, html('code', { text: path })) : null),
    section('Leaves', longList(parameters, (id) => html('li', {}, link(id, leafName(id)), html('span', { class: 'quiet', text: `  ${textAt(nodes[id].leaf.tensor)}` })))),
    section('Nodes', longList(inside, (id) => html('li', {}, link(id), html('span', { class: 'quiet', text: `  ${outputsOf(id)[0] || ''}` })))),
  ];
}

function fillPanel(children) {
  const button = html('button', { type: 'button', class: 'close', 'aria-label': 'Close the panel', text: '×' });
  button.addEventListener('click', closePanel);
  const copy = html('button', { type: 'button', class: 'copy', title: 'Copy as text (c)', text: 'Copy' });
  copy.addEventListener('click', copyPanel);
  panel.replaceChildren(button, copy, ...children.filter(Boolean));
  if (panel.hidden) forgetStage();
  panel.hidden = false;
  panel.scrollTop = 0;
}

function showPanel(item) {
  fillPanel(isScope(item) ? scopePanel(-item) : nodePanel(item));
  panel.querySelector('h2').after(highlightButtons(item));
}

/** Show the warnings from recording the graph. */
function showWarnings() {
  fillPanel([html('h2', { text: formatCount(page.warnings.length, 'warning') }), list(page.warnings.map((warning) => html('li', { text: warning })))]);
}

function closePanel() {
  panel.hidden = true;
  forgetStage();
  choose(null);
  window.history.pushState(null, '', window.location.pathname + window.location.search);
}
