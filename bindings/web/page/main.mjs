/* main.mjs - the page: it unpacks the library, and shows the view that its link names. */
import * as perhaps from '../perhaps.mjs';
import { startAsk } from './ask.mjs';
import { byId } from './draw.mjs';
import { unpack } from './inflate.mjs';
import { showPlan, startPlan } from './plan.mjs';
import { pause, showSee, startSee } from './see.mjs';
import { VIEWS, readLink } from './state.mjs';

const SHOW = { plan: showPlan, see: showSee, ask: () => {} };

function showView() {
  const { view, values } = readLink();
  for (const name of VIEWS) {
    byId(`view-${name}`).hidden = name !== view;
    const link = document.querySelector(`nav a[data-view="${name}"]`);
    if (name === view)
      link.setAttribute('aria-current', 'page');
    else
      link.removeAttribute('aria-current');
  }
  pause();
  SHOW[view](values);
}

async function start() {
  const packed = byId('library');
  performance.mark('begun');
  const bytes = await unpack(packed.textContent.trim(), Number(packed.dataset.nbytes));
  performance.mark('unpacked');
  await perhaps.load(bytes);
  performance.mark('loaded');
  byId('version').textContent = perhaps.version();
  startPlan();
  startSee();
  startAsk();
  addEventListener('hashchange', showView);
  showView();
  performance.mark('answered');
  document.body.dataset.ready = 'yes';
}

start().catch((error) => {
  byId('trouble').hidden = false;
  byId('trouble').textContent = `This browser cannot run the library: ${error.message}`;
});
