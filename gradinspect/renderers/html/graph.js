// The recorded graph, and lookups of single nodes.

const page = JSON.parse(byId('graph').textContent);
const { nodes, texts, modules, frames, scopes } = page;
const textAt = (place) => (place === undefined || place === null ? '' : texts[place]);

const nodeName = (id) => textAt(nodes[id].name);
/** The number of a node in the whole graph, also when the page shows only part of it. */
const numberOf = (id) => (page.cut ? page.cut.numbers[id] : id);
const idOf = (number) => (page.cut ? page.cut.numbers.indexOf(number) : number);
const isLeaf = (id) => textAt(nodes[id].kind) === 'accumulate_grad';
const outputsOf = (id) => (nodes[id].outputs || []).map(textAt);
const edgesOf = (id) => nodes[id].edges || [];
const leavesOf = (id) => edgesOf(id).flatMap((edge) => (edge && isLeaf(edge[0]) ? [edge[0]] : []));
const leafName = (id) => textAt(nodes[id].leaf.name) || textAt(nodes[id].leaf.tensor);
const moduleOf = (id) => (nodes[id].module === undefined ? null : modules[nodes[id].module]);

/** The name of a leaf without the path of the module of the node that uses it. */
function nameInside(leaf, id) {
  const own = moduleOf(id)?.[0];
  const name = leafName(leaf);
  return own && name.startsWith(`${own}.`) ? name.slice(own.length + 1) : name;
}

/** How many edges the focus has cut from some nodes, in words. */
function cutWords(ids) {
  const came = ids.reduce((sum, id) => sum + (page.cut?.came[id] || 0), 0);
  const lost = ids.reduce((sum, id) => sum + (page.cut?.lost[id]?.length || 0), 0);
  return came + lost ? `cut: ${[came && `${came} in`, lost && `${lost} out`].filter(Boolean).join(', ')}` : '';
}
const rootsAt = new Map();
for (const [node, output, name] of page.roots) {
  rootsAt.set(node, [...(rootsAt.get(node) || []), name || `output ${output}`]);
}

/** The last part of a dotted path, for a box inside its parent; an index keeps the name of what it is an index of. */
function shortPath(path) {
  const parts = path.split('.');
  let start = parts.length - 1;
  while (start > 0 && /^\d+$/.test(parts[start])) start -= 1;
  return `${/^\d+$/.test(parts[start]) ? 'model.' : ''}${parts.slice(start).join('.')}`;
}

/** The title of a node: its class, or the parameter it accumulates into. */
function nodeTitle(id) {
  return isLeaf(id) ? leafName(id) : nodeName(id);
}

let keepers = null;

/** The nodes that keep a storage alive, and the leaf that uses it. */
function keepersOf(storage) {
  if (!keepers) {
    keepers = new Map();
    const keep = (place, id) => { if (place !== null && place !== undefined) keepers.set(place, (keepers.get(place) || new Set()).add(id)); };
    nodes.forEach((node, id) => { for (const saved of node.saved || []) keep(saved[5], id); keep(node.leaf?.storage, id); });
  }
  return [...(keepers.get(storage) || [])];
}

let users = null;

/** The nodes whose gradients go to a node. Computed for all nodes at the first call. */
function usersOf(id) {
  if (!users) {
    users = nodes.map(() => []);
    nodes.forEach((_, from) => edgesOf(from).forEach((edge, position) => edge && users[edge[0]].push([from, position])));
  }
  return users[id];
}
