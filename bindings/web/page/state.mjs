/* state.mjs - the link carries the state: #plan?n=1000000&p=0.001, #see?story=cuckoo&step=12. */

export const VIEWS = ['plan', 'see', 'ask'];

/* The view of a link and what it says. */
export function readLink(link = location.hash) {
  const [view, query = ''] = decodeURIComponent(link.replace(/^#/, '')).split('?');
  return { view: VIEWS.includes(view) ? view : 'plan', values: Object.fromEntries(new URLSearchParams(query)) };
}

export function linkOf(view, values = {}) {
  const query = Object.entries(values).map(([name, value]) => `${name}=${value}`).join('&');
  return `#${view}${query ? `?${query}` : ''}`;
}

/* Writes the link without a step in the history, and into the navigation. */
export function writeLink(view, values) {
  const link = linkOf(view, values);
  document.querySelector(`nav a[data-view="${view}"]`)?.setAttribute('href', link);
  try {
    if (readLink().view === view && location.hash !== link)
      history.replaceState(null, '', link);
  } catch {
    // Some browsers allow no more than a hundred such changes in half a minute: a later one does it.
  }
}

/* ---- Work in slices, so that the page answers meanwhile ------------------------------------- */

const SLICE_MS = 12;

/* Does the jobs one after the other, until the caller has others for the same name. */
const queues = new Map();

export function doSoon(name, jobs) {
  const mine = {};
  const left = [...jobs];
  queues.set(name, mine);
  const slice = () => {
    const end = performance.now() + SLICE_MS;
    while (left.length && queues.get(name) === mine && performance.now() < end)
      left.shift()();
    if (left.length && queues.get(name) === mine)
      setTimeout(slice);
  };
  setTimeout(slice);
}
