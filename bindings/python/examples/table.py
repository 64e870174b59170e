"""Which orders of a large table are of customers that we know?  python3 table.py

A join with 200,000 customers, as a filter of 250 KB that asks for millions of rows a second.
With pandas, table['customer'].to_numpy() is such a column.
"""
import numpy
import perhaps

random = numpy.random.default_rng(1)
customers = random.choice(10**9, 200_000, replace=False)      # whom we know, of a billion
orders = random.integers(0, 10**9, 1_000_000, dtype='i8')     # by anybody
orders[::100] = random.choice(customers, 10_000)              # but every hundredth is of one of them

known = perhaps.build(customers, 0.001, seed=1)
found = numpy.asarray(known.contains_many(orders))
print(f'{known.stats().memory_nbytes / 1000:.0f} KB; {found.sum()} of {len(orders)} rows are left')
assert found[::100].all()                                     # nothing is ever missed

# The exact answer is asked for what is left alone, which is a hundredth.
exact = numpy.isin(orders[found], customers)
print(f'{exact.sum()} rows are of customers, and {(~exact).sum()} were not')
