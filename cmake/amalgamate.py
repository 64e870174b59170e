#!/usr/bin/env python3
"""Writes the library as two files, perhaps.c and perhaps.h:  amalgamate.py SOURCE OUT [COMPILER]

All files of src/ become one, in the order of src/LAYERS.  What is static in one file may have the
name of something in another: then it gets the name of its file behind it.  The loops, which are
compiled once for each instruction set, stand there once: perhaps.c includes itself for each.

Left out are journals (src/store/no_journal.c stands for them) and layouts for servers.
"""
import re
import subprocess
import sys
from pathlib import Path

SOURCE, OUT = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
SRC, INCLUDE = SOURCE / "src", SOURCE / "include"

PUBLIC = ["perhaps", "perhaps_plan", "perhaps_file", "perhaps_sets", "perhaps_window",
          "perhaps_build", "perhaps_embed", "perhaps_remote", "perhaps_fast"]
LEFT_OUT = {"store/beside.c", "store/checkpoint.c", "store/commit.c", "store/journal.c",
            "store/record.c", "store/recover.c", "layout/layout.c", "kinds/cpu/loops_scalar.c",
            "kinds/cpu/loops_avx2.c", "kinds/cpu/loops_avx512.c", "kinds/cpu/loops_neon.c"}

# The loops of each unit: what is compiled with which instructions, in turn.
LOOPS = ["slots/wide_slots.h", "built/ribbon_loops.h", "built/ribbon_solve.h", "lines/bloom_loops.h",
         "lines/cells_loops.h", "lines/fold_loops.h", "lines/lines_loops.h",
         "lines/lines_rates.h", "slots/elastic_loops.h", "slots/slot_loops.h"]

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*) | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*') |
    (?P<name>[A-Za-z_]\w*) | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*) | (?P<arrow>->) |
    (?P<space>\s+|\\\n) | (?P<other>.)""", re.S | re.X)


def tokens_of(text):
    return [(m.lastgroup, m.group()) for m in TOKEN.finditer(text)]


def without_comments(text):
    """Without comments, lines that are empty then, and spaces at the end."""
    text = "".join(t for kind, t in tokens_of(text) if kind != "comment")
    lines = [line.rstrip() for line in text.split("\n")]
    return "\n".join(line for line in lines if line) + "\n"


# ---- What a file has ---------------------------------------------------------------------------

def braces_of(text):
    """The file without what stands in braces of its functions and initialisers."""
    out, depth = [], 0
    for kind, t in tokens_of(text):
        if kind == "other" and t == "}":
            depth -= 1
        if depth == 0:
            out.append(t if kind != "comment" else " ")
        if kind == "other" and t == "{":
            depth += 1
    return "".join(out)


def directives_out(text):
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", text, flags=re.M)


def enum_constants(text):
    names = []
    for body in re.findall(r"^(?:static const )?enum\b[^{;()]*\{(.*?)\}", text, re.S | re.M):
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        names += re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)", body)
    return names


def struct_enum_constants(text):
    """Those of enums within structs."""
    names = []
    for body in re.findall(r"^[ \t]+enum\b[^{;()]*\{([^{}]*)\}", text, re.S | re.M):
        names += re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)", re.sub(r"/\*.*?\*/", "", body, flags=re.S))
    return names


def file_scope(text):
    """Returns the ordinary names, those of tags, and those of macros that a file defines; of the
    ordinary ones a second set has those that are not static."""
    bare = directives_out(text)
    outer = braces_of(bare)
    statics, tags, outside = set(enum_constants(bare)), set(), set()
    for statement in re.split(r"[;}]", outer):
        statement = statement.strip()
        if not statement:
            continue
        tag = re.match(r"(?:static const |static |const )?(?:struct|union|enum)\s+(\w+)\s*\{", statement)
        if tag:
            tags.add(tag.group(1))
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)\s*(?=[A-Za-z_*]|$)", "", statement, flags=re.S)
        head = re.sub(r"_Static_assert\s*\(.*", "", head, flags=re.S)
        head = re.split(r"=|\{(?!\s*$)", head)[0]
        found = None
        call = re.search(r"([A-Za-z_]\w*)\s*\(", head)
        if call and not head.startswith("typedef"):
            found = call.group(1)
        else:
            names = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[.*?\]|\(.*?\)|\{", " ", head, flags=re.S))
            if head.startswith("typedef"):
                names = re.findall(r"([A-Za-z_]\w*)\s*(?:\(|$)", head.strip())[:1] or names
                found = names[-1] if names else None
            elif len(names) > 1 and not (tag and len(names) <= 2 + head.startswith("static")):
                found = names[-1]
        if found and found not in ("struct", "enum", "union"):
            is_static = re.match(r"(static|typedef)\b", statement) or "\nstatic" in statement
            (statics if is_static else outside).add(found)
        for more in re.findall(r",\s*\*?([A-Za-z_]\w*)\s*(?=,|$|=|\[)", head) if not call else []:
            (statics if statement.startswith("static") else outside).add(more)
    macros = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
    return statics, tags, macros, outside


# ---- Names -------------------------------------------------------------------------------------

def rename(text, names, tags, word):
    """Replaces the file's own names.  Members of structs have names of their own, which stay."""
    out, before, within = [], [], []
    tokens = tokens_of(text)
    significant = [i for i, (kind, t) in enumerate(tokens) if kind not in ("space", "comment")]
    place = {index: n for n, index in enumerate(significant)}
    for i, (kind, t) in enumerate(tokens):
        if i not in place:
            out.append(t)
            continue
        n = place[i]
        last = tokens[significant[n - 1]][1] if n else ""
        second = tokens[significant[n - 2]][1] if n > 1 else ""
        following = tokens[significant[n + 1]][1] if n + 1 < len(significant) else ""
        if t == "{":
            opens = last in ("struct", "union") or second in ("struct", "union")
            within.append("struct" if opens else "block")
        elif t == "}" and within:
            within.pop()
        new = t
        if kind == "name":
            in_struct = within and within[-1] == "struct"
            if last in ("struct", "union", "enum"):
                new = word(t) if t in tags else t
            elif t in names and last not in (".", "->", "goto"):
                member = in_struct and (following in (";", ",", ":", "[") or
                                        (last == "*" and following == ")") or
                                        (following == "(" and last != "("))
                type_of_member = in_struct and following == "*"
                new = t if member and not type_of_member else word(t)
        out.append(new)
    return "".join(out)


