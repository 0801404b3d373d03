// Save the current view as a standalone SVG file, with the current styles and colors.

const SAVED_STYLES = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'paint-order', 'opacity', 'font-family', 'font-size', 'font-weight'];

/** Copy the computed styles of each element into its attributes. */
function withStyles(from, to) {
  const sources = from.querySelectorAll('*'), copies = to.querySelectorAll('*');
  sources.forEach((source, index) => {
    const styles = window.getComputedStyle(source);
    const isText = ['text', 'tspan'].includes(source.tagName);
    for (const name of isText ? SAVED_STYLES : SAVED_STYLES.slice(0, 7)) {
      const value = styles.getPropertyValue(name);
      if (value && source.tagName !== 'g' || name === 'opacity') copies[index].setAttribute(name, value);
    }
    for (const name of ['style', 'class', 'tabindex', 'role']) copies[index].removeAttribute(name);
  });
}

function pictureAsSvg() {
  const copy = canvas.cloneNode(true);
  withStyles(canvas, copy);
  copy.setAttribute('transform', 'translate(20,20)');
  const [width, height] = [Math.ceil(layout.width + 40), Math.ceil(layout.height + 40)];
  const paper = svg('rect', { width, height, fill: window.getComputedStyle(document.body).backgroundColor });
  const whole = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}` }, svg('title', { text: page.title }), paper, copy);
  return new XMLSerializer().serializeToString(whole);
}

function save() {
  const address = URL.createObjectURL(new Blob([pictureAsSvg()], { type: 'image/svg+xml' }));
  const name = page.title.replace(/[^\w.-]+/g, '_').replace(/\.py$/, '');
  html('a', { href: address, download: `${name || 'graph'}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
byId('save').addEventListener('click', save);
