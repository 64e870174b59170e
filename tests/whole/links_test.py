"""The documents:  links_test.py SOURCE

Proves that every link in a page leads to a file that is there, and to a heading of it; that each
page of doc/ that is longer than a screen begins with links to all of its parts; that README.md and
doc/KINDS.md stay short; and that each command of the README's table "I want to ..." is an example
of the page that it names.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1]).resolve()
PAGES = [page for pattern in ('*.md', 'doc/**/*.md', 'bindings/**/*.md', 'examples/**/*.md')
         for page in sorted(SOURCE.glob(pattern))]
MOST_LINES = {'README.md': 180, 'doc/KINDS.md': 150}
SCREEN_LINES = 65
LINK = re.compile(r'\]\(([^()\s]+)\)')
wrong = []


def without_code(text):
    """The text without what stands in fences, between backquotes, or is indented as code."""
    text = re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S)
    return re.sub(r'`[^`\n]*`', lambda code: re.sub(r'[\[\]]', '', code[0]), text)


def anchor(heading):
    """The anchor that GitHub makes of a heading."""
    text = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading).replace('`', '')
    return '#' + re.sub(r'[^\w\- ]', '', text.lower()).replace(' ', '-')


def headings(text, level):
    return re.findall(rf'^{level} (.+)$', re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S), re.M)


def check_link(page, link):
    path, hash_sign, name = link.partition('#')
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or SOURCE not in [target, *target.parents]:
        wrong.append(f'{page.relative_to(SOURCE)}: {link}: there is no such file')
    elif hash_sign and '#' + name not in map(anchor, headings(target.read_text(), '#{1,6}')):
        wrong.append(f'{page.relative_to(SOURCE)}: {link}: there is no such heading')


def check_page(page):
    name, text = str(page.relative_to(SOURCE)), page.read_text()
    links = [link for link in LINK.findall(without_code(text)) if '://' not in link]
    for link in links:
        check_link(page, link)
    long = text.count('\n') > SCREEN_LINES and len(headings(text, '##')) > 1
    if name.startswith('doc/') and long:
        contents = LINK.findall(text[:text.index('\n## ')])
        for heading in headings(text, '##'):
            if anchor(heading) not in contents:
                wrong.append(f'{name}: its contents lack "{heading}"')
    if text.count('\n') > MOST_LINES.get(name, 1 << 30):
        wrong.append(f'{name}: more than {MOST_LINES[name]} lines')
    return len(links)


def check_wishes():
    table = (SOURCE / 'README.md').read_text().split('## I want to')[1].split('\n## ')[0]
    wishes = re.findall(r'^\|.*\| `([^`]+)` \| .*\]\(([^)#]+)', table, re.M)
    for command, path in wishes:
        examples = re.findall(r'^```sh$(.*?)^```$', (SOURCE / path).read_text(), re.M | re.S)
        if command not in ''.join(examples):
            wrong.append(f'README.md: "{command}" is no example of {path}')
    return len(wishes)


nlinks = sum(map(check_page, PAGES))
nwishes = check_wishes()
print(f'{len(PAGES)} pages, {nlinks} links, {nwishes} wishes')
print('\n'.join(wrong), end='\n' * bool(wrong))
sys.exit(bool(wrong) or len(PAGES) < 10 or nlinks < 100 or nwishes < 9)