def is_private(statement):
    """Whether it declares or defines what other files may use, and users may not."""
    if re.match(r"(static|typedef|_Static_assert|#)|(struct|union|enum)\s*\w*\s*[{;]", statement):
        return False
    head = re.split(r"[={]", statement)[0]
    called = re.search(r"([A-Za-z_]\w*)\s*(?:\(|\[|;|,|$)", head.strip())
    return "PERHAPS_API" not in head and bool(called) and not re.search(r"\bperhaps_\w+\s*\(", head)


def private(text):
    """Has PERHAPS_PRIVATE stand before all of that: 'static', but for the library's own tests."""
    out, statement, depth, lines = [], [], 0, text.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        if depth == 0 and line.startswith("#"): # with the lines that belong to it
            while lines[i].endswith("\\"):
                (statement if statement else out).append(lines[i])
                i += 1
            (statement if statement else out).append(lines[i])
            i += 1
            continue
        if depth == 0 and not statement and re.fullmatch(r"[A-Z_]+\(.*\)|\s*|typedef .*;", line):
            out.append(line)
            i += 1
            continue
        statement.append(line)
        bare = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', "", line)
        depth += bare.count("{") - bare.count("}")
        if depth == 0 and re.search(r"[;}]$", bare):
            whole = "\n".join(statement)
            if is_private(re.sub(r"^#.*\n", "", whole, flags=re.M)):
                first = next(n for n, l in enumerate(statement) if not l.startswith("#"))
                statement[first] = "PERHAPS_PRIVATE " + re.sub(r"^extern ", "", statement[first])
            out += statement
            statement = []
        i += 1
    return "\n".join(out + statement)


