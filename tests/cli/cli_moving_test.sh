#!/bin/bash
# End-to-end tests of inputs that change while they are read, and of those that can be read only
# once: cli_moving_test.sh PROGRAM
. "$(dirname "$0")/../support/cli_helpers.sh"
export LC_ALL=C

# What waits for ever ends after a minute instead.
patient=$program
program=$folder/perhaps
printf '#!/bin/bash\nexec timeout --foreground 60 %q "$@"\n' "$patient" >"$program"
chmod +x "$program"

# Rates at which no line is lost by chance; what grows cannot keep the first one.
sure="-p 1e-15" few_sure="-p 1e-12"

# while_printed COMMAND ARGUMENT...: runs dedup with these arguments, and the command when a
# line has been printed; the others wait for somebody who reads.  They are then in 'rest'.
while_printed() {
    local command=$1
    shift
    mkfifo pipe
    "$patient" dedup "$@" >pipe 2>err &
    exec 7<pipe
    read -r _ <&7
    eval "$command"
    cat <&7 >rest
    wait $!
    status=$?
    exec 7<&-
    rm pipe
}

# Twice as many lines come while the first ones are printed.
test_appended() {
    local option more='seq 2000001 2600000 >>in'
    for option in "$sure" --exact "-j1 --exact" "$few_sure --state new -n 1000000" "$few_sure --window 400000-keys"; do
        rm -f new
        seq 1000001 1300000 >in
        while_printed "$more" $option in
        check "dedup $option: ends" exits 0
        [[ $option != *-n* && $option != *window* ]] || continue # these read it once, to its end
        check "dedup $option: what was there" same rest <(seq 1000002 1300000)
        check "dedup $option: says" says "in: grew while it was read: done are its first 2,400,000 bytes"
    done
    seq 1000001 1300000 >in
    while_printed "$more" $sure -q --json in
    check "--json: no other line" not says "grew"
    seq 1000001 1300000 | gzip -1 >in
    while_printed "seq 2000001 2600000 | gzip -1 >>in" $sure in
    check "packed: ends" exits 0
    check "packed: what was there" same rest <(seq 1000002 1300000)
    seq 1000001 1300000 >in
    mkfifo pipe
    { read -r; "$patient" dedup $sure; } <in >pipe 2>err &
    exec 7<pipe
    read -r _ <&7
    seq 2000001 2600000 >>in
    check "standard input: what was there" same <(seq 1000003 1300000) /dev/fd/7
    wait $!
    exec 7<&-
    check "standard input: says" says "standard input: grew while it was read"
}

# beside_appender ARGUMENT...: runs the program while lines are appended to the file 'in', all of
# them different ones.
beside_appender() {
    local n
    (for n in $(seq 2000000 30000 4000000); do [ ! -e on ] || seq $n $((n + 29999)) >>in; done) &
    run "$@"
    rm on
    wait $!
}

# Lines that an appender adds at any moment, all of them different ones.
test_appender() {
    local i option verb
    for option in "$sure" --exact --unique --count-each; do
        for i in 1 2 3; do
            seq 1000001 1200000 >in
            touch on
            beside_appender dedup -q -j2 $option in
            check "dedup $option: ends" exits 0
            [ "$option" != --count-each ] || sed 's/^ *1 //' -i out
            # The last line may have been written in part.
            head -n -1 out >whole
            check "dedup $option: what was there: $(wc -l <out)" cmp -s -n "$(wc -c <whole)" whole in
            check "dedup $option: all that was there first" [ "$(wc -l <out)" -ge 200000 ]
        done
    done
    for verb in "build -o f" "build --count -o f" "build --static -o f" "build --kind cuckoo -o f"; do
        seq 1000001 1200000 >in
        touch on
        beside_appender $verb -q in
        check "$verb: ends" exits 0
        writes $'200000\n' query -c f <(seq 1000001 1200000)
        rm f
    done
}

# A log that is rotated: it becomes shorter, or another file takes its name.
test_rotated() {
    local option name
    for option in "$sure" --exact; do
        for command in ': >in' ': >in; seq 100 >>in' 'truncate -s 1500000 in'; do
            seq 1000001 1300000 >in
            while_printed "$command" $option in
            check "dedup $option: $command: fails" exits 2
            check "dedup $option: $command: one line" lines err 1
            check "dedup $option: $command: says" grep -qE 'in: (was cut off|was changed|cannot be read any more)' err
            check "dedup $option: $command: no line is made up" [ -z "$(grep -avE '^[0-9]{7}$' rest)" ]
        done
        seq 1000001 1300000 >in
        while_printed 'mv in old; seq 5 >in' $option in
        check "dedup $option: another file: ends" exits 0
        check "dedup $option: another file: the old one is read" same rest <(seq 1000002 1300000)
        check "dedup $option: another file: says" says "in: was replaced while it was read: done is the old file"
    done
    # It is cut off, and then longer than it was.
    seq 1000001 1300000 >in
    while_printed ': >in; seq 3000001 3400000 >>in' --exact in
    check "dedup --exact: anew and longer: fails" exits 2
    check "dedup --exact: anew and longer: says" says "in: was changed while it was read"
    # Read once only, it is cut off, too.
    seq 1000001 1300000 >in
    while_printed 'truncate -s 900000 in' $sure -n 300000 in
    check "dedup -n: fails" exits 2
    check "dedup -n: says" says "in: was cut off while it was read; the lines so far are done"
}

