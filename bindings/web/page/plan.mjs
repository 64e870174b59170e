/* plan.mjs - the view Plan: how large a filter is, for so many keys, a rate and needs. */
import { RATES, makeChart } from './curve.mjs';
import { bitsText, byId, bytesText, rateText, tag, wholeText } from './draw.mjs';
import { RATE_MOST, readCount, readRate } from './numbers.mjs';
import { NEEDS, isChosen, linesText, otherJobs, planOf, promiseShare, refusal, wishOf } from './planner.mjs';
import { doSoon, writeLink } from './state.mjs';


const state = { n: 1e6, p: 0.001, needs: [] };
let drawChart = null, rows = [], curves = [];

/* ---- The answer ----------------------------------------------------------------------------- */

const FLAGS = { removable: '--removable', count: '--count', grow: '--grow', static: '--static' };

const commandOf = ({ n, p, needs }) =>
  ['perhaps plan', `-n ${n}`, `-p ${p}`, ...needs.map((need) => FLAGS[need]).filter(Boolean)].join(' ');

const nameOf = (plan) => (plan.base && plan.kind !== 'against' ? `${plan.kind} of ${plan.base}` : plan.kind);

function showAnswer(chosen, wish) {
  const answer = byId('answer');
  byId('command').textContent = commandOf(state);
  if (!chosen) {
    answer.replaceChildren(tag('p', { class: 'big' }, 'No filter can do that'), tag('p', { class: 'why' }, refusal(wish)));
    return;
  }
  answer.replaceChildren(
    tag('p', { class: 'big' }, tag('strong', {}, bytesText(chosen.bodyNbytes)), ' ', tag('span', {}, nameOf(chosen))),
    tag('p', { class: 'why' }, `${chosen.why}.`));
}

/* ---- The kinds, side by side ------------------------------------------------------------------ */

function rowOf(options, chosen, wish) {
  const plan = planOf(options);
  return { options, plan, chosen: isChosen(options, chosen), lines: linesText(plan, wish), share: null };
}

/* What grows has room for later, and so no such price. */
const isSized = (plan) => !plan.base && plan.fprUntil === plan.capacity;