# ---- Headers -----------------------------------------------------------------------------------

class Writer:
    def __init__(self):
        self.text, self.included, self.system = [], set(), []

    def header(self, path):
        """A header with a guard, once."""
        path = path.resolve()
        if path in self.included:
            return
        self.included.add(path)
        text = path.read_text()
        guard = re.search(r"^#ifndef (\w+_H)\n#define \1\n", text, re.M)
        if not guard:
            sys.exit(f"amalgamate: {path} has no guard")
        body = text[guard.end():].rstrip()
        if not body.endswith("#endif"):
            sys.exit(f"amalgamate: {path} does not end with its guard")
        self.add(self.resolve(body[:-len("#endif")], path))

    def resolve(self, text, path):
        """Inlines what the text includes."""
        out, lines = [], without_comments(text).split("\n")
        for line in lines:
            local = re.match(r'\s*#include "(.*)"', line)
            public = re.match(r"\s*#include <(perhaps\w*)\.h>", line)
            if local:
                target = (path.parent / local.group(1)).resolve()
                if str(target).endswith(LOOPS[0]):
                    continue # stands first of the loops
                elif is_loops(target):
                    out.append(self.resolve(target.read_text(), target).rstrip())
                else:
                    out = self.before(out, target)
            elif public and public.group(1) != "perhaps_cluster": # which is left out
                if public.group(1) not in PUBLIC:
                    out = self.before(out, (INCLUDE / (public.group(1) + ".h")).resolve())
            else:
                out.append(line)
        return "\n".join(out)

    def before(self, lines, header):
        """Writes a header behind the lines before it, unless it is there."""
        if header in self.included:
            return lines
        self.add("\n".join(lines) + "\n")
        self.header(header)
        return []

    def add(self, text):
        if text.strip():
            self.text.append(text.strip("\n") + "\n")


def is_loops(path):
    """Whether a header is compiled for each instruction set, or has no guard for other reasons."""
    return not re.search(r"^#ifndef \w+_H$", path.read_text(), re.M) or \
        str(path).endswith(LOOPS[0])


# ---- The files ---------------------------------------------------------------------------------

def in_order():
    """The sources, the lowest layer first."""
    layers = [line.split() for line in (SRC / "LAYERS").read_text().split("\n")
              if line and not line.startswith("#")]
    number = {name: i for i, words in enumerate(layers) for name in words}
    files = [p for p in sorted(SRC.rglob("*.c")) if str(p.relative_to(SRC)) not in LEFT_OUT]
    last = len(layers) # behind all else: windows.h has macros for many a name
    return sorted(files, key=lambda p: last if p.stem.startswith("windows")
                  else number.get(p.parent.name, number.get(p.stem, 0)))


def own_text(path, writer):
    """The text of a source, without what it includes that is written already."""
    text = re.sub(r"^#define (_GNU_SOURCE|_DEFAULT_SOURCE|_DARWIN_C_SOURCE|_CRT_RAND_S|XXH_INLINE_ALL)\b.*\n",
                  "", path.read_text(), flags=re.M)
    text = writer.resolve(text, path)
    return text.replace("#include <windows.h>\n",
                        "#define SIZE SIZE_OF_WINDOWS\n#include <windows.h>\n#undef SIZE\n")


def loops_names(compiler):
    """All that the loops define, whatever the instructions: read behind the preprocessor, which
    makes some of these names."""
    names = set()
    for cpu in ("scalar", "avx2", "avx512", "neon"):
        text = subprocess.run([compiler, "-E", "-D_GNU_SOURCE", f"-I{INCLUDE}",
                               str(SRC / "kinds/cpu" / f"loops_{cpu}.c")],
                              stdout=subprocess.PIPE, check=True, text=True).stdout
        own, keeps = [], False
        for line in text.split("\n"):
            marker = re.match(r'# \d+ "(.*?)"', line)
            if marker:
                path = Path(marker.group(1))
                keeps = path.suffix == ".h" and path.is_file() and SRC in path.resolve().parents and is_loops(path)
            elif keeps:
                own.append(line)
        text = "\n".join(own)
        statics, tags, _, outside = file_scope(text)
        names |= (statics | tags | outside) - set(re.findall(r"(?:\.|->)\s*([A-Za-z_]\w*)", text))
    return sorted(names)


