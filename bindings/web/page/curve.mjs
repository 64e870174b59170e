/* curve.mjs - bits a key against the rate, for all kinds, as SVG.  It is a slider, too: the
 * arrows, a finger or the mouse choose a rate. */
import { bitsText, isNarrow, rateText, shape, tag } from './draw.mjs';

const WIDTH = isNarrow() ? 430 : 720, HEIGHT = 380, LEFT = 40, RIGHT = 14, TOP = 14, BOTTOM = 34;
const DECADES = [-0.30103, -9];
const TOP_LEAST = 36, TOP_MOST = 128; // bits

const xOf = (p) => LEFT + (DECADES[0] - Math.log10(p)) / (DECADES[0] - DECADES[1]) * (WIDTH - LEFT - RIGHT);
const pOf = (x) => 10 ** (DECADES[0] - (x - LEFT) / (WIDTH - LEFT - RIGHT) * (DECADES[0] - DECADES[1]));

/* Curves that take far more bits than the chosen one leave the picture at its top. */
const topOf = (curves) => {
  const most = Math.max(...curves.filter(({ chosen }) => chosen).flatMap(({ points }) => points.map(([, bits]) => bits)), 0);
  return Math.min(Math.max(most * 1.1, TOP_LEAST), TOP_MOST);
};

const yScale = (top) => (bits) => TOP + (1 - bits / top) * (HEIGHT - TOP - BOTTOM);

/* The rates at which a curve has points, 1, 2 and 5 of each power of ten: coarse ones first, so
 * that the curve is soon there. */
const POWERS = Array.from({ length: 9 }, (_, i) => Number(`1e-${i + 1}`));
export const RATES = [...POWERS, ...POWERS.flatMap((power) => [Number((5 * power).toPrecision(1)), Number((2 * power).toPrecision(1))])];
const SORTED = [...RATES].sort((a, b) => b - a);

/* The point that is nearest to a rate. */
const snap = (p) => SORTED.reduce((best, rate) => (Math.abs(Math.log(rate / p)) < Math.abs(Math.log(best / p)) ? rate : best));

const superscript = (n) => [...String(n)].map((digit) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(digit)]).join('');

function axes(y, top) {
  const group = shape('g', { class: 'axes' }), step = top > 72 ? 16 : 8;
  for (let bits = 0; bits <= top; bits += step)
    group.append(shape('path', { d: `M${LEFT} ${y(bits)}H${WIDTH - RIGHT}` }),
                 shape('text', { x: LEFT - 8, y: y(bits) + 5, 'text-anchor': 'end' }, String(bits)));
  const NAMES = ['', '10 %', '1 %', '0.1 %'];
  for (let d = 1; d <= 9; d++)
    group.append(shape('path', { d: `M${xOf(10 ** -d)} ${TOP}V${HEIGHT - BOTTOM}` }),
                 shape('text', { class: d % 2 ? '' : 'minor', x: xOf(10 ** -d), y: HEIGHT - BOTTOM + 22, 'text-anchor': d === 9 ? 'end' : 'middle' },
                       NAMES[d] ?? `10${superscript(-d)}`));
  return group;
}

const pathOf = (points, y) => points.map(([p, bits], i) => `${i ? 'L' : 'M'}${xOf(p).toFixed(1)} ${y(bits).toFixed(1)}`).join('');

/* No filter can take fewer than log2(1/p) bits. */
const leastPath = (y) => pathOf([[10 ** DECADES[0], -Math.log2(10 ** DECADES[0])], [10 ** DECADES[1], -DECADES[1] * Math.log2(10)]], y);

const frame = () => shape('clipPath', { id: 'chart-frame' },
  shape('rect', { x: LEFT, y: TOP - 2, width: WIDTH - LEFT - RIGHT + 4, height: HEIGHT - TOP - BOTTOM + 4 }));

function drawCurve({ kind, points, chosen }, y) {
  const sorted = [...points].sort((a, b) => b[0] - a[0]).filter(([p]) => p >= SORTED.at(-1));
  return shape('path', { class: `curve${chosen ? ' chosen' : ''}`, d: pathOf(sorted, y), style: `stroke: var(--k-${kind})` });
}

