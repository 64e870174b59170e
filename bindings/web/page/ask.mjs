/* ask.mjs - the view Ask: a file, or a list of keys, becomes a filter that is asked here. */
import * as perhaps from '../perhaps.mjs';
import { anatomy, fillOf } from './body.mjs';
import { bitsText, byId, bytesText, cellsPath, picture, rateText, shape, tag, wholeText } from './draw.mjs';

const PIECES = 1024, FILL_COLUMNS = 64, SHADES = 8, ANSWERS_MOST = 1000;

let filter = null, isAway = false;

/* ---- What it is ----------------------------------------------------------------------------- */

function factsOf({ stats, parts }, nbytes, note) {
  const facts = [
    ['Kind', stats.base ? `${stats.kind} of ${stats.base}` : stats.kind],
    ['Keys', `${wholeText(stats.keysDifferent || stats.keys)}, planned for ${wholeText(stats.capacity)}`],
    ['Rate now', `${rateText(stats.fprNow)}, asked ${rateText(stats.fpr)}`],
    ['Size', `${bytesText(nbytes)}; ${stats.bitsPerKey ? `${bitsText(stats.bitsPerKey)} bits a key` : 'no key yet'}`],
    ['In use', `${(stats.load * 100).toFixed(1)} % of its bits or slots`],
    ['Hash', stats.hash]];
  if (parts.length)
    facts.push(['Parts', parts.map((part) => wholeText(part.keys)).join(' + ') + ' keys']);
  if (note)
    facts.push(['Note', note]);
  return facts;
}

/* The body from its first byte to its last: the darker a cell, the more of its bits are set. */
function fillPicture(body) {
  const pieces = Math.max(1, Math.min(PIECES, body.length)), share = fillOf(body, pieces), shades = [];
  share.forEach((value, i) => (shades[Math.min(Math.floor(value * SHADES), SHADES - 1)] ??= []).push(i));
  const mean = share.reduce((sum, value) => sum + value, 0) / pieces;
  return picture(FILL_COLUMNS, Math.ceil(pieces / FILL_COLUMNS), `The body: ${(mean * 100).toFixed(1)} % of its bits are set`, 640,
    ...shades.map((cells, i) => shape('path', { class: 'cell set', style: `opacity: ${((i + 0.6) / SHADES).toFixed(2)}`,
                                                d: cellsPath(cells, FILL_COLUMNS, 0.08) })));
}

const joined = (bodies) => {
  const all = new Uint8Array(bodies.reduce((sum, body) => sum + body.length, 0));
  bodies.reduce((at, body) => (all.set(body, at), at + body.length), 0);
  return all;
};

const summaryOf = (kind) => perhaps.kinds().find(({ name }) => name === kind)?.summary ?? '';

function showFilter(name) {
  const seen = anatomy(filter), nbytes = filter.toBytes().length;
  isAway = false;
  byId('what').replaceChildren(
    tag('h3', {}, name), tag('p', { class: 'why' }, summaryOf(seen.stats.kind)),
    tag('dl', {}, ...factsOf(seen, nbytes, filter.note).map(([term, text]) => tag('div', {}, tag('dt', {}, term), tag('dd', {}, text)))),
    tag('div', { class: 'fill-picture' }, fillPicture(seen.bodies.length > 1 ? joined(seen.bodies.slice(1)) : seen.body)),
    tag('p', { class: 'note' }, 'Its body, from the first byte to the last: the stronger the colour, the more bits are set.'));
  openQuestions();
}

function openQuestions() {
  byId('questions').hidden = false;
  byId('answer-one').textContent = '';
  byId('answer-many').replaceChildren();
}

function take(made, name) {
  filter?.free?.();
  filter = made;
  byId('ask-error').textContent = '';
  showFilter(name);
}

function complain(error) {
  byId('ask-error').textContent = error.message;
}

async function openFile(file) {
  if (!file)
    return;
  try {
    take(perhaps.Filter.fromBytes(await file.arrayBuffer()), file.name);
  } catch (error) {
    complain(new Error(`${file.name}: ${error.message}`));
  }
}

/* ---- A filter of a list ----------------------------------------------------------------------- */

