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
says() { grep -qF -e "$1" err; }
tells() { grep -qE -e "$1" out; }
is_silent() { [ ! -s err ]; }
not() { ! "$@"; }

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

same() { cmp -s "$1" "$2"; }

# no_litter: nothing but what the tests name lies about.
no_litter() { [ -z "$(find . -name '*.tmp*' -o -name '.*' ! -name .)" ]; }

# refuses TEXT ARGUMENT...
refuses() {
    local text=$1
    shift
    run "$@"
    refused "$*" "$text"
}

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

# Runs each function test_..., in a folder of its own; returns 1 if a check failed.
run_tests() {
    local name
    seq 10 >keys
    : >empty
    for name in $(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p'); do
        mkdir -p "$name"
        cd "$name" && cp ../keys ../empty .
        "$name" </dev/null
        cd ..
        rm -rf "$name"
    done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
