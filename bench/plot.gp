# plot.gp - gnuplot -c plot.gp DATA OUT: draws the figures of doc/plots from the files that
# plot.sh wrote into the folder DATA.  A figure whose file is missing is left as it is.
data = ARG1.'/'
out = ARG2.'/'

# Returns how many blocks a file has: 0 if there is no such file.  A block is a line of the
# figure and begins with its name in quotes.  Where a figure compares the others with the last
# one, that is dashed and grey.
blocks(name) = int(system("cat ".data.name.".dat 2>/dev/null | grep -c '^\"'"))

# The white background is part of the picture, so that it can be read on dark pages, too.  The
# names stand below the axis, where they hide no line and no label.
set terminal svg size 760,540 dynamic background '#ffffff' font 'sans-serif,14'
set border 3 lc rgb '#444444'
set tics nomirror out
set grid lc rgb '#dddddd'
set bmargin at screen 0.33
set key at screen 0.53,0.02 center bottom horizontal Left reverse samplen 2 width 1
array colour[10] = ['#0b62a4', '#c0392b', '#2e8b57', '#8e44ad', '#b8860b', '#16a0a0', \
    '#d81b60', '#6d4c41', '#000000', '#7cb342']

set xlabel 'size of the filter'
set ylabel 'nanoseconds a key'
set logscale x 2
set xtics ('64 KiB' 2.0**16, '256 KiB' 2.0**18, '1 MiB' 2.0**20, '4 MiB' 2.0**22, \
    '16 MiB' 2.0**24, '64 MiB' 2.0**26, '256 MiB' 2.0**28, '1 GiB' 2.0**30, '4 GiB' 2.0**32)
set logscale y 10
set yrange [0.3:*]
set ytics (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)

do for [name in 'speed peers'] {
if (blocks(name) == 0) { continue }
set output out.name.'.svg'
set title (name eq 'speed' ? 'Queries for absent keys, many in a call, one thread, 0.1 %' : \
    'Other libraries: queries for absent keys, by the fastest call of each, 0.1 %')
last = blocks(name) - 1
plot for [i = 0:last - 1] data.name.'.dat' index i using 1:2 smooth unique with linespoints \
        lw 2 pt 7 ps 0.6 lc rgb colour[i % 10 + 1] title columnheader(1), \
    '' index last using 1:2 smooth unique with linespoints lw 2 dt 2 pt 7 ps 0.4 \
        lc rgb '#666666' title columnheader(1)
}

unset logscale
set logscale x 10

if (blocks('bits') > 0) {
set output out.'bits.svg'
set bmargin at screen 0.37
set title 'Memory at a million keys; points: other libraries, as measured'
set xlabel 'false-positive rate'
set ylabel 'bits a key'
set yrange [0:50]
set ytics 10
set xrange [0.5:1e-9]
set xtics ('10 %%' 1e-1, '1 %%' 1e-2, '0.1 %%' 1e-3, '1e-4' 1e-4, '1e-5' 1e-5, \
    '1e-6' 1e-6, '1e-7' 1e-7, '1e-8' 1e-8, '1e-9' 1e-9)
last = blocks('bits') - 1
points = blocks('bits_peers')
plot for [i = 0:last - 1] data.'bits.dat' index i using 1:2 with lines lw 2 \
        lc rgb colour[i % 10 + 1] title columnheader(1), \
    '' index last using 1:2 with lines lw 2 dt 2 lc rgb '#666666' title columnheader(1), \
    for [i = 0:points - 1] data.'bits_peers.dat' index i using 1:2 with points \
        pt 2 * i % 13 + 1 ps 0.8 lw 1.5 lc rgb colour[(i + last) % 10 + 1] title columnheader(1)
}

if (blocks('grow_bits') > 0) {
set bmargin at screen 0.33
set xlabel 'keys'
set xrange [1000:*]
set xtics ('1,000' 1e3, '10,000' 1e4, '100,000' 1e5, '1 M' 1e6, '10 M' 1e7, '100 M' 1e8, \
    '1 G' 1e9)

set output out.'grow_bits.svg'
set title 'Filters that grow from 1,000 keys, at 1 %: memory'
set ylabel 'bits a key'
set yrange [0:60]
set ytics 10
last = blocks('grow_bits') - 1
plot for [i = 0:last - 1] data.'grow_bits.dat' index i using 1:2 with lines lw 2 \
        lc rgb colour[i % 10 + 1] title columnheader(1), \
    '' index last using 1:2 with lines lw 2 dt 2 lc rgb '#666666' title columnheader(1)

set output out.'grow_fpr.svg'
set title 'Filters that grow from 1,000 keys: how often they are wrong'
set ylabel 'false-positive rate'
set logscale y 10
set yrange [1e-6:0.05]
set ytics ('1 %%' 1e-2, '0.1 %%' 1e-3, '0.01 %%' 1e-4, '0.001 %%' 1e-5)
asked = blocks('grow_asked')
plot for [i = 0:blocks('grow_fpr') - 1] data.'grow_fpr.dat' index i using 1:2 with lines lw 2 \
        lc rgb colour[i % 10 + 1] title columnheader(1), \
    for [i = 0:asked - 1] data.'grow_asked.dat' index i using 1:2 with lines lw 2 dt i + 2 \
        lc rgb '#666666' title columnheader(1)
}
