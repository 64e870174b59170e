/* planner.mjs - what the library plans: the same call as 'perhaps plan'.
 *
 * A plan for a rate that is new takes some milliseconds, so all are kept. */
import * as perhaps from '../perhaps.mjs';

export const NEEDS = ['removable', 'count', 'grow', 'static', 'threads'];

const kept = new Map(), KEPT_MOST = 20000;

/* Returns a plan, or null if there is no such filter. */
export function planOf(options) {
  const name = JSON.stringify(options);
  if (kept.size > KEPT_MOST)
    kept.clear();
  if (!kept.has(name))
    kept.set(name, tryPlan(options));
  return kept.get(name);
}

function tryPlan(options) {
  try {
    return perhaps.plan(options);
  } catch {
    return null;
  }
}

/* Says why there is none. */
export function refusal(options) {
  try {
    perhaps.plan(options);
    return '';
  } catch (error) {
    return error.message;
  }
}

/* What the library is asked: n, p and needs. */
export const wishOf = ({ n, p, needs }) =>
  ({ capacity: n, fpr: p, ...Object.fromEntries(needs.map((need) => [need, true])) });

const same = (a, b) => a.kind === b.kind && JSON.stringify(a.geometry) === JSON.stringify(b.geometry);

/* One job for each kind that may do: it returns an array of options whose plans are there. */
export function otherJobs(wish, withChains) {
  const kinds = perhaps.kinds().filter((kind) => !kind.window && (withChains || kind.name !== 'chain'));
  return kinds.map((kind) => () => {
    const options = { ...wish, kind: kind.name }, plan = planOf(options);
    if (!plan)
      return [];
    if (!plan.base && plan.kind === kind.name)
      return [options];
    return perhaps.kinds().map((base) => ({ ...options, base: base.name })).filter(planOf);
  });
}

/* Whether these options say what was chosen without a kind. */
export const isChosen = (options, chosen) => same(planOf(options), chosen);

/* ---- What a question costs ------------------------------------------------------------------ */

/* The header files have no call for this; doc/KINDS.md has the same numbers. */
const LINES = {
  blocked: (geometry) => geometry.bands,
  counting: (geometry) => geometry.bands,
  bloom: (geometry) => geometry.key_bits,
  cuckoo: () => 2,
  strided: () => 2,
  elastic: () => 2,
  ribbon: () => 2,
  against: () => 4,
  bitmap: () => 1,
};

/* How many cache lines a question reads at most, as text. */
export function linesText(plan, wish) {
  if (!plan.base || plan.kind === 'against')
    return String(LINES[plan.kind]?.(plan.geometry) ?? '?');
  const layer = planOf({ capacity: wish.capacity, fpr: wish.fpr / 10, kind: plan.base });
  return `${layer ? LINES[plan.base](layer.geometry) : '?'} a layer`;
}

/* ---- What the promise costs ----------------------------------------------------------------- */

/* The rate is kept by this filter, and not by the average one.  For that a filter is planned for
 * a mean rate below the one that was asked.  So look for the mildest rate whose plan has, in the
 * mean, the rate that was asked: what its body has less is the price.  Returns a share. */
export function promiseShare(options) {
  const STEPS = 8, FAR = Math.log(8);
  const plan = planOf(options), p = options.fpr;
  let low = 0, high = Math.min(FAR, Math.log(0.95 / p)), least = plan.bodyNbytes;
  for (let i = 0; i < STEPS && high > low; i++) {
    const middle = (low + high) / 2, milder = planOf({ ...options, fpr: p * Math.exp(middle) });
    if (milder && milder.fprPredicted <= p) {
      least = Math.min(least, milder.bodyNbytes);
      low = middle;
    } else {
      high = middle;
    }
  }
  return 1 - least / plan.bodyNbytes;
}
