#!/usr/bin/env bash
# Tests of stages.sh and results.awk, which ./dev test uses:  stages_test.sh STAGES.SH
# Proves that a failing or dying stage does not keep the others from running, and that the
# report at the end names each failure, its reason and the command that repeats it.
tests=$(realpath "$(dirname "$0")")
. "$tests/../support/cli_helpers.sh"

# Three stages: 'good' passes, 'dead' dies without a word, and 'mixed' has three tests, of which
# one passes, one fails and one is skipped.
cat >stage <<TEXT
case \$1 in
good) ;;
dead) kill -KILL \$\$ ;;
mixed)
    awk -v stage=mixed -v folder=build -f '$tests/results.awk' '$folder/results.xml' >>"\$RESULTS"
    exit 8
    ;;
esac
TEXT
cat >results.xml <<'TEXT'
	<testcase name="first" classname="first" time="1" status="run">
		<system-out>rror: no
</system-out>
	</testcase>
	<testcase name="second" classname="second" time="2" status="fail">
		<failure message=""/>
		<system-out>all is well
ERROR: 1 &lt; 2 &amp;&amp; a|b is &quot;so&quot;
[  FAILED  ] later
</system-out>
	</testcase>
	<testcase name="third" classname="third" time="0" status="notrun">
		<skipped message="SKIP_RETURN_CODE=77"/>
		<system-out>skipped: no server
</system-out>
	</testcase>
TEXT

closing() { [ "$(tail -n 1 out)" = "$1" ]; }

test_all_pass() {
    works "sh ../stage" good good
    check "all pass: counted" closing '2 passed, 0 failed'
}

test_failures() {
    ends 1 "sh ../stage" mixed dead good
    check "a failure: the others are run" tells '^== good: [0-9]+ s, 0 failed$'
    check "a failure: counted" closing '2 passed, 2 failed'
    check "a test that failed: in words" tells '^FAILED: mixed, second: ERROR: 1 < 2 && a/b is "so"$'
    check "a test that failed: how to repeat it" \
        tells "^    again: ctest --test-dir build --output-on-failure -R '\^second\\$'$"
    check "a skipped test is said to be" tells '^skipped: mixed, third: skipped: no server$'
    check "a stage that died" tells '^FAILED: dead: it ended with status 137$' '^    again: sh ../stage dead$'
}

run_tests