# reads_part PID FILE: whether the process has read some of the file by now, or has ended.
reads_part() {
    local i fd
    for i in $(seq 1000); do
        [ -e /proc/$1/fd ] || return 0
        for fd in /proc/$1/fd/*; do
            [ "$(readlink "$fd")" != "$PWD/$2" ] || ! grep -q '^pos:.*[0-9]\{5\}' "/proc/$1/fdinfo/${fd##*/}" 2>proc_err || return 0
        done
    done
    return 1
}

# A log that gets another name while it is counted is read all the same.
test_renamed() {
    local verb
    seq 1000001 2500000 >first
    gzip -1 -k first
    for verb in "build -o f" "build --kind cuckoo --once -o f"; do
        cp first.gz in
        "$patient" $verb -q in >out 2>err &
        until_true reads_part $! in
        mv in old
        wait $!
        status=$?
        check "$verb: renamed: ends" exits 0
        writes $'1500000\n' query -c f first
        rm f
    done
}

# fed ARGUMENT...: runs the program while another one writes the keys into the FIFO p.
fed() {
    timeout 60 bash -c 'cat keys >p' 2>fed_err &
    run "$@"
    wait $!
    check "$*: ends" exits "$wanted"
    check "$*: who writes has written all" [ ! -s fed_err ]
}

# A FIFO is opened once, or who writes into it gets a signal, and nobody writes the second time.
test_fifos() {
    local i option wanted=0
    mkfifo p
    run build -q -n 100 --kind cuckoo --count -o f keys
    for i in 1 2 3 4 5; do
        for option in "$few_sure" --exact --unique "--exact -j1" "$few_sure -n 100" "$few_sure --state s$i" "$few_sure --state t$i --durable 5"; do
            fed dedup -q $option p
            check "dedup $option: all" same out keys
        done
        fed dedup -q --count-each p
        check "dedup --count-each: all" same out <(sed 's/^/      1 /' keys)
        fed query f p
        check "query: all" same out keys
        wanted=1 fed query -v f p
        fed count f p
        check "count: all" same <(cut -f 1 out) keys
        for option in "" "-n 100" --static --count --grow; do
            fed build -q $option -o g p
            writes $'10\n' query -c g keys
        done
        fed build -q --against p -o g empty
        fed build -q --against empty -o g p
        writes $'10\n' query -c g keys
        works build -q -n 100 --kind cuckoo --removable -o g empty
        fed add -q g p
        writes $'10\n' query -c g keys
        fed remove -q g p
        writes $'0\n' query -c g keys
    done
}

# A FIFO that is named again is over, as standard input is.
test_twice() {
    local option wanted=0
    mkfifo p
    works build -q -n 100 -o f keys
    for option in "$few_sure" --exact --unique --count-each "$few_sure -n 100"; do
        [ "$option" != --count-each ] && cp keys want || sed 's/^/      1 /' keys >want
        fed dedup -q $option p p
        check "dedup $option p p" same out want
        fed dedup -q $option p empty ./p
        check "dedup $option p empty ./p" same out want
        matches want dedup -q $option - - <keys
        matches want dedup -q $option - - < <(cat keys)
        matches want dedup -q $option - /dev/stdin < <(cat keys)
    done
    fed query f p p
    check "query f p p" same out keys
    fed build -q -o g p p
    writes $'10\n' query -c g keys
    matches keys query f - - <keys
    matches keys query f - - < <(cat keys)
    reports "10 keys into g" build -n 100 -o g - - <keys
}

# Sockets, devices and what the shell makes.
test_others() {
    local option name
    for option in "$few_sure" --exact --unique --count-each; do
        works dedup -q $option /dev/null keys
        matches <(seq 3) dedup -q $([ "$option" = --count-each ] || echo "$option") /dev/stdin < <(seq 3)
        [ "$option" != --count-each ] || continue
        [ "$option" = --unique ] || matches <(seq 4) dedup -q $option <(seq 3) <(seq 4)
        matches keys dedup -q $option /dev/stdin <keys
        command -v perl >/dev/null || continue
        for name in - /dev/stdin /dev/fd/0 /proc/self/fd/0; do
            perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die; my $pid = fork();
                if (!$pid) { close A; open STDIN, "<&B" or die; exec @ARGV or die }
                close B; print A "$_\n" for 1 .. 10; close A; waitpid $pid, 0; exit $? >> 8' \
                "$program" dedup -q $option $name >out 2>err
            status=$?
            check "dedup $option $name: a socket" exits 0
            check "dedup $option $name: all of it" same out keys
        done
    done
}

run_tests
