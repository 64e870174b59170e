/* draw.mjs - elements of HTML and SVG, numbers as people read them, and grids of cells. */

const SVG = 'http://www.w3.org/2000/svg';

function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value === true)
      element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const tag = (name, attributes = {}, ...children) =>
  put(document.createElement(name), attributes, children);

export const shape = (name, attributes = {}, ...children) =>
  put(document.createElementNS(SVG, name), attributes, children);

export const byId = (id) => document.getElementById(id);

/* As in the style sheet. */
const NARROW_PX = 560;
export const isNarrow = () => globalThis.innerWidth <= NARROW_PX;

/* ---- Numbers ------------------------------------------------------------------------------- */

const short = (number, digits = 3) => Number(number.toPrecision(digits)).toString();

/* A number of bytes, by thousands. */
export function bytesText(nbytes) {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'];
  const step = Math.max(0, Math.min(Math.floor(Math.log10(nbytes || 1) / 3), units.length - 1));
  return `${step ? short(nbytes / 1000 ** step) : nbytes} ${units[step]}`;
}

/* A rate in percent, or as a power of ten where that is easier to read. */
export function rateText(rate) {
  if (rate === 0)
    return '0';
  if (rate < 1e-5)
    return rate.toExponential(1).replace('.0e', 'e');
  return `${short(rate * 100, 2)} %`;
}

export const wholeText = (number) => Number(number).toLocaleString('en-US');

export const bitsText = (bits) => (bits >= 100 ? bits.toFixed(0) : bits.toFixed(bits < 10 ? 2 : 1));

/* ---- Cells --------------------------------------------------------------------------------- */

/* The outline of these cells, of a size of 1 with a gap, in a grid of so many columns. */
export function cellsPath(cells, columns, gap = 0.16, x0 = 0, y0 = 0) {
  const side = (1 - gap).toFixed(2);
  let path = '';
  for (const cell of cells) {
    const x = x0 + cell % columns + gap / 2, y = y0 + Math.floor(cell / columns) + gap / 2;
    path += `M${x.toFixed(2)} ${y.toFixed(2)}h${side}v${side}h-${side}z`;
  }
  return path;
}

export const range = (n) => Array.from({ length: n }, (_, i) => i);

/* A picture that says in words what it shows.  It is as wide as there is room, up to 'most'. */
export function picture(width, height, words, most, ...shapes) {
  return shape('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': words,
                        style: `max-width: ${most}px` }, ...shapes);
}

/* A group of cells: those that are set, those that became so just now, those that were asked. */
export function cellGroup(n, columns, { set, fresh = [], asked = [] }, y0 = 0) {
  const now = new Set(fresh);
  return shape('g', {},
    shape('path', { class: 'cell', d: cellsPath(range(n), columns, 0.16, 0, y0) }),
    shape('path', { class: 'cell set', d: cellsPath(set.filter((i) => !now.has(i)), columns, 0.16, 0, y0) }),
    shape('path', { class: 'cell fresh', d: cellsPath(fresh, columns, 0.16, 0, y0) }),
    shape('path', { class: 'cell asked', d: cellsPath(asked, columns, 0.3, 0, y0) }));
}