def loops_section():
    """The loops: each folder's text under the bit of its number."""
    section = ""
    for i, name in enumerate(LOOPS):
        writer = Writer()
        writer.included = set(p.resolve() for p in SRC.rglob("*.h"))
        text = writer.resolve((SRC / "kinds" / name).read_text(), SRC / "kinds" / name)
        guard = re.search(r"^#ifndef (\w+_H)\n#define \1\n", text, re.M)
        if guard:
            text = text[guard.end():].rstrip()[:-len("#endif")]
        macros = sorted(set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M)))
        section += f"#if UNIT_PARTS & {1 << i}\n" + "".join(f"#undef {m}\n" for m in macros)
        section += text.rstrip() + "\n#endif\n"
    return section


def target(clang, gcc, inside):
    return (f'#if defined(__clang__)\n#pragma clang attribute push(__attribute__((target("{clang}"))), '
            f'apply_to = function)\n#else\n#pragma GCC push_options\n#pragma GCC target("{gcc}")\n#endif\n'
            f"{inside}#if defined(__clang__)\n#pragma clang attribute pop\n#else\n"
            f"#pragma GCC pop_options\n#endif\n")


def unit(name, parts, extra=""):
    bits = sum(1 << LOOPS.index(p) for p in parts)
    return f"{extra}#undef UNIT\n#define UNIT {name}\n#undef UNIT_PARTS\n#define UNIT_PARTS {bits}\n" \
           f"#include PERHAPS_ITSELF\n"


def table(cpu):
    """What stands at the end of the file of a unit."""
    text = (SRC / "kinds/cpu" / f"loops_{cpu}.c").read_text()
    return "PERHAPS_PRIVATE " + re.search(r"^const struct unit_loops .*?^\};\n", text,
                                          re.S | re.M).group()


def flags(**has):
    return "".join(f"#undef CPU_HAS_{k}\n#define CPU_HAS_{k} {v}\n" for k, v in has.items())


def units(names):
    vectors = "avx2,bmi2"
    wide = vectors + ",avx512f,avx512bw,avx512dq,avx512vl"
    lines = ["lines/lines_loops.h", "lines/lines_rates.h"]
    slots = ["slots/elastic_loops.h", "slots/slot_loops.h"]
    out = "".join(f"#define {name} U({name})\n" for name in names)
    out += "#if defined(__x86_64__)\n#undef LOOP_INLINE\n#define LOOP_INLINE inline\n#endif\n"
    out += unit("scalar", LOOPS) + table("scalar")
    out += "#undef LOOP_INLINE\n#define LOOP_INLINE ALWAYS_INLINE\n#if defined(__x86_64__)\n"
    out += flags(AVX2=1) + target(vectors, vectors, unit("avx2", LOOPS)) + table("avx2")
    out += flags(AVX512=1) + target(wide, wide, unit("avx512", lines))
    counting = wide + ",avx512vpopcntdq"
    out += target(counting, counting, unit("avx512", ["built/ribbon_loops.h"])) + table("avx512")
    out += "#elif defined(__aarch64__)\n" + flags(NEON=1) + unit("neon", lines + slots)
    out += table("neon") + "#endif\n"
    return out + "".join(f"#undef {name}\n" for name in names)


# ---- Both files --------------------------------------------------------------------------------

def public_header():
    out = ["/* perhaps.h - Is this key in the set?  Certainly not, or perhaps.  See perhaps.c. */\n"
           "#ifndef PERHAPS_H\n#define PERHAPS_H\n"]
    for name in PUBLIC:
        text = (INCLUDE / f"{name}.h").read_text()
        guard = re.search(r"^#ifndef (\w+_H)\n#define \1\n", text, re.M)
        body = text[:guard.start()] + text[guard.end():].rstrip()[:-len("#endif")]
        out.append(re.sub(r"^#include <perhaps.*\n", "", body, flags=re.M).rstrip() + "\n")
    return "\n".join(out) + "\n#endif\n"


