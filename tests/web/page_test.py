"""The page in a browser:  page_test.py PAGE SOURCE PERHAPS [PICTURE]

Drives Debian's Chromium: the three views by mouse and by keyboard, wide and narrow, light and dark;
plans beside those of the command line; contrast, labels, the order of the focus, overflow; and that
nothing is said on the console or asked for from the network.  Then the package.  PICTURE: writes one for the README.
"""
import base64
import functools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None

SKIP = 77
PATIENCE_S = 60
PAGE, SOURCE, PERHAPS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
VIEWS = ('plan', 'see', 'ask')
WIDE, NARROW = (1280, 900), (360, 740)
failures = []


def check(true, what):
    if not true:
        failures.append(what)
        print('not so:', what, file=sys.stderr)


class Browser:
    """One window with the page in it."""

    def __init__(self, folder):
        options = Options()
        for argument in ('--no-sandbox', '--headless=new', '--disable-gpu', '--disable-dev-shm-usage'):
            options.add_argument(argument)
        options.add_experimental_option('prefs', {'download.default_directory': str(folder)})
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.driver = webdriver.Chrome(service=Service(shutil.which('chromedriver')), options=options)
        self.run = self.driver.execute_script

    def wait(self, script, what):
        end = time.monotonic() + PATIENCE_S
        while not self.run(f'return {script}'):
            if time.monotonic() > end:
                raise SystemExit(f'waited for: {what}')
            time.sleep(0.02)

    def look(self, size, dark=False):
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': size[0], 'height': size[1], 'deviceScaleFactor': 1, 'mobile': False})
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'},
            {'name': 'prefers-reduced-motion', 'value': 'reduce'}]})

    def open(self, link=''):
        self.driver.get('about:blank')
        self.driver.get(PAGE.as_uri() + link)
        self.wait('document.body.dataset.ready', 'the page')

    def go(self, link):
        self.run('location.hash = arguments[0]', link)
        self.wait(f"!document.getElementById('view-{link.split('?')[0]}').hidden", link)

    def get(self, ident):
        return self.driver.find_element('id', ident)

    def text(self, ident):
        return self.run('return document.getElementById(arguments[0]).textContent', ident)

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def quiet(self, when):
        for entry in self.driver.get_log('browser'):
            check(False, f'{when}: the console says {entry["message"]}')
        check(self.run("return performance.getEntriesByType('resource').length") == 0, f'{when}: no request')


# ---- Plan ------------------------------------------------------------------------------------------

GRID = [('1000000', '0.001', ''), ('1000000000', '1e-6', ''), ('20', '0.3', ''),
        ('1000000', '0.01', 'count'), ('123456', '0.02', 'static'), ('10000', '1e-9', 'grow'),
        ('70000', '0.005', 'removable,grow')]
ROWS = """return [...document.querySelectorAll('.kinds tbody tr')].map((row) => ({ ...row.dataset,
                                                               chosen: row.className === 'chosen' }))"""


# In WebAssembly an address has four bytes, and the directories of an elastic filter consist of them.
TRUE_TO = {'elastic': 0.01}


def is_near(a, b, share):
    return abs(a - b) <= share * abs(b)


def check_row(what, kind, page, told):
    check(is_near(float(page['bytes']), told['body_bytes'], TRUE_TO.get(kind, 0)), f'{what}: bytes of {kind}')
    check(is_near(float(page['bits']), told['bits_per_key'], TRUE_TO.get(kind, 1e-6)), f'{what}: bits of {kind}')
    check(is_near(float(page['predicted']), told['fpr_predicted'], 1e-6), f'{what}: rate of {kind}')
    check(page['until'] == str('' if told['fpr_until'] is None else told['fpr_until']), f'{what}: until of {kind}')


def rows_of_page(browser, n, p, needs):
    browser.go(f'plan?n={n}&p={p}&needs={needs}')
    browser.wait(f"document.getElementById('command').textContent.startsWith('perhaps plan -n {n} -p ') && "
                 f"Number(document.getElementById('command').textContent.split(' ')[5]) === {p} && "
                 "document.getElementById('kinds').getAttribute('aria-busy') === 'false'", f'plan of {n} at {p}')
    return browser.run(ROWS), browser.text('command')


def test_plans(browser):
    browser.get('more').click()
    for n, p, needs in GRID:
        rows, command = rows_of_page(browser, n, p, needs)
        told = json.loads(subprocess.run([PERHAPS, *command.split()[1:], '--json'], check=True, capture_output=True).stdout)
        chosen = [row for row in rows if row['chosen']]
        check([row['kind'] for row in chosen] == [told['kind']], f'{command}: {told["kind"]}, not {chosen}')
        check_row(command, told['kind'], chosen[0], told)
        made = {(row['kind'], row['base']): row for row in rows if not row['chosen']}
        others = {(other['kind'], other.get('base') or ''): other for other in told['others_that_can']}
        check(made.keys() == others.keys(), f'{command}: {made.keys() ^ others.keys()}')
        for name in made.keys() & others.keys():
            check_row(command, name[0], made[name], others[name])
    browser.run("document.getElementById('more').click()")
    rows, _ = rows_of_page(browser, '1000', '0.01', 'threads')
    check(rows and not any(row['kind'] in ('strided', 'window') for row in rows), 'threads')


