# plot.gp - gnuplot -c plot.gp DATA OUT: draws the figures of doc/plots from the files that
# plot.sh wrote into the folder DATA.  A figure whose file is missing is left as it is.
data = ARG1.'/'
out = ARG2.'/'

# Returns how many blocks a file has: 0 if there is no such file.  A block is a line of the
# figure and begins with its name in quotes.  Where a figure compares the others with the last
# one, that is dashed and grey.
blocks(name) = int(system("cat ".data.name.".dat 2>/dev/null | grep -c '^\"'"))

set terminal svg size 720,440 dynamic background '#ffffff' font 'sans-serif,14'
set border 3 lc rgb '#444444'
set tics nomirror out
set grid lc rgb '#dddddd'
set key inside left top Left reverse samplen 2 opaque
array colour[6] = ['#0b62a4', '#c0392b', '#2e8b57', '#8e44ad', '#b8860b', '#16a0a0']

if (blocks('speed') > 0) {
set output out.'speed.svg'
set title 'Asking for absent keys, batched, one thread'
set xlabel 'size of the filter'
set ylabel 'nanoseconds a key'
set logscale x 2
set xtics ('64 KiB' 2.0**16, '256 KiB' 2.0**18, '1 MiB' 2.0**20, '4 MiB' 2.0**22, \
    '16 MiB' 2.0**24, '64 MiB' 2.0**26, '256 MiB' 2.0**28, '1 GiB' 2.0**30, '4 GiB' 2.0**32)
set yrange [0:*]
last = blocks('speed') - 1
plot for [i = 0:last - 1] data.'speed.dat' index i using 1:2 with linespoints lw 2 pt 7 ps 0.6 \
        lc rgb colour[i % 6 + 1] title columnheader(1), \
    '' index last using 1:2 with linespoints lw 2 dt 2 pt 7 ps 0.4 lc rgb '#666666' \
        title columnheader(1)

set output out.'bits.svg'
set title 'Memory, at 10 million keys'
set xlabel 'false-positive rate'
set ylabel 'bits a key'
unset logscale x
set logscale x 10
set xrange [0.5:1e-9]
set xtics ('10 %%' 1e-1, '1 %%' 1e-2, '0.1 %%' 1e-3, '1e-4' 1e-4, '1e-5' 1e-5, \
    '1e-6' 1e-6, '1e-7' 1e-7, '1e-8' 1e-8, '1e-9' 1e-9)
last = blocks('bits') - 1
plot for [i = 0:last - 1] data.'bits.dat' index i using 1:2 with lines lw 2 \
        lc rgb colour[i % 6 + 1] title columnheader(1), \
    '' index last using 1:2 with lines lw 2 dt 2 lc rgb '#666666' title columnheader(1)

set output out.'threads.svg'
set title 'Threads at one shared filter, batched'
set xlabel 'threads'
set ylabel 'million keys a second, all threads'
unset logscale x
set xrange [0:*]
most = int(system("awk '$1 > m { m = $1 } END { print m + 0 }' ".data.'threads.dat'))
set xtics ceil(most / 16.0)
last = blocks('threads') - 1
plot for [i = 0:last - 1] data.'threads.dat' index i using 1:2 with linespoints lw 2 \
        dt i % 2 + 1 pt 7 - i % 2 ps 0.6 lc rgb colour[i / 2 % 6 + 1] \
        title columnheader(1), \
    '' index last using 1:2 with linespoints lw 2 dt 3 pt 7 ps 0.4 lc rgb '#666666' \
        title columnheader(1)
}

if (blocks('grow_bits') > 0) {
set terminal svg size 720,580 dynamic background '#ffffff' font 'sans-serif,14'
set xlabel 'keys'
set logscale x 10
set xrange [1000:*]
set xtics ('1,000' 1e3, '10,000' 1e4, '100,000' 1e5, '1 M' 1e6, '10 M' 1e7, '100 M' 1e8, '1 G' 1e9)

set output out.'grow_bits.svg'
set title 'Filters that grow from 1,000 keys: memory'
set ylabel 'bits a key'
set yrange [0:80]
set key outside center bottom horizontal Left reverse
last = blocks('grow_bits') - 1
plot for [i = 0:last - 1] data.'grow_bits.dat' index i using 1:2 with lines lw 2 \
        lc rgb colour[i % 6 + 1] title columnheader(1), \
    '' index last using 1:2 with lines lw 2 dt 2 lc rgb '#666666' title columnheader(1)

set output out.'grow_fpr.svg'
set title 'Filters that grow from 1,000 keys: how often they are wrong'
set ylabel 'false-positive rate'
set logscale y 10
set yrange [1e-6:0.05]
set ytics ('1 %%' 1e-2, '0.1 %%' 1e-3, '0.01 %%' 1e-4, '0.001 %%' 1e-5)
plot for [i = 0:blocks('grow_fpr') - 1] data.'grow_fpr.dat' index i using 1:2 with lines lw 2 \
        lc rgb colour[i % 6 + 1] title columnheader(1)
}
