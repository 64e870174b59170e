#!/usr/bin/env bash
# The examples of README.md and of doc/*.md:  readme_test.sh SOURCE BIN CC [CFLAGS]
#
# Proves that the fenced blocks in sh, c, python, sql and console of each page run as they stand
# there, in their order and in a folder of the page's own, and that they print what the page says:
#   # prints TEXT         at the end of a command or a line of Python: exactly this, and no more
#   /* prints TEXT */     in C; a block without main() becomes its body, and what a program with
#                         main() prints stands in a block "text" behind it
#   -- prints TEXT        in SQL
#   127.0.0.1:6379> ...   in a console: the lines behind it are the reply of a server
# Lines of a shell that begin with ./dev are left out; addresses of servers become those of
# servers on free ports.  What needs a program that is not there is left out, too.
set -eu
source=$(cd "$1" && pwd) bin=$(cd "$2" && pwd) cc=$3 cflags=${4:-}
lib=$(cd "$bin/../lib" && pwd)
export PATH="$bin:$PATH"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# block PAGE LANGUAGE: prints the blocks of that language
block() { sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$1"; }

# fails WHERE WHAT...: remembers that an example is wrong
fails() { echo "$*" | tee -a "$root/failures" >&2; }

# Programs that were built with a sanitizer cannot be loaded by others.
loads() { [ -z "$cflags" ] && [ -e "$lib/$1" ]; }
has_servers() { command -v redis-server || command -v valkey-server; } >/dev/null

# ---- Shell: each command is run alone, so that what it prints can be compared

# Counts as failed what ends with an error.  1 is an answer, and 141 is that head has read enough.
perhaps() {
    local status=0
    command perhaps "$@" || status=$?
    [ $status -lt 2 ] || [ $status -eq 141 ] || fails "perhaps $*: exit status $status"
    return $status
}

# prints WANTED GOT COMMAND
prints() { [ "$1" = "$2" ] || fails "'$3' prints '$2', not '$1'"; }
export -f perhaps fails prints

# Reads commands.  One of which it is said what it prints becomes a comparison.
compared() {
    local line quoted
    while IFS= read -r line; do
        if [[ $line =~ ^(.*[^[:blank:]])[[:blank:]]+#\ prints\ (.*)$ ]]; then
            printf -v quoted '%q ' "${BASH_REMATCH[2]}" "${BASH_REMATCH[1]}"
            printf 'set -- %s; prints "$1" "$(%s)" "$2"\n' "$quoted" "${BASH_REMATCH[1]}"
        else
            printf '%s\n' "$line"
        fi
    done
}

run_shell() {
    block "$1" sh | grep -v '^\./dev ' | compared >commands || return 0
    if grep -q '^url=' commands; then
        has_servers || return 0
        local servers=$source/cluster/local.sh address
        address=$("$servers" up --port 0 --replicas 0 --folder "$root/servers")
        sed -i "s|redis://127.0.0.1:7000|$address|" commands
    fi
    root=$root bash -u commands
    [ ! -d "$root/servers" ] || "$servers" down --folder "$root/servers" >/dev/null
}

# ---- The other languages: what they print is compared as a whole

# wanted PAGE LANGUAGE BEGIN END: prints what the page says between BEGIN and END, and in blocks
# "text"
wanted() {
    sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/s|.*[[:blank:]]*$3 prints \(.*\)$4\$|\1|p
        /^\`\`\`text\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$1"
}

run_python() {
    block "$1" python >code.py
    [ -s code.py ] && loads python/perhaps/_perhaps.abi3.so || return 0
    PYTHONPATH=$lib/python python3 -B code.py >printed || fails "$1: Python"
    diff <(wanted "$1" python '#' '') printed || fails "$1: Python prints something else"
}

run_sql() {
    block "$1" sql | sed "s|build/lib|$lib|" >code.sql
    [ -s code.sql ] && loads perhaps_sqlite.so && command -v sqlite3 >/dev/null || return 0
    sqlite3 <code.sql >printed || fails "$1: SQL"
    diff <(wanted "$1" sql -- '') printed || fails "$1: SQL prints something else"
}

# Each block is a program, or the body of one.  (With a sanitizer nothing may be loaded before it.)
run_c() {
    block "$1" c >all.c
    [ -s all.c ] || return 0
    sed -n '/^```c$/,/^```$/p' "$1" | awk '/^```c$/ { n++ } !/^```/ { print > ("block" n ".c") }'
    local code
    for code in block*.c; do
        grep -q '^int main' "$code" || {
            grep '^#include' "$code" || true
            printf '#include <%s.h>\n' perhaps stdio stdlib string
            echo 'int main(void) {'
            grep -v '^#include' "$code"
            echo '}'
        } >body.c
        [ ! -s body.c ] || mv body.c "$code"
        # shellcheck disable=SC2086
        $cc $cflags -std=c11 -Wall -Wextra -Werror -I"$source/include" -o program "$code" \
            -L"$lib" -lperhaps -Wl,-rpath,"$lib" || { fails "$1: C, $code" && return; }
        env -u LD_PRELOAD ./program || fails "$1: C, $code"
    done >printed
    diff <(wanted "$1" c '/\*' ' \*/') printed || fails "$1: C prints something else"
}

run_console() {
    block "$1" console | grep -v '^\$' >console || return 0
    has_servers && loads perhaps.so || return 0
    (
        trap - EXIT
        export PERHAPS_TEST_MODULE=$lib/perhaps.so
        . "$source/tests/support/servers.sh"
        servers_start_single || exit 1
        set +e # the servers are killed at the end
        sed -n 's/^127\.0\.0\.1:6379> //p' console | while IFS= read -r command; do
            printf '127.0.0.1:6379> %s\n' "$command"
            eval "server_cli 0 --no-raw $command" </dev/null
        done >printed
        diff console printed
    ) || fails "$1: the server replies something else"
}

for page in "$source"/README.md "$source"/doc/*.md; do
    folder=$root/$(basename "$page" .md)
    mkdir "$folder"
    for language in shell python sql c console; do
        mkdir "$folder/$language"
        cd "$folder/$language"
        "run_$language" "$page"
    done
done
if [ -s "$root/failures" ]; then
    echo "these examples are wrong:"
    cat "$root/failures"
    exit 1
fi

# The longest example in C is a program of its own, too.
diff <(block "$source/doc/C.md" c | sed '/^}$/q') <(sed '/^\/\*/,/\*\/$/d' "$source/examples/readme.c")
