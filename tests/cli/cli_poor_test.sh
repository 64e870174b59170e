# cli_poor_test.sh PROGRAM - every verb where the system or the file system lacks a call, one
# after the other, as exFAT, FUSE, network file systems and containers do: each does the same as
# elsewhere, or refuses with one line that says what is lacking, and leaves all as it was.
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli_helpers.sh"

[ -f "${PERHAPS_TEST_DISK:-}" ] || { echo "PERHAPS_TEST_DISK: no library to preload"; exit 1; }

LACKS="links renameat2 nameless fallocate flock shared_maps fchmod fchown folder_sync advice mremap"

# poor ARGUMENT...: runs the program without what $lacks names.
poor() {
    LD_PRELOAD="$PERHAPS_TEST_DISK:${LD_PRELOAD:-}" PERHAPS_TEST_LACKS=$lacks \
        "$program" "$@" >out 2>err
    status=$?
}

# does NAME ARGUMENT...: it must work; whatever it says is one line about locks.
does() {
    local name=$1
    shift
    poor "$@"
    check "without $lacks: $name" exits 0
    check "without $lacks: $name: says nothing else" \
        not grep -vE "no locks .*: let no other process change it meanwhile$" err
}

# cannot NAME WHAT ARGUMENT...: it must be refused for WHAT.
cannot() {
    local name=$1 what=$2
    shift 2
    poor "$@"
    check "without $lacks: $name" exits 2
    check "without $lacks: $name: says what" says "its file system has no $what"
    check "without $lacks: $name: in one line" lines err 1
}

# holds FILE N: whether the first N keys are in it, and none of 1000 others but by chance.
holds() {
    poor query "$1" -c wanted
    [ "$(cat out)" = "$2" ]
}

# The verbs with files, one after the other.
all_verbs() {
    does create create -q -n 20000 F
    does add add -q F wanted
    check "without $lacks: it holds them" holds F 3000
    does build build -q --removable -n 5000 -o R wanted
    does remove remove -q R half
    does "build over a file" build -q -n 20000 -o F wanted
    check "without $lacks: it holds them again" holds F 3000
    does "build from a pipe" build -q --memory 1M -o P --static <wanted
    check "without $lacks: P holds them" holds P 3000
    does info info F
    does verify verify F
    does shrink shrink -q -p 0.2 F -o S
    cp F C
    does merge merge -q F C -o M
    does "merge --common" merge --common -q F C -o I
    does "build --count" build -q --count -n 5000 -o N wanted
    does count count N half
    does compare compare F S
    does copy copy -q F B
    check "without $lacks: B holds them" holds B 3000
    does dedup dedup -q wanted wanted
    check "without $lacks: dedup" lines out 3000
    does "dedup --state" dedup -q --state D wanted
    does "dedup --state again" dedup -q --state D wanted
    check "without $lacks: dedup --state" lines out 0
    does "dedup --exact" dedup -q --exact - wanted <wanted
    check "without $lacks: dedup --exact" lines out 3000
    does "query --check" query --check -q F wanted
}

# What several processes may change at once.
live_verbs() {
    does "create --live" create -q --live -n 5000 L
    does "add to it" add -q L wanted
    check "without $lacks: L holds them" holds L 3000
    does "read it" info L
    does "copy of it" copy -q L LB
    does "dedup --durable" dedup -q --state E --durable 100 wanted
    does "dedup --durable again" dedup -q --state E --durable 100 wanted
    check "without $lacks: dedup --durable" lines out 0
}

begin() {
    rm -rf ./* .[!.]*
    seq 3000 >wanted
    seq 1500 >half
}

test_each() {
    for lacks in $LACKS; do
        begin
        all_verbs
        case $lacks in
        flock)
            does "add" add -q F wanted
            cannot "create --live" locks create -q --live -n 5000 L
            check "without $lacks: nothing is left" [ ! -e L -a ! -e L.journal ]
            cannot "dedup --durable" locks dedup -q --state E --durable 100 wanted
            ;;
        shared_maps)
            does "add" add -q F wanted
            live_verbs
            ;;
        *)
            does "add" add -q F wanted
            live_verbs
            ;;
        esac
        check "without $lacks: no file is left over" \
            [ -z "$(find . -name '.*.lock' -o -name '.?*perhaps*' -o -name '*XXX*')" ]
    done
}

# exFAT has none of these, and a mode that does not change.
test_together() {
    lacks="links renameat2 nameless fallocate fchown folder_sync"
    begin
    all_verbs
    does "add" add -q F wanted
    live_verbs
}

# A secret does not become readable to others because the mode cannot be set.
test_private() {
    lacks=fchmod
    begin
    umask 077
    works build -q -o F wanted
    umask 022
    poor add --rewrite -q F half
    check "the mode cannot be kept: refused" exits 2
    check "the mode is as it was" [ "$(stat -c %a F)" = 600 ]
    check "the keys are as they were" holds F 3000
}

run_tests