const shareText = (share) => (share === null ? '…' : share < 0.0005 ? '0 %' : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`);

/* On a narrow screen a cell has its name above it. */
const cell = (name, text) => tag('td', { 'data-name': name }, text);

function drawRow({ plan, chosen, lines, share }) {
  const facts = { kind: plan.kind, base: plan.base ?? '', bytes: plan.bodyNbytes, bits: plan.bitsPerKey,
                  predicted: plan.fprPredicted, until: plan.fprUntil ?? '' };
  return tag('tr', { class: chosen ? 'chosen' : '', ...Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [`data-${name}`, value])) },
    tag('th', { scope: 'row' }, tag('i', { style: `background: var(--k-${plan.kind})` }), nameOf(plan),
        chosen ? tag('em', {}, 'chosen') : tag('small', {}, plan.why)),
    cell('memory', bytesText(plan.bodyNbytes)), cell('bits a key', bitsText(plan.bitsPerKey)), cell('lines', lines),
    cell('promise', isSized(plan) ? shareText(share) : '–'), cell('mean rate', rateText(plan.fprPredicted)));
}

function showRows() {
  rows.sort((a, b) => b.chosen - a.chosen || a.plan.bodyNbytes - b.plan.bodyNbytes);
  byId('kinds').replaceChildren(...rows.filter(isNear).map(drawRow));
  byId('more-kinds').replaceChildren(...rows.filter((row) => !isNear(row)).map(drawRow));
  showMore();
}

/* Chains are slow to plan: where nothing has to grow they are shown on demand, and never drawn. */
const grows = () => state.needs.includes('grow');
const isNear = ({ plan, chosen }) => chosen || plan.kind !== 'chain' || grows();

function showMore() {
  const button = byId('more'), isOpen = !byId('more-kinds').hidden;
  button.hidden = grows();
  button.textContent = isOpen ? 'Hide the chains' : 'Show chains, too';
  button.setAttribute('aria-expanded', isOpen);
}

function curveJobs(wish) {
  const drawn = rows.filter(isNear).filter(({ plan }, i, all) => all.findIndex((row) => row.plan.kind === plan.kind) === i);
  curves = drawn.map(({ options, plan, chosen }) =>
    ({ options, kind: plan.kind, name: nameOf(plan), chosen, points: [[wish.fpr, plan.bitsPerKey]] }));
  return inTurns(curves.map(pointJobs), () => drawChart(curves, wish.fpr));
}

const pointJobs = (curve) => RATES.filter((p) => p !== curve.options.fpr).map((p) => () => {
  const plan = planOf({ ...curve.options, fpr: p });
  if (plan)
    curve.points.push([p, plan.bitsPerKey]);
});

/* All curves grow at once; the chart is drawn after some points of each. */
function inTurns(lists, draw) {
  const OFTEN = 5, turns = [];
  for (let i = 0; lists.some((jobs) => i < jobs.length); i++) {
    turns.push(...lists.filter((jobs) => i < jobs.length).map((jobs) => jobs[i]));
    if (i % OFTEN === OFTEN - 1)
      turns.push(draw);
  }
  return [...turns, draw];
}

function shareJobs() {
  return rows.filter(({ plan }) => isSized(plan)).map((row) => () => {
    row.share = promiseShare(row.options);
    showRows();
  });
}

/* The chosen filter at once; then the other kinds, the price of the promise, and the curves. */
function answer() {
  const wish = wishOf(state), chosen = planOf(wish);
  showAnswer(chosen, wish);
  byId('kinds').setAttribute('aria-busy', 'true');
  rows = [];
  const others = chosen ? otherJobs(wish, grows() || !byId('more-kinds').hidden).map((job) => () => {
    rows.push(...job().map((options) => rowOf(options, chosen, wish)));
    showRows();
  }) : [showRows];
  doSoon('plan', [...others, () => {
    byId('kinds').setAttribute('aria-busy', 'false');
    const more = [...shareJobs(), ...curveJobs(wish)];
    doSoon('plan', [() => drawChart(curves, wish.fpr), ...more, () => { byId('chart').dataset.done = commandOf(state); }]);
  }]);
}

/* ---- The inputs ------------------------------------------------------------------------------- */

const sliderOf = (value) => Math.log10(value).toFixed(2);

function showInputs(except) {
  const values = { n: wholeText(state.n), p: rateText(state.p), 'n-slider': sliderOf(state.n), 'p-slider': -sliderOf(state.p) };
  for (const [id, value] of Object.entries(values))
    if (id !== except)
      byId(id).value = value;
  byId('n-slider').setAttribute('aria-valuetext', `${wholeText(state.n)} keys`);
  byId('p-slider').setAttribute('aria-valuetext', rateText(state.p));
  for (const need of NEEDS)
    byId(`need-${need}`).checked = state.needs.includes(need);
}

function change(values, from) {
  Object.assign(state, values);
  if (from)
    byId(from).removeAttribute('aria-invalid');
  showInputs(from);
  writeLink('plan', linkValues());
  answer();
}

const linkValues = () => ({ n: state.n, p: state.p, ...(state.needs.length ? { needs: state.needs.join(',') } : {}) });

function listenTo(id, name, read) {
  byId(id).addEventListener('input', (event) => {
    const value = read(event.target.value);
    if (value === null)
      event.target.setAttribute('aria-invalid', 'true');
    else
      change({ [name]: value }, id);
  });
  byId(id).addEventListener('change', () => {
    byId(id).removeAttribute('aria-invalid');
    showInputs();
  });
}

const twoDigits = (value) => Number(value.toPrecision(2));

/* Makes the view alive, once. */
export function startPlan() {
  drawChart = makeChart(byId('chart-holder'), (p) => change({ p }));
  listenTo('n', 'n', readCount);
  listenTo('p', 'p', readRate);
  listenTo('n-slider', 'n', (text) => twoDigits(10 ** Number(text)));
  listenTo('p-slider', 'p', (text) => Math.min(twoDigits(10 ** -Number(text)), RATE_MOST));
  byId('more').addEventListener('click', () => {
    byId('more-kinds').hidden = !byId('more-kinds').hidden;
    answer();
  });
  for (const need of NEEDS)
    byId(`need-${need}`).addEventListener('change', () =>
      change({ needs: NEEDS.filter((name) => byId(`need-${name}`).checked) }));
}

/* Shows what a link says. */
export function showPlan(values) {
  state.n = readCount(values.n ?? '') ?? state.n;
  state.p = readRate(values.p ?? '') ?? state.p;
  if (values.n !== undefined || values.needs !== undefined)
    state.needs = NEEDS.filter((need) => (values.needs ?? '').split(',').includes(need));
  drawChart([], state.p);
  change({});
}
