# What the end-to-end tests of the command line share; sourced by cli_*test.sh PROGRAM.  A test
# is a function test_..., which runs in an empty folder of its own with two files: 'keys' has
# the lines 1 to 10, and 'empty' nothing.  A check that fails prints a line, and the test goes
# on, so that one run tells everything that is wrong.
set -u

# The seed is the same in every run; PERHAPS_TEST_SEED chooses another, "fresh" draws one.
[ "${PERHAPS_TEST_SEED:=1}" != fresh ] || PERHAPS_TEST_SEED=$SRANDOM
export PERHAPS_TEST_SEED
echo "PERHAPS_TEST_SEED=$PERHAPS_TEST_SEED"
RANDOM=$((PERHAPS_TEST_SEED % 32768))

program=$(realpath "${1:?usage: $0 PROGRAM}") || exit 2
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2

passed=0 failed=0 status=0

# run ARGUMENT...: runs the program; leaves its exit status in $status and its output in the
# files out and err.
run() {
    "$program" "$@" >out 2>err
    status=$?
}

# check NAME COMMAND...: the command must succeed.
check() {
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name: $* (status $status, stderr: $(head -c 300 err))"
    fi
}

# is_chosen NUMBER OF: whether the case of this number is one of the sample that is tried: one of
# so many that follow each other, and the seed chooses which; all if PERHAPS_TEST_EVERY is set.
is_chosen() { [ -n "${PERHAPS_TEST_EVERY+set}" ] || [ $((($1 + PERHAPS_TEST_SEED % 32768) % $2)) -eq 0 ]; }

# Conditions for check().  The '; echo x' keeps newlines at the end, which "$(...)" drops.
exits() { [ "$status" -eq "$1" ]; }
prints() { [ "$(cat out; echo x)" = "${1}x" ]; } # $1 with its newlines
lines() { [ "$(wc -l <"$1")" -eq "$2" ]; }
is_silent() { [ ! -s err ]; }
not() { ! "$@"; }
same() { cmp -s "$1" "$2"; }

# says TEXT...: standard error contains each text; tells PATTERN...: standard output has a line
# for each pattern.
says() {
    local text
    for text; do grep -qF -e "$text" err || return 1; done
}
tells() {
    local pattern
    for pattern; do grep -qE -e "$pattern" out || return 1; done
}

# Each of the following runs the program and checks one thing.

# ends STATUS ARGUMENT...: the exit status is this.
ends() {
    run "${@:2}"
    check "${*:2}" exits "$1"
}
works() { ends 0 "$@"; } # ARGUMENT...

# reports TEXT ARGUMENT...: works, and standard error contains the text.
reports() {
    works "${@:2}"
    check "${*:2}" says "$1"
}

# shows PATTERN ARGUMENT...: works, and standard output has a line like this.
shows() {
    works "${@:2}"
    check "${*:2}" tells "$1"
}

# writes TEXT ARGUMENT...: standard output is exactly this text, whatever the status.
writes() {
    run "${@:2}"
    check "${*:2}" prints "$1"
}

# matches FILE ARGUMENT...: standard output is what the file holds.
matches() {
    run "${@:2}"
    check "${*:2}" same out "$1"
}

# quietly ARGUMENT...: works, and standard error is empty.
quietly() {
    works "$@"
    check "$*" is_silent
}

# tells_json NAMES NUMBERS ARGUMENT...: the line of JSON, on whichever output, has these
# numbers.
tells_json() {
    run "${@:3}"
    check "${*:3}: $1" [ "$(facts $1)" = "$2" ]
}

# facts NAME...: prints these numbers of the JSON that was printed last.
facts() {
    local name told=
    for name; do told="$told $(field "$name" out)$(field "$name" err)"; done
    echo "${told# }"
}

# is_json NAME FILTER FILE: the file is JSON, and jq finds something in it.  Does nothing where there
# is no jq.
is_json() {
    ! command -v jq >/dev/null || check "$1: is JSON" jq -e "$2" "$3" >/dev/null
}

# counts OPERATOR NUMBER ARGUMENT...: standard output is a number for which this is true, such
# as -le 300.
counts() {
    run "${@:3}"
    check "${*:3}: $(head -n 1 out) $1 $2" [ "$(cat out)" "$1" "$2" ]
}

# alike NAME ARGUMENT...: standard output is the same as in the first call with this name.
alike() {
    run "${@:2}"
    [ -e "first $1" ] || cp out "first $1"
    check "${*:2}: as at first" same out "first $1"
}

# keeps FILE COMMAND...: the command leaves the file as it was.
keeps() {
    cp "$1" kept
    "${@:2}"
    check "${*:2}: $1 stays as it was" same "$1" kept
}

# refuses TEXT ARGUMENT...: fails with status 2 and one line, which contains the text.
refuses() {
    run "${@:2}"
    refused "${*:2}" "$1"
}

# refused NAME TEXT: the last run failed with status 2 and one line, which contains the text.
refused() {
    check "$1: exit 2" exits 2
    check "$1: one line" lines err 1
    check "$1: names the program" grep -q "^$(basename "$program"): " err
    check "$1: says" says "$2"
}

