# plot.gp - gnuplot -c plot.gp DATA OUT: the figures of doc/plots, from what perhaps-plot wrote.
data = ARG1.'/'
out = ARG2.'/'

# A block is a line of the figure; it begins with its name in quotes.
blocks(name) = int(system("grep -c '^\"' ".data.name.'.dat'))

set terminal svg size 720,440 dynamic background '#ffffff' font 'sans-serif,14'
set border 3 lc rgb '#444444'
set tics nomirror out
set grid lc rgb '#dddddd'
set key inside left top Left reverse samplen 2 opaque
array colour[6] = ['#0b62a4', '#c0392b', '#2e8b57', '#8e44ad', '#b8860b', '#16a0a0']

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
