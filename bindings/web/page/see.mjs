/* see.mjs - the view See: small filters, key by key, forward and back.
 *
 * A state is the bytes that toBytes() gave.  A step opens the bytes of the state before it, does
 * one thing to that filter, and keeps what it became; a step back opens the older bytes. */
import * as perhaps from '../perhaps.mjs';
import { anatomy, bytesChanged } from './body.mjs';
import { byId, tag, wholeText } from './draw.mjs';
import { readLink, writeLink } from './state.mjs';
import { bits, line } from './stories_lines.mjs';
import { layers, moves, splits } from './stories_slots.mjs';
import { equations } from './stories_built.mjs';

const STORIES = [bits, line, moves, splits, layers, equations];
const PACE_MS = 650;

let story = null, states = [], at = 0, timer = null;

/* ---- States --------------------------------------------------------------------------------- */

function begin(chosen) {
  story = chosen;
  const filter = story.make();
  states = [{ bytes: filter.toBytes(), told: { text: story.start } }];
  filter.free();
  at = 0;
}

/* Does the step behind the last state that is known. */
function extend() {
  const filter = perhaps.Filter.fromBytes(states.at(-1).bytes);
  const told = story.steps[states.length - 1](filter);
  states.push({ bytes: filter.toBytes(), told });
  filter.free();
}

function look(index) {
  const filter = perhaps.Filter.fromBytes(states[index].bytes);
  const seen = { ...anatomy(filter), told: states[index].told, index };
  filter.free();
  return seen;
}

function goTo(step) {
  at = Math.min(Math.max(step, 0), story.steps.length);
  while (states.length <= at)
    extend();
  show();
}

/* ---- The stage ------------------------------------------------------------------------------ */

function changeText(nbytes) {
  if (at === 0)
    return 'No key is in.';
  return nbytes === 0 ? 'No byte of the body has changed.'
                      : `${wholeText(nbytes)} ${nbytes === 1 ? 'byte' : 'bytes'} of the body changed.`;
}

function show() {
  const now = look(at), before = at ? look(at - 1) : now;
  const nbytes = now.bodies.reduce((sum, body, i) => sum + bytesChanged(before.bodies[i] ?? new Uint8Array(), body), 0);
  byId('stage').replaceChildren(story.draw(before, now));
  byId('told').replaceChildren(tag('span', { class: `said ${now.told.tone ?? ''}` }, now.told.text));
  byId('changed').textContent = story.still ?? changeText(nbytes);
  byId('step').value = at;
  byId('step').setAttribute('aria-valuetext', `${at} of ${story.steps.length}: ${now.told.text}`);
  byId('step-text').textContent = `${at} / ${story.steps.length}`;
  byId('back').setAttribute('aria-disabled', at === 0);
  byId('next').setAttribute('aria-disabled', at === story.steps.length);
  writeLink('see', { story: story.id, step: at });
}

function showStory() {
  byId('sentences').replaceChildren(...story.sentences.map((sentence) => tag('p', {}, sentence)));
  byId('step').max = story.steps.length;
  for (const input of document.querySelectorAll('input[name=story]'))
    input.checked = input.value === story.id;
}

/* ---- Playing -------------------------------------------------------------------------------- */

export function pause() {
  clearInterval(timer);
  timer = null;
  byId('play').textContent = 'Play';
}

function play() {
  if (timer)
    return pause();
  if (at === story.steps.length)
    goTo(0);
  byId('play').textContent = 'Pause';
  timer = setInterval(() => {
    goTo(at + 1);
    if (at === story.steps.length)
      pause();
  }, PACE_MS);
}

/* A step that a person takes ends the playing. */
function walk(step) {
  pause();
  goTo(step);
}

function choose(id, step = 0) {
  pause();
  begin(STORIES.find((each) => each.id === id) ?? STORIES[0]);
  showStory();
  goTo(step);
}

export function startSee() {
  byId('stories').append(...STORIES.map(({ id, title }) => tag('label', {},
    tag('input', { type: 'radio', name: 'story', value: id }), tag('span', {}, title))));
  byId('stories').addEventListener('change', (event) => choose(event.target.value));
  byId('back').addEventListener('click', () => walk(at - 1));
  byId('next').addEventListener('click', () => walk(at + 1));
  byId('play').addEventListener('click', play);
  byId('step').addEventListener('input', (event) => walk(Number(event.target.value)));
  byId('stage').addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      event.preventDefault();
      walk(at + step);
    }
  });
}

/* Shows what a link says, unless that is there. */
export function showSee(values) {
  const step = Number.parseInt(values.step ?? 0, 10) || 0;
  if (!story || (values.story ?? story.id) !== story.id)
    choose(values.story, step);
  else if (values.step !== undefined && step !== at)
    walk(step);
  else if (readLink().view === 'see')
    show();
}
