"""What is drawn and listed in HACKING.md and doc/floors:  drawings_test.py SOURCE

A drawing consists of lines such as these, in which '+->' means that the function which begins
above the '+' calls the one behind the arrow:

    batch_each()                    core/many.c     goes round the ring
    +-> batch_hash()                core/many.c     ...
    |   +-> hasher_run()            base/hash.c     ...
    +-> step = ask_step()           core/many.c     'step' is a pointer to that function

Proves that each function is defined in the file behind it, and that each arrow is a call: the
text of the function has NAME(, or POINTER( for an arrow to 'POINTER = NAME()', and then some text
takes the address of NAME.  Paths begin in src/ or in the folder of all sources.

Proves also that the files are there which the tables "read | and learn" name, and that those of
HACKING.md have about as many lines as it says.
"""
import functools
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1]).resolve()
FOLDERS = ['src', 'cluster', 'module', 'cli']
LINE = re.compile(r'^(    [ |]*?)(\+-> )?(?:([\w.>-]+) = )?(\w+)\(\) +([\w./]+\.[ch])\b')
ARROW = re.compile(r'^    [ |]*\+->')
wrong = []


def without_comments(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*', '', text, flags=re.S)


@functools.lru_cache(maxsize=None)
def text_of(path):
    return without_comments(path.read_text())


@functools.lru_cache(maxsize=None)
def definitions(path):
    """The functions that a file defines, each with its text from '{' to '}'."""
    found, name = {}, None
    for line in text_of(path).split('\n'):
        if line == '}':
            name = None
        elif name:
            found[name] += line + '\n'
        elif re.match(r'[A-Za-z_]', line):
            head = line
        elif line == '{':
            name = re.sub(r'__attribute__\(\(.*?\)\)\)?', '', head)
            name = re.search(r'(\w+) ?\(', name)
            name = name[1] if name else None
            if name:
                found[name] = ''
    return found


@functools.lru_cache(maxsize=None)
def has_address_taken(name):
    """Whether some text has the name of a function, and does not call it."""
    pattern = re.compile(rf'\b{name}\b(?! ?\()')
    return any(pattern.search(text_of(path)) for folder in FOLDERS
               for path in (SOURCE / folder).rglob('*.[ch]'))


def find(path):
    return next((file for file in (SOURCE / 'src' / path, SOURCE / path) if file.exists()), None)


def check_call(where, caller, pointer, name):
    caller_name, text = caller
    called = pointer or name
    if not re.search(rf'(?<![\w]){re.escape(called)} ?\(', text):
        wrong.append(f'{where}: {caller_name}() does not call {called}(): draw what it calls now')
    if pointer and not has_address_taken(name):
        wrong.append(f'{where}: nothing sets a pointer to {name}(): draw what {pointer} is now')


def check_drawing(page, first, lines):
    """Checks the lines of a block.  Returns how many functions it has."""
    above = {}  # by the column where it begins: the last function, and its text
    count = 0
    for number, line in enumerate(lines, first):
        where = f'{page}:{number}'
        match = LINE.match(line)
        if not match:
            if ARROW.match(line):
                wrong.append(f'{where}: an arrow to no "name()  folder/file.c"')
            continue
        lead, arrow, pointer, name, path = match.groups()
        count += 1
        file = find(path)
        text = definitions(file).get(name) if file else None
        if text is None:
            wrong.append(f'{where}: {path} defines no {name}(): tell where it is now')
        elif arrow and len(lead) not in above:
            wrong.append(f'{where}: no function begins above the arrow to {name}()')
        elif arrow and above[len(lead)]:
            check_call(where, above[len(lead)], pointer, name)
        column = len(lead) + len(arrow or '')
        above = {c: f for c, f in above.items() if c < column}
        above[column] = (name, text) if text is not None else None
    return count


def check_page(page):
    """Returns how many drawings a page has, and how many functions these have."""
    lines = (SOURCE / page).read_text().split('\n')
    drawings = functions = 0
    first = 0
    for number, line in enumerate(lines + ['']):
        if line.startswith('    '):
            continue
        block = lines[first:number]
        if any(ARROW.match(each) for each in block):
            drawings += 1
            functions += check_drawing(page, first + 1, block)
        first = number + 1
    return drawings, functions


def check_reading(page):
    """Checks the files that a page tells to read."""
    text = (SOURCE / page).read_text()
    tables = re.findall(r'^\| read \| and learn \|\n.*\n((?:\|.*\n)+)', text, re.M)
    names = [name for row in ''.join(tables).split('\n') if row
             for name in re.findall(r'`([^`]+)`', row.split('|')[1])]
    folders = [SOURCE / folder for folder in ('', 'src/store', 'cluster', 'module', 'cli')]
    files = [next((f / name for f in folders if (f / name).exists()), None) for name in names]
    wrong.extend(f'{page}: {name}: there is no such file'
                 for name, file in zip(names, files) if not file)
    said = re.search(r'(\w+) files, some ([\d,]+) lines', text)
    lines = sum(file.read_text().count('\n') for file in files if file)
    words = ['Eight', 'Nine', 'Ten', 'Eleven', 'Twelve', 'Thirteen']
    if said and (words.index(said[1]) + 8 != len(names) or
                 abs(int(said[2].replace(',', '')) - lines) > 100):
        wrong.append(f'{page}: there are {len(names)} files to read, of {lines} lines')
    if not names:
        wrong.append(f'{page}: it tells no file to read')


pages = ['HACKING.md'] + sorted(str(p.relative_to(SOURCE)) for p in SOURCE.glob('doc/floors/*.md'))
counts = [check_page(page) for page in pages]
for each in pages:
    check_reading(each)
ndrawings, nfunctions = (sum(column) for column in zip(*counts))
print(f'{ndrawings} drawings, {nfunctions} functions')
print('\n'.join(wrong), end='\n' * bool(wrong))
sys.exit(bool(wrong) or ndrawings < 3 or nfunctions < 30)