# refuses_into FILE TEXT ARGUMENT...: refuses, with the file as standard output.  Does nothing
# where there is no such file, since not every system has /dev/full.
refuses_into() {
    [ -e "$1" ] || return 0
    "$program" "${@:3}" 2>err >>"$1"
    status=$?
    refused "${*:3}: into $1" "$2"
}

# noise NUMBER: prints so many bytes that look random, the same ones in every run.
noise() { seq $((PERHAPS_TEST_SEED % 100000)) 10000000 | gzip -c | tail -c +11 | head -c "$1"; }

# until_true COMMAND...: waits until the command succeeds; up to a minute, since other programs
# may keep the machine busy.
until_true() {
    local i
    for i in $(seq 1200); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

# field NAME FILE: prints a number of a one-line JSON object.
field() { sed -n 's/.*"'"$1"'":\([-0-9.e+]*\).*/\1/p' "$2"; }

# no_litter: whether there are no temporary files and no locks.
no_litter() { [ -z "$(find . -name '*.tmp*' -o -name '.*' ! -name .)" ]; }

# catches PID NUMBER: whether the process handles the signal by now.  SigCgt of /proc is a mask.
catches() {
    local mask
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ $((0x${mask:-0} >> ($2 - 1) & 1)) -eq 1 ]
}

# reads PID FILE: whether the process has opened the file by now.  A process that was just
# forked is still this shell, with its open files, so that is checked first.
reads() {
    ! [ "/proc/$1/exe" -ef "/proc/$$/exe" ] &&
        [ -n "$(find "/proc/$1/fd" -lname "*/$2" 2>/dev/null)" ]
}

# Whether all that was written to file descriptor 5, a FIFO, has been read.
drained() {
    ! read -r -t 0 -u 5
}

# interrupted SIGNAL LINES TEXT ARGUMENT...: sends the program the signal while it waits for
# more input and has printed so many lines.  It must end by that signal and print the text.

interrupted() {
    local signal=$1 printed=$2 text=$3 pid
    shift 3
    mkfifo slow
    # What a shell runs in the background ignores SIGINT, unless 'env' sets it back.
    env --default-signal "$program" "$@" <slow >out 2>err &
    pid=$!
    exec 5<>slow
    seq 10 >&5
    check "$*: handles $signal" until_true catches $pid "$(kill -l "$signal")"
    check "$*: has read" until_true drained
    check "$*: has printed" until_true lines out "$printed"
    kill -s "$signal" $pid $pid 2>kill_err # two, as timeout(1) sends
    wait $pid
    status=$?
    exec 5>&-
    rm slow
    check "$*: ends by $signal" exits $((128 + $(kill -l "$signal")))
    check "$*: says" says "$text"
}

# begins ARGUMENT...: starts the program as process $begun, with a last input that comes from
# file descriptor 5, and waits until it has opened that.  Its output is in slow_out and
# slow_err.  'finishes' ends that input and waits for the program.
begins() {
    rm -f slow_out # of an earlier call
    mkfifo slow
    exec 5<>slow
    "$program" "$@" slow >slow_out 2>slow_err 5<&- &
    begun=$!
    check "$*: reads" until_true reads $begun slow
}
finishes() {
    exec 5>&-
    wait $begun
    status=$?
    rm slow
}

# answers_at_once ARGUMENT...: the program prints the lines 1, 2 and 3, each before it gets the
# next one.
answers_at_once() {
    local line answer
    mkfifo asked answered
    "$program" "$@" <asked >answered 2>err &
    exec 5>asked 6<answered
    for line in 1 2 3; do
        (echo $line >&5) # in a subshell, which SIGPIPE may end if the program has gone
        read -r -t 60 answer <&6
        check "$*: answers at once" [ "$answer" = $line ]
    done
    exec 5>&-
    wait $!
    status=$?
    check "$*: ends" exits 0
    exec 6<&-
    rm asked answered
}

# two_sign_up NUMBER ARGUMENT...: two processes of examples/cache_guard want the same addresses
# at once; each address must be given to exactly one of them.
two_sign_up() {
    local i pids
    seq -f '%g@x.example' "$1" >addresses
    for i in 1 2; do
        "$program" signup "${@:2}" <addresses >out.$i 2>err.$i &
        pids[i]=$!
    done
    for i in 1 2; do
        wait ${pids[i]}
        status=$?
        cp err.$i err
        check "process $i" exits 0
        check "process $i denies nobody" says "the guard denies 0"
    done
    grep -h ^free out.1 out.2 | cut -f 3 | sort >given
    check "each address is given away once" same given <(sort addresses)
}

# Runs each function test_..., or those that PERHAPS_TEST names (a pattern with * and ?), in a
# folder of its own.  Returns 1 if a check failed.
run_tests() {
    local name
    seq 10 >keys
    : >empty
    for name in $(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p'); do
        [[ $name == ${PERHAPS_TEST:-*} ]] || continue
        mkdir -p "$name"
        cd "$name" && cp ../keys ../empty .
        "$name" </dev/null
        check "$name: no temporary files" no_litter
        cd ..
        rm -rf "$name"
    done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
