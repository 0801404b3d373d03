// Search: names, classes, parameters, module paths, shapes, dtypes, source lines.
// All words of a query must match; a word like `[*, 768]` is a shape.

const query = byId('query'), found = byId('found'), results = byId('results');
const MAX_RESULTS = 100;
let haystack = null;

/** The searchable text of each node and module, in lower case; built on first use. */
function searchable() {
  if (haystack) return haystack;
  haystack = scopes.flatMap((scope, place) => (scope.kind === 'module'
    ? [{ item: -place, text: `${modules[scope.module][0]} ${modules[scope.module][1]}`.toLowerCase(), code: '', shapes: '' }] : []));
  nodes.forEach((node, id) => haystack.push({ item: id, text: wordsOf(id).join('\n').toLowerCase(),
    code: (frames[node.frame]?.[3] || '').toLowerCase(), shapes: shapesOf(id) }));
  return haystack;
}

function wordsOf(id) {
  const node = nodes[id];
  const leaves = node.leaf ? [id] : leavesOf(id);
  const names = leaves.flatMap((leaf) => [textAt(nodes[leaf].leaf.name), ...(nodes[leaf].leaf.aliases || []).map(textAt)]);
  const frame = frames[node.frame];
  return [`#${numberOf(id)}`, nodeName(id), textAt(node.function), ...names, ...(moduleOf(id) || []).slice(0, 2), ...outputsOf(id), textAt(node.dtype),
    ...(frame ? [`${frame[0]}:${frame[1]}`] : [])];
}

const shapesOf = (id) => [...outputsOf(id), nodes[id].leaf ? textAt(nodes[id].leaf.tensor) : ''].join('\n').toLowerCase();

/** A test for a shape; `*` matches one size. */
function shapeTest(pattern) {
  const escaped = pattern.toLowerCase().replace(/\s+/g, '').replace(/[.+?^${}()|[\]\\]/g, '\\$&');
  const test = new RegExp(escaped.replaceAll('*', '[^,\\[\\]]+'));
  return ({ shapes }) => test.test(shapes.replaceAll(' ', ''));
}

function testsFor(text) {
  const shapes = text.match(/\S*\[[^\]]*\]?/g) || [];
  const words = text.replace(/\S*\[[^\]]*\]?/g, ' ').toLowerCase().split(/\s+/).filter(Boolean);
  return [...shapes.map(shapeTest), ...words.map((word) => (entry) => entry.text.includes(word) || entry.code.includes(word))];
}

/** Matches by name first, then those only in the source line. */
const byName = (tests) => {
  const isNamed = ({ text, shapes }) => tests.every((test) => test({ text, shapes, code: '' }));
  return (entries) => [...entries.filter(isNamed), ...entries.filter((entry) => !isNamed(entry))];
};

function search(text) {
  const tests = testsFor(text);
  return tests.length ? byName(tests)(searchable().filter((entry) => tests.every((test) => test(entry)))) : [];
}

function resultRow({ item }) {
  const line = isScope(item) ? `${modules[scopes[-item].module][0] || scopeTitle(-item).name}` : `#${numberOf(item)} ${nodeTitle(item)}`;
  const frame = isScope(item) ? null : frames[nodes[item].frame];
  const small = isScope(item) ? `${modules[scopes[-item].module][1]} · ${formatCount(countNodes(scopes[-item]), 'node')}`
    : [outputsOf(item)[0], moduleOf(item)?.[0], frame && `${frame[0]}:${frame[1]}  ${frame[3]}`].filter(Boolean).join(' · ');
  return html('li', {}, html('a', { href: hashOf(item) }, html('span', { text: line }), html('small', { text: small })));
}

function showResults() {
  const hits = search(query.value);
  found.hidden = !query.value.trim();
  byId('count').textContent = hits.length > MAX_RESULTS ? `first ${MAX_RESULTS} of ${hits.length.toLocaleString('en')}`
    : hits.length ? `${hits.length} found` : 'No matches';
  results.replaceChildren(...hits.slice(0, MAX_RESULTS).map(resultRow));
}

function closeResults() { found.hidden = true; }

function searchKeys(event) {
  const links = [...results.querySelectorAll('a')];
  const at = links.indexOf(document.activeElement);
  if (event.key === 'Escape') { closeResults(); picture.querySelector('[tabindex="0"]')?.focus(); return; }
  if (event.key === 'Enter' && at < 0 && links.length) { event.preventDefault(); links[0].click(); return; }
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  event.preventDefault();
  event.stopPropagation();
  (links[at + (event.key === 'ArrowDown' ? 1 : -1)] || query).focus();
}

query.addEventListener('input', showResults);
query.addEventListener('focus', () => { if (query.value) showResults(); });
document.querySelector('.find').addEventListener('keydown', searchKeys);
results.addEventListener('click', closeResults);
document.addEventListener('pointerdown', (event) => { if (!event.target.closest('.find')) closeResults(); });