def test_plan_inputs(browser):
    browser.go('plan?n=1000000&p=0.001')
    field = browser.get('n')
    field.send_keys(Keys.CONTROL, 'a', Keys.NULL, '2.5M', Keys.TAB)
    check('n=2500000' in browser.run('return location.hash'), 'a number that is written')
    check(field.get_attribute('value') == '2,500,000', 'and shown in full')
    browser.get('p').send_keys(Keys.CONTROL, 'a', Keys.NULL, 'nonsense')
    check(browser.get('p').get_attribute('aria-invalid'), 'nonsense is marked')
    browser.press(Keys.TAB)
    slider = browser.get('n-slider')
    slider.send_keys(Keys.ARROW_RIGHT)
    check(browser.get('n').get_attribute('value') != '2,500,000', 'a slider by keyboard')
    browser.get('need-removable').send_keys(Keys.SPACE)
    check('needs=removable' in browser.run('return location.hash'), 'a need by keyboard')
    browser.run("document.getElementById('chart').focus()")
    browser.press(Keys.HOME, Keys.ARROW_RIGHT)
    check('p=0.2' in browser.run('return location.hash'), 'a rate by the keys of the chart')
    browser.wait("document.getElementById('chart').dataset.done === document.getElementById('command').textContent", 'the curves')
    check(browser.run("return document.querySelectorAll('#chart .curve').length") >= 4, 'curves')
    ActionChains(browser.driver).move_to_element(browser.get('chart')).perform()
    check('rate of' in browser.text('chart-holder'), 'numbers of the point below the mouse')


# ---- See -------------------------------------------------------------------------------------------

STORIES = ('bits', 'line', 'cuckoo', 'split', 'chain', 'ribbon')


def test_stories(browser):
    for story in STORIES:
        browser.go(f'see?story={story}&step=5')
        picture = "return document.getElementById('stage').innerHTML"
        browser.wait(f"location.hash.includes('{story}&step=5')", story)
        before, told = browser.run(picture), browser.text('told')
        browser.run("document.getElementById('stage').focus()")
        browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        check(browser.run(picture) != before, f'{story}: a step changes the picture')
        browser.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        check((browser.run(picture), browser.text('told')) == (before, told), f'{story}: back is where it was')
        check(browser.run("return document.querySelectorAll('#sentences p').length") == 3, f'{story}: three sentences')
        steps = browser.get('step').get_attribute('max')
        browser.go(f'see?story={story}&step={steps}')
        browser.wait(f"document.getElementById('step-text').textContent === '{steps} / {steps}'", f'the end of {story}')
        check(browser.run("return document.querySelector('#stage svg').getAttribute('aria-label').length") > 5, f'{story} in words')


def test_see_controls(browser):
    browser.go('see?story=cuckoo&step=71')
    browser.wait("document.querySelectorAll('#stage .arrow').length === 5", 'five arrows')
    browser.get('next').send_keys(Keys.ENTER)
    check('FULL' in browser.text('told') and 'No byte' in browser.text('changed'), 'the add that changes nothing')
    browser.get('back').send_keys(Keys.SPACE)
    check(browser.text('step-text') == '71 / 72', 'back')
    browser.run("document.querySelector('input[name=story]:checked').focus()")
    browser.press(Keys.ARROW_RIGHT)
    check('story=split' in browser.run('return location.hash'), 'another story by the arrows')
    browser.get('play').click()
    browser.wait("document.getElementById('step').value >= 2", 'playing')
    browser.get('play').click()
    check(browser.text('play') == 'Play', 'and pausing')


# ---- Ask -------------------------------------------------------------------------------------------

def test_ask_file(browser):
    browser.go('ask')
    browser.get('file').send_keys(str(SOURCE / 'tests/golden/chain.perhaps'))
    browser.wait("document.getElementById('what').textContent.includes('chain.perhaps')", 'a golden file')
    check('Parts' in browser.text('what') and 'Rate now' in browser.text('what'), 'what it is')
    browser.get('file').send_keys(str(SOURCE / 'README.md'))
    browser.wait("document.getElementById('ask-error').textContent.includes('README.md')", 'a file that is none')


def answer(browser, key):
    browser.get('question').clear()
    browser.get('question').send_keys(key)
    browser.wait("document.getElementById('answer-one').textContent", 'an answer')
    return browser.text('answer-one')


