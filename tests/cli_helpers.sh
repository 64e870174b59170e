# What the end-to-end tests of the command line share; sourced by cli_*test.sh PROGRAM.
set -u

# The same in every run; PERHAPS_TEST_SEED takes another, "fresh" draws one.
[ "${PERHAPS_TEST_SEED:=1}" != fresh ] || PERHAPS_TEST_SEED=$SRANDOM
export PERHAPS_TEST_SEED
echo "PERHAPS_TEST_SEED=$PERHAPS_TEST_SEED"
RANDOM=$((PERHAPS_TEST_SEED % 32768))

program=$(realpath "${1:?usage: $0 PROGRAM}") || exit 2
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2

passed=0 failed=0 status=0

# run ARGUMENT...: runs the program; what it did is in $status and the files out and err.
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

exits() { [ "$status" -eq "$1" ]; }
prints() { [ "$(cat out; echo x)" = "${1}x" ]; } # $1 with its newlines
lines() { [ "$(wc -l <"$1")" -eq "$2" ]; }
is_silent() { [ ! -s err ]; }
not() { ! "$@"; }
same() { cmp -s "$1" "$2"; }

# says TEXT...: standard error has each of them; tells PATTERN...: standard output has.
says() {
    local text
    for text; do grep -qF -e "$text" err || return 1; done
}
tells() {
    local pattern
    for pattern; do grep -qE -e "$pattern" out || return 1; done
}

# Each runs the program, and checks one thing:

# ends STATUS ARGUMENT...
ends() {
    run "${@:2}"
    check "${*:2}" exits "$1"
}
works() { ends 0 "$@"; } # ARGUMENT...

# reports TEXT ARGUMENT...: works, and standard error has the text.
reports() {
    works "${@:2}"
    check "${*:2}" says "$1"
}

# shows PATTERN ARGUMENT...: works, and standard output has a line like this.
shows() {
    works "${@:2}"
    check "${*:2}" tells "$1"
}

# writes TEXT ARGUMENT...: exactly this to standard output, whatever the status.
writes() {
    run "${@:2}"
    check "${*:2}" prints "$1"
}

# matches FILE ARGUMENT...: writes what is in the file.
matches() {
    run "${@:2}"
    check "${*:2}" same out "$1"
}

# quietly ARGUMENT...: works, and standard error is empty.
quietly() {
    works "$@"
    check "$*" is_silent
}

# tells_json NAME NUMBER ARGUMENT...: the line of JSON, wherever it goes, has that number.
tells_json() {
    run "${@:3}"
    check "${*:3}: $1" [ "$(field "$1" out)$(field "$1" err)" = "$2" ]
}

# refuses TEXT ARGUMENT...: fails with one line, which holds the text.
refuses() {
    run "${@:2}"
    refused "${*:2}" "$1"
}

# refused NAME TEXT: the last run failed with one line, which holds the text.
refused() {
    check "$1: exit 2" exits 2
    check "$1: one line" lines err 1
    check "$1: names the program" grep -q '^perhaps: ' err
    check "$1: says" says "$2"
}

# noise NUMBER: so many bytes that look random, the same ones in every run.
noise() { seq $((PERHAPS_TEST_SEED % 100000)) 10000000 | gzip -c | tail -c +11 | head -c "$1"; }

# until_true COMMAND...: waits up to a minute, since others may keep the machine busy.
until_true() {
    local i
    for i in $(seq 1200); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

# field NAME FILE: a number from a one-line JSON object.
field() { sed -n 's/.*"'"$1"'":\([-0-9.e+]*\).*/\1/p' "$2"; }

# no_litter: nothing but what the tests name lies about.
no_litter() { [ -z "$(find . -name '*.tmp*' -o -name '.*' ! -name .)" ]; }

# catches PID NUMBER: whether the process handles the signal by now.
catches() {
    local mask
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ $((0x${mask:-0} >> ($2 - 1) & 1)) -eq 1 ]
}

# reads PID FILE: whether the process has opened the file by now.
reads() { [ -n "$(find "/proc/$1/fd" -lname "*/$2" 2>/dev/null)" ]; }

# interrupted SIGNAL LINES ARGUMENT...: the program is sent the signal while it waits for more
# input, when it has printed so many lines; then $status is its own.
interrupted() {
    local signal=$1 printed=$2 pid
    shift 2
    mkfifo slow
    # A shell has what it runs in the background ignore SIGINT.
    env --default-signal "$program" "$@" <slow >out 2>err &
    pid=$!
    exec 5>slow
    seq 10 >&5
    check "$*: handles $signal" until_true catches $pid "$(kill -l "$signal")"
    check "$*: has printed" until_true lines out "$printed"
    kill -s "$signal" $pid $pid 2>kill_err # as timeout(1) does; it means one
    wait $pid
    status=$?
    exec 5>&-
    rm slow
}

# begins ARGUMENT...: the program, whose last input is what is written to file descriptor 5; it has
# opened that, and runs as process $begun.  What it prints is in slow_out and slow_err.
begins() {
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

# answers_at_once ARGUMENT...: 1, 2 and 3 are printed again, each before the next one comes.
answers_at_once() {
    local line answer
    mkfifo asked answered
    "$program" "$@" <asked >answered 2>err &
    exec 5>asked 6<answered
    for line in 1 2 3; do
        (echo $line >&5) # alone, should the program have gone
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

# Runs each function test_..., or those that PERHAPS_TEST names (with * and ?), in a folder of its
# own; returns 1 if a check failed.
run_tests() {
    local name
    seq 10 >keys
    : >empty
    for name in $(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p'); do
        [[ $name == ${PERHAPS_TEST:-*} ]] || continue
        mkdir -p "$name"
        cd "$name" && cp ../keys ../empty .
        "$name" </dev/null
        cd ..
        rm -rf "$name"
    done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
