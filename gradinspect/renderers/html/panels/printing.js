// Print the whole picture, whatever part of it is on the screen: as columns on one page, or on several pages.
// It is cut between boxes, never through one. The columns are made when printing begins and removed when it ends.

const printed = byId('printed');
const PAPER = { width: 700, height: 860, gap: 16 }; // CSS pixels that fit on A4 and on Letter, below the head
const ON_ONE_PAGE = 0.65, ON_SEVERAL = 0.8; // the smallest scale, and the scale if that is too small
const MAX_COLUMNS = 4, TITLE_ROOM = 26, BLEED = 2;

/** The scale of the picture, and the height of a column, in its own units. */
function printedScale({ width, height }) {
  const scales = Array.from({ length: MAX_COLUMNS }, (_, index) => {
    const columns = index + 1;
    const room = (PAPER.width - index * PAPER.gap) / columns;
    return Math.min(1, room / width, (PAPER.height * columns * (columns > 1 ? 0.9 : 1)) / height);
  });
  const best = Math.max(...scales);
  const scale = best >= ON_ONE_PAGE ? best : Math.min(ON_SEVERAL, PAPER.width / width);
  return { scale, most: PAPER.height / scale };
}

/** Heights that no box, and no title of an open one, is across. */
function cuts(layout, most) {
  const spans = layout.boxes.map((box) => {
    const top = box.y - box.height / 2;
    return [top, box.isOpen ? top + TITLE_ROOM : top + box.height];
  }).sort((a, b) => a[0] - b[0]);
  const free = [];
  let reached = 0;
  for (const [top, bottom] of spans) {
    if (top > reached) free.push((reached + top) / 2);
    reached = Math.max(reached, bottom);
  }
  const found = [0];
  while (layout.height - found.at(-1) > most) {
    const last = found.at(-1);
    const usable = free.filter((y) => y > last + most / 3 && y <= last + most);
    found.push(usable.length ? usable.at(-1) : last + most);
  }
  return [-BLEED, ...found.slice(1), layout.height + BLEED];
}

/** A piece of the picture: copies of what is between two heights. */
function printedPiece(layout, top, bottom, scale) {
  const isIn = (low, high) => low <= bottom && high >= top;
  const boxes = layout.boxes.filter((box) => isIn(box.y - box.height / 2, box.y + box.height / 2));
  const [behind, , titles] = layers;
  const [opened, closed] = [boxes.filter((box) => box.isOpen), boxes.filter((box) => !box.isOpen)];
  const items = new Set(opened.map((box) => String(box.item)));
  const copies = (elements) => elements.map((element) => element.cloneNode(true));
  const ofOpened = (layer) => copies([...layer.children].filter((element) => items.has(element.dataset.item)));
  const edges = layout.edges.filter(({ points }) => isIn(Math.min(...points.map(([, y]) => y)), Math.max(...points.map(([, y]) => y))));
  return svg('svg', { class: 'picture', viewBox: `${-BLEED} ${round(top)} ${round(layout.width + 2 * BLEED)} ${round(bottom - top)}`, width: round((layout.width + 2 * BLEED) * scale), height: round((bottom - top) * scale) },
    ...ofOpened(behind), ...copies(edges.map((edge) => edge.element)), ...ofOpened(titles), ...copies(closed.map((box) => box.element.parentNode)));
}

function preparePrint() {
  if (byId('stage').hidden) return;
  const { scale, most } = printedScale(layout);
  const heights = cuts(layout, most);
  const pieces_ = heights.slice(1).map((bottom, index) => printedPiece(layout, heights[index], bottom, scale));
  const marks = legend.cloneNode(true);
  marks.removeAttribute('id');
  marks.querySelector('#closed')?.remove();
  printed.replaceChildren(html('div', { class: 'legend' }, ...marks.children), ...pieces_);
}

window.addEventListener('beforeprint', preparePrint);
window.addEventListener('afterprint', () => printed.replaceChildren());
