/* numbers.mjs - numbers and rates as people write them; null for what is none. */

const KEYS_MOST = 1e12, RATE_LEAST = 1e-12;
export const RATE_MOST = 0.5;

/* '1,000,000', '1M', '2.5G', '1e6'. */
export function readCount(text) {
  const [, number, unit] = /^\s*([0-9.]+(?:e\+?[0-9]+)?)\s*([kmgt]?)\s*$/i.exec(text.replace(/[,_' ]/g, '')) ?? [];
  const n = Math.round(Number(number) * { '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 }[(unit ?? '').toLowerCase()]);
  return n >= 1 && n <= KEYS_MOST ? n : null;
}

/* '0.1 %', '0.001', '1e-3', '1/1000'. */
export function readRate(text) {
  const [, number, per, percent] = /^\s*([0-9.]+(?:e-?[0-9]+)?)\s*(?:\/\s*([0-9.]+))?\s*(%?)\s*$/i.exec(text.replace(/,/g, '')) ?? [];
  const p = Number(number) / Number(per ?? 1) / (percent ? 100 : 1);
  return p >= RATE_LEAST && p <= RATE_MOST ? Number(p.toPrecision(12)) : null;
}