const linesOf = (text) => text.split(/\r?\n/).filter((text) => text !== '');

function makeFilter(keys, fpr, grows) {
  const NOTE = 'keys: lines';
  if (!grows)
    return perhaps.build(keys, { fpr, note: NOTE });
  const made = perhaps.Filter.create({ capacity: Math.max(keys.length, 1000), fpr, note: NOTE });
  made.addMany(keys);
  return made;
}

function makeOfList() {
  const keys = linesOf(byId('list').value), fpr = Number(byId('list-rate').value);
  try {
    if (keys.length === 0)
      throw new Error('The list is empty: write one key a line.');
    take(makeFilter(keys, fpr, byId('list-later').checked), `Your list of ${wholeText(keys.length)} keys`);
    const blob = new Blob([filter.toBytes()], { type: 'application/octet-stream' });
    const link = tag('a', { download: 'list.perhaps', class: 'button', href: URL.createObjectURL(blob) },
                     'Download list.perhaps');
    byId('what').append(link);
  } catch (error) {
    complain(error);
  }
}

/* ---- Questions -------------------------------------------------------------------------------- */

/* Keys are texts; but those of a bitmap are integers. */
const keyOf = (text) => (!isAway && filter.kind === 'bitmap' && /^\+?[0-9]+$/.test(text) ? BigInt(text) : text);

function valueText(key) {
  if (isAway || !filter.stats().geometry.value_bits)
    return '';
  const value = filter.get(key);
  return value === undefined ? '' : `, with the value ${value}`;
}

async function askOne() {
  const text = byId('question').value, answer = byId('answer-one');
  if (text === '' || !filter) {
    answer.textContent = '';
    return;
  }
  const key = keyOf(text), there = await filter.has(key);
  if (byId('question').value !== text)
    return;
  answer.className = there ? 'yes' : 'no';
  answer.textContent = there ? `perhaps${valueText(key)}` : 'certainly not';
}

async function askMany() {
  const keys = linesOf(byId('questions-list').value);
  const there = await filter.hasMany(keys.map(keyOf)), found = keys.filter((_, i) => there[i]);
  const more = found.length - ANSWERS_MOST;
  byId('answer-many').replaceChildren(
    tag('p', {}, tag('strong', {}, `${wholeText(found.length)} perhaps`), `, ${wholeText(keys.length - found.length)} certainly not.`),
    tag('ul', {}, ...found.slice(0, ANSWERS_MOST).map((key) => tag('li', {}, key)),
        more > 0 ? tag('li', {}, `and ${wholeText(more)} more`) : null));
}

const orComplain = (call) => async () => {
  try {
    await call();
  } catch (error) {
    complain(error);
  }
};

/* ---- A filter at an address ------------------------------------------------------------------- */

/* The binding may have remote(url), whose has() and hasMany() ask pieces of a file on a server. */
function startRemote() {
  if (!perhaps.remote)
    return;
  byId('away').hidden = false;
  byId('away').addEventListener('submit', async (event) => {
    event.preventDefault();
    const address = byId('address').value;
    try {
      const there = await perhaps.remote(address);
      filter?.free?.();
      filter = there;
      isAway = true;
      byId('ask-error').textContent = '';
      byId('what').replaceChildren(tag('h3', {}, address), tag('p', { class: 'why' },
        'A filter at an address: each question fetches the piece that it needs.'));
      openQuestions();
    } catch (error) {
      complain(error);
    }
  });
}

/* ---- The view --------------------------------------------------------------------------------- */

function startDrop(zone) {
  const mark = (on) => (event) => {
    event.preventDefault();
    zone.classList.toggle('over', on);
  };
  zone.addEventListener('dragover', mark(true));
  zone.addEventListener('dragleave', mark(false));
  zone.addEventListener('drop', (event) => {
    mark(false)(event);
    openFile(event.dataTransfer.files[0]);
  });
}

export function startAsk() {
  startDrop(byId('view-ask'));
  startRemote();
  byId('file').addEventListener('change', (event) => openFile(event.target.files[0]));
  byId('make').addEventListener('click', makeOfList);
  byId('question').addEventListener('input', orComplain(askOne));
  byId('ask-list').addEventListener('click', orComplain(askMany));
}
