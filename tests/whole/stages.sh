#!/bin/sh
# Runs stages of tests one after the other, whatever fails:  stages.sh COMMAND STAGE...
#
# "COMMAND STAGE" runs one stage.  It may append a line for each test to the file $RESULTS:
#     passed|skipped|failed NAME|what went wrong|command that repeats it
# A stage that writes no line counts as one test, which passed or failed by its exit status.  At
# the end all failures are printed, with the command that repeats each; exit status 1 if there
# are any.
set -u
command=$1
shift
RESULTS=$(mktemp) || exit 2
export RESULTS
trap 'rm -f "$RESULTS"' EXIT
trap 'exit 130' INT TERM

# count RESULT: prints how many of these results there are so far.
count() { grep -c "^$1 " "$RESULTS"; }

number=0
for stage in "$@"; do
    number=$((number + 1)) begin=$(date +%s) failed=$(count failed) passed=$(count passed)
    echo "== stage $number of $#: $stage"
    $command "$stage"
    status=$?
    if [ $status -ne 0 ] && [ "$(count failed)" -eq "$failed" ]; then
        echo "failed $stage|it ended with status $status|$command $stage" >>"$RESULTS"
    elif [ $status -eq 0 ] && [ "$(count failed)" -eq "$failed" ] && [ "$(count passed)" -eq "$passed" ]; then
        echo "passed $stage" >>"$RESULTS"
    fi
    echo "== $stage: $(($(date +%s) - begin)) s, $(($(count failed) - failed)) failed"
done

sed -n 's/^skipped /skipped: /p' "$RESULTS"
sed -n 's/^failed //p' "$RESULTS" | while IFS='|' read -r name words again; do
    printf 'FAILED: %s: %s\n    again: %s\n' "$name" "$words" "$again"
done
echo "$(count passed) passed, $(count failed) failed"
[ "$(count failed)" -eq 0 ]