def test_ask_list(browser, folder):
    browser.go('ask')
    browser.get('list').clear()
    browser.get('list').send_keys('ada\ngrace\nedsger')
    browser.get('make').send_keys(Keys.ENTER)
    browser.wait("document.getElementById('what').textContent.includes('list of 3 keys')", 'a filter of a list')
    check(answer(browser, 'ada') == 'perhaps', 'ada')
    browser.get('questions-list').send_keys('ada\ngrace\neve')
    browser.get('ask-list').send_keys(Keys.ENTER)
    browser.wait("document.getElementById('answer-many').textContent", 'answers')
    check(browser.text('answer-many').startswith(('2 perhaps', '3 perhaps')), browser.text('answer-many'))
    file = folder / 'list.perhaps'
    browser.driver.find_element('css selector', '#what .button').click()
    end = time.monotonic() + PATIENCE_S
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)
    asked = subprocess.run([PERHAPS, 'query', '--label', file, '--key', 'grace'], capture_output=True, text=True)
    check(asked.stdout == 'perhaps\tgrace\n', f'the command line opens it: {asked.stdout}{asked.stderr}')
    remote = 'remote' in (SOURCE / 'bindings/web/perhaps.mjs').read_text()
    check(browser.run("return document.getElementById('away').hidden") != remote, 'an address where the binding has remote()')


# ---- For everybody -----------------------------------------------------------------------------------

NAMELESS = """return [...document.querySelectorAll('input, textarea, select, button, [tabindex], a')].filter((item) =>
  !(item.getAttribute('aria-label') || item.labels?.length || (/^(BUTTON|A)$/.test(item.tagName) && item.textContent.trim()))
  && !item.hidden).map((item) => item.outerHTML.slice(0, 80))"""

# Texts whose contrast to what is behind them is below 4.5, or 3 for large ones (WCAG 2, AA).
PALE = """
const rgb = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => { for (let e = element; e; e = e.parentElement) {
  const color = rgb(getComputedStyle(e).backgroundColor); if (color[3] === 1) return color; } return [255, 255, 255, 1]; };
const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const pale = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode());) {
  const element = node.parentElement, style = getComputedStyle(element);
  if (!node.data.trim() || !element.getClientRects().length || /SCRIPT|STYLE/.test(element.tagName) || element.closest('#stage svg')) continue;
  const color = rgb(element.closest('svg') ? style.fill : style.color), size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 600);
  const found = contrast(color, behind(element));
  if (found < (large ? 3 : 4.5)) pale.push(`${node.data.trim().slice(0, 30)}: ${found.toFixed(2)}`);
}
const root = getComputedStyle(document.documentElement), named = (name) => {
  const probe = document.body.appendChild(document.createElement('i')); probe.style.color = `var(--${name})`;
  const color = rgb(getComputedStyle(probe).color); probe.remove(); return color; };
const PAIRS = [['ink', 'tint', 4.5], ['on-hot', 'hot', 4.5], ['on-accent', 'accent', 4.5], ['ink', 'cell', 4.5], ['edge', 'paper', 3],
  ['edge', 'panel', 3], ['accent', 'cell', 3], ['hot', 'cell', 3],
  ...['blocked', 'bloom', 'cuckoo', 'strided', 'counting', 'ribbon', 'against', 'elastic', 'chain'].map((kind) => [`k-${kind}`, 'panel', 3])];
for (const [front, back, least] of PAIRS)
  if (contrast(named(front), named(back)) < least) pale.push(`${front} on ${back}: ${contrast(named(front), named(back)).toFixed(2)}`);
return pale;"""

ORDER = {
    'plan': ['n', 'n-slider', 'p', 'p-slider', 'need-removable', 'need-count', 'need-grow', 'need-static', 'need-threads',
             'chart', 'more'],
    'see': ['story', 'back', 'next', 'play', 'step', 'stage'],
    'ask': ['file', 'address', 'open', 'list', 'list-rate', 'list-later', 'make'],
}
FOCUSED = """const item = document.activeElement, seen = item.type === 'radio' ? item.nextElementSibling : item;
return [item.dataset?.view ?? (item.name || item.id), getComputedStyle(seen).outlineStyle]"""


def test_focus(browser, view):
    """The tabulator goes from the top to the bottom, and shows where it is."""
    browser.open(f'#{view}')
    if view == 'plan':
        browser.wait("document.getElementById('kinds').getAttribute('aria-busy') === 'false'", 'plans')
    want, found = ['plan', 'see', 'ask', *ORDER[view]], []
    for _ in want:
        browser.press(Keys.TAB)
        name, outline = browser.run(FOCUSED)
        found.append(name)
        check(outline != 'none', f'{view}: the focus is seen on {name}')
    check(found == want, f'{view}: the focus goes {found}')