def main():
    version = re.search(r'PERHAPS_VERSION +"(.*?)"', (INCLUDE / "perhaps.h").read_text()).group(1)
    files, headers, sources = in_order(), Writer(), []
    for path in [INCLUDE / "perhaps_live.h", INCLUDE / "perhaps_layout.h", *sorted(SRC.rglob("*.h"))]:
        if not is_loops(path):
            headers.header(path)
    shared = "\n".join(headers.text)
    taken_names, taken_tags, _, outside = file_scope(shared)
    taken_names |= outside | set(struct_enum_constants(shared))
    for path in files:
        writer = Writer()
        writer.included = set(headers.included)
        text = own_text(path, writer)
        sources.append((path, text, file_scope(text)))
    count, tag_count = {}, {}
    for _, _, (statics, tags, _, _) in sources:
        for name in statics:
            count[name] = count.get(name, 0) + 1
        for name in tags:
            tag_count[name] = tag_count.get(name, 0) + 1
    everywhere = set(taken_names)
    for _, _, (_, _, _, globals_) in sources:
        everywhere |= globals_
    header_macros = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", shared, re.M))
    out = [TOP.format(version=version), "#ifndef UNIT\n", BEGIN, private(shared)]
    bodies = []
    for path, text, (statics, tags, macros, globals_) in sources:
        names = {n for n in statics if n not in globals_ and (count[n] > 1 or n in everywhere)}
        own_tags = {t for t in tags if tag_count[t] > 1 or t in taken_tags}
        text = rename(text, names, own_tags, lambda t, stem=path.stem: f"{t}_of_{stem}")
        ends = "".join(f"#undef {m}\n" for m in sorted(macros - header_macros))
        where = path.relative_to(SRC)
        bodies.append((where, f"\n/* ---- {where} ---- */\n\n{private(text.strip())}\n{ends}"))
    for where, body in bodies:
        if str(where) == "kinds/cpu/cpu_loops.c":
            out.append("\n/* ---- The loops, for each instruction set ---- */\n\n" + units(loops_names(sys.argv[3] if len(sys.argv) > 3 else "cc")))
        out.append(body)
    out.append("#else\n\n/* ---- The loops ---- */\n\n" + loops_section() + "#endif\n")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "perhaps.c").write_text("".join(out))
    (OUT / "perhaps.h").write_text(public_header())
    for name in ("perhaps.c", "perhaps.h"):
        print(f"{OUT / name}: {len((OUT / name).read_text().splitlines())} lines")


TOP = """/* perhaps.c - the library perhaps {version} as one file, made of its sources by a program.
 *
 *     cc -O2 -c perhaps.c         it needs perhaps.h, and xxhash.h of xxHash beside it
 *     cc ... perhaps.o -lm -pthread
 *
 * It has all kinds of filters, in memory and as files; but no journals (live files) and no filters
 * on servers.  With -DPERHAPS_WITH_SODIUM and -lsodium keys can be hashed under a secret.  The
 * sources, with their comments, are at the place where this comes from. */
"""

BEGIN = """#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#define _CRT_RAND_S 1
#ifndef PERHAPS_WITH_SODIUM
#define PERHAPS_WITHOUT_SODIUM 1
#endif
#define PERHAPS_WITHOUT_JOURNALS 1
#ifndef PERHAPS_PRIVATE
#define PERHAPS_PRIVATE static
#define PERHAPS_WITHOUT_SERVERS 1
#endif
#define PERHAPS_ITSELF __FILE__
#define U(name) U_(name, UNIT)
#define U_(name, unit) U__(name, unit)
#define U__(name, unit) name##_##unit
#define XXH_INLINE_ALL
#if defined(__GNUC__) /* and clang */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#endif
#include "perhaps.h"
#include <xxhash.h>
"""

main()