function drawCursor(curves, y, top, p) {
  const known = curves.map(({ kind, points }) => ({ kind, bits: bitsAt(points, p) }));
  return shape('g', { class: 'cursor' }, shape('path', { d: `M${xOf(p)} ${TOP}V${HEIGHT - BOTTOM}` }),
    ...known.filter(({ bits }) => bits !== null && bits <= top).map(({ kind, bits }) =>
      shape('circle', { cx: xOf(p), cy: y(bits), r: 5, style: `fill: var(--k-${kind})` })));
}

/* Draws the curves: [{ name, kind, points: [[p, bits], ...], chosen }]. */
function drawCurves(svg, curves, p) {
  const top = topOf(curves), y = yScale(top);
  const drawn = [...curves].sort((a, b) => a.chosen - b.chosen).map((curve) => drawCurve(curve, y));
  svg.replaceChildren(frame(), axes(y, top), shape('g', { 'clip-path': 'url(#chart-frame)' },
    shape('path', { class: 'least', d: leastPath(y) }), ...drawn));
  if (p >= SORTED.at(-1))
    svg.append(drawCursor(curves, y, top, p));
}

/* The bits at a rate, if they are known already. */
const bitsAt = (points, p) => points.find(([at]) => at === p)?.[1] ?? null;

function legend(list, curves, p) {
  const items = curves.map(({ name, kind, points, chosen }) => [bitsAt(points, p) ?? Infinity, tag('li',
    { class: chosen ? 'chosen' : '' }, tag('i', { style: `background: var(--k-${kind})` }), name, ' ',
    tag('b', {}, bitsAt(points, p) === null ? '–' : bitsText(bitsAt(points, p))))]);
  items.push([-Math.log2(p), tag('li', { class: 'floor' }, tag('i', {}), 'the least possible ', tag('b', {}, bitsText(-Math.log2(p))))]);
  list.replaceChildren(...items.sort((a, b) => a[0] - b[0]).map(([, item]) => item));
}

/* Makes the chart in 'holder'.  choose(p) is called when a rate is chosen in it.  Returns a
 * function that draws curves, at a rate. */
export function makeChart(holder, choose) {
  const svg = shape('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: '0', role: 'slider', id: 'chart',
                             'aria-label': 'Bits a key against the rate of false answers; arrows choose a rate',
                             'aria-valuemin': '-9', 'aria-valuemax': '-0.3' });
  const list = tag('ul', { class: 'legend' }), at = tag('p', { class: 'at' });
  let curves = [], p = 0.01, hover = null;
  const show = () => {
    const shown = hover ?? p;
    drawCurves(svg, curves, shown);
    legend(list, curves, shown);
    at.textContent = `Bits a key at a rate of ${rateText(shown)}`;
    svg.setAttribute('aria-valuenow', Math.log10(shown).toFixed(2));
    svg.setAttribute('aria-valuetext', `${rateText(shown)}: ${[...list.children].map((li) => li.textContent).join(', ')}`);
  };
  listen(svg, (rate, chosen) => {
    hover = chosen ? null : rate;
    if (chosen)
      p = rate;
    show();
    if (chosen)
      choose(rate);
  }, () => p);
  holder.replaceChildren(at, svg, list);
  return (its, rate) => {
    curves = its;
    p = rate;
    show();
  };
}

/* The rate behind or before one, of those that have a point. */
function neighbour(p, step) {
  const at = SORTED.indexOf(snap(p));
  return SORTED[Math.min(Math.max(at + step, 0), SORTED.length - 1)];
}

/* tell(p, chosen): a rate is pointed at, or chosen; null if none is any more. */
function listen(svg, tell, current) {
  const rateOf = (event) => {
    const box = svg.getBoundingClientRect();
    return snap(pOf((event.clientX - box.left) / box.width * WIDTH));
  };
  svg.addEventListener('pointermove', (event) => tell(rateOf(event), event.buttons === 1));
  svg.addEventListener('pointerleave', () => tell(null, false));
  svg.addEventListener('pointerdown', (event) => tell(rateOf(event), true));
  svg.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1, Home: -99, End: 99 }[event.key];
    if (!step)
      return;
    event.preventDefault();
    tell(neighbour(current(), step), true);
  });
}