def test_looks(browser, links):
    for size in (WIDE, NARROW):
        browser.look(size)
        browser.open()
        for link in links:
            browser.go(link)
            wide = browser.run('return document.documentElement.scrollWidth')
            check(wide <= size[0], f'{link}: {wide} pixels in a window of {size[0]}')
    for dark in (False, True):
        browser.look(WIDE, dark)
        for link in links:
            browser.go(link)
            check(not browser.run(PALE), f'{link}, {"dark" if dark else "light"}: pale {browser.run(PALE)}')
    check(not browser.run(NAMELESS), f'without a name: {browser.run(NAMELESS)}')
    browser.look(WIDE)


def test_old_browser(browser):
    """Without DecompressionStream the page unpacks by itself."""
    script = browser.driver.execute_cdp_cmd('Page.addScriptToEvaluateOnNewDocument', {'source': 'delete window.DecompressionStream'})
    browser.open('#plan?n=1000&p=0.01')
    check(browser.run('return !window.DecompressionStream') and 'kB' in browser.text('answer'), 'without DecompressionStream')
    browser.driver.execute_cdp_cmd('Page.removeScriptToEvaluateOnNewDocument', script)


# ---- The package ------------------------------------------------------------------------------------

# Opens a file, asks it and writes it again: [the answers, the bytes].
PACKAGE = """const [file, keys, done] = arguments;
(async () => {
  const perhaps = await import('./perhaps.mjs');
  await perhaps.load();
  const filter = perhaps.Filter.fromBytes(Uint8Array.from(atob(file), (c) => c.charCodeAt(0)));
  const bytes = filter.toBytes(), answers = [...filter.hasMany(keys)];
  done([answers, btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))]);
})().catch((error) => done([error.message, '']));"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_package(browser, folder):
    """Every golden file in the browser, beside the command line."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=PAGE.parent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.driver.get(f'http://127.0.0.1:{server.server_port}/package.json')
    goldens = sorted((SOURCE / 'tests/golden').glob('**/*.perhaps'))
    check(len(goldens) > 30, f'{len(goldens)} golden files')
    for golden in goldens:
        form = '10000000000%08d' if golden.stem == 'bitmap' else 'golden key %08d'
        keys = [form % n for n in range(200)]
        asked = subprocess.run([PERHAPS, 'query', '--label', '-q', golden], input='\n'.join(keys) + '\n',
                               capture_output=True, text=True)
        expected = [int(line.startswith('perhaps')) for line in asked.stdout.splitlines()]
        copy = folder / 'copy.perhaps'
        subprocess.run([PERHAPS, 'copy', '-q', golden, copy], check=True)
        answers, written = browser.driver.execute_async_script(PACKAGE, base64.b64encode(golden.read_bytes()).decode(), keys)
        check(answers == expected and sum(expected) >= 100, f'{golden}: answered otherwise: {str(answers)[:60]}')
        check(base64.b64decode(written) == copy.read_bytes(), f'{golden}: written otherwise')
        copy.unlink()
    server.shutdown()


def take_picture(browser, path):
    """The plan, for the README."""
    browser.look((1000, 760))
    browser.open('#plan?n=1000000&p=0.001')
    browser.wait("document.getElementById('chart').dataset.done", 'the curves')
    shot = browser.driver.execute_cdp_cmd('Page.captureScreenshot', {'clip': {'x': 0, 'y': 0, 'width': 1000, 'height': 846, 'scale': 0.8},
                                                                      'captureBeyondViewport': True})
    pathlib.Path(path).write_bytes(base64.b64decode(shot['data']))


def main():
    if not webdriver or not shutil.which('chromium') or not shutil.which('chromedriver'):
        print('skipped: it needs the packages python3-selenium, chromium and chromium-driver')
        return SKIP
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        browser = Browser(folder)
        try:
            if len(sys.argv) > 4:
                take_picture(browser, sys.argv[4])
                return 0
            for size in (WIDE, NARROW):
                browser.look(size)
                browser.open()
                if size == WIDE:
                    test_plans(browser)
                test_plan_inputs(browser)
                test_stories(browser)
                test_see_controls(browser)
                test_ask_file(browser)
                (folder / 'list.perhaps').unlink(missing_ok=True)
                test_ask_list(browser, folder)
                browser.quiet(f'{size[0]} pixels')
            test_looks(browser, ['plan', 'plan?n=10000&p=0.01&needs=grow', *(f'see?story={story}&step=9' for story in STORIES), 'ask'])
            for view in VIEWS:
                test_focus(browser, view)
            test_old_browser(browser)
            browser.quiet('the end')
            test_package(browser, folder)
        finally:
            browser.driver.quit()
    return 1 if failures else 0


sys.exit(main())
