// Parts without a common vertex are laid out on their own and packed into rows, so that many of them fill a page.

const PACK_GAP = 40, PACKED_SHAPE = 1.5; // width over height

/** Lay out like `layOut`, part by part. A scope with ports stays whole: its edges enter at the top and leave at the bottom. */
function layOutParts(vertices, edges) {
  const parts = vertices.every((vertex) => vertex.role === 'item') ? partsOf(vertices, edges) : [];
  if (parts.length < 2) return layOut(vertices, edges);
  for (const part of parts) {
    const copies = part.edges.map((edge) => ({ ...edge, from: part.places.get(edge.from), to: part.places.get(edge.to) }));
    part.vertices = [...part.places.keys()].map((place) => vertices[place]);
    Object.assign(part, layOut(part.vertices, copies));
    part.edges.forEach((edge, index) => { edge.points = copies[index].points; });
  }
  return pack(parts);
}

/** The connected parts, in the order of their first vertices: {places: vertex -> place in the part, edges}. */
function partsOf(vertices, edges) {
  const leader = vertices.map((_, place) => place);
  const find = (place) => { while (leader[place] !== place) { leader[place] = leader[leader[place]]; place = leader[place]; } return place; };
  for (const { from, to } of edges) {
    const [one, other] = [find(from), find(to)];
    leader[Math.max(one, other)] = Math.min(one, other);
  }
  const parts = new Map();
  vertices.forEach((_, place) => {
    const part = parts.get(find(place)) || { places: new Map(), edges: [] };
    part.places.set(place, part.places.size);
    parts.set(find(place), part);
  });
  for (const edge of edges) parts.get(find(edge.from)).edges.push(edge);
  return [...parts.values()];
}

/** Put parts side by side in rows of about the width that gives the whole its shape. */
function pack(parts) {
  const area = parts.reduce((sum, part) => sum + (part.width + PACK_GAP) * (part.height + PACK_GAP), 0);
  const limit = Math.max(Math.sqrt(area * PACKED_SHAPE), ...parts.map((part) => part.width));
  let left = 0, top = 0, bottom = 0, width = 0;
  for (const part of parts) {
    if (left && left + part.width > limit) { left = 0; top = bottom + PACK_GAP; }
    for (const vertex of part.vertices) { vertex.x += left; vertex.y += top; }
    for (const edge of part.edges) edge.points = edge.points.map(([x, y]) => [x + left, y + top]);
    width = Math.max(width, left + part.width);
    bottom = Math.max(bottom, top + part.height);
    left += part.width + PACK_GAP;
  }
  return { width, height: bottom };
}
