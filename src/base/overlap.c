/* overlap.c - how many keys two filters have in common, and how far off that may be.
 *
 * Sizes (Swamidass, Baldi: Mathematical Correction for Fingerprint Similarity Measures to
 * Improve Chemical Retrieval, J. Chem. Inf. Model. 2007; Papapetrou, Siberski, Nejdl:
 * Cardinality Estimation and Dynamic Length Adaptation for Bloom Filters, Distrib. Parallel
 * Databases 2010).  Let a key pick a given cell with the chance c, and q = 1 - c.  Of n keys
 * none picks it with the chance q^n, so the share Z of unpicked cells has the mean q^n, and
 *
 *   n = log Z / log q                                                                      (1)
 *
 * estimates n.  This holds for cells in lines as well as for bits anywhere, as long as each
 * cell is as likely as each other; only c differs.  The cells that A or B has picked are those
 * that a filter of the union would have picked, so (1) gives the size U of the union, too, and
 * that of the intersection is I = A + B - U.  (That is the most likely value: the three shares
 * of unpicked cells are free to take any value, and so are the three sizes.)
 *
 * Errors.  Let X and Y be two sets of which s keys are in both, and zx(i) be 1 if no key of X
 * picks cell i.  A key in both sets must leave cells i and j alone, which it does with the
 * chance r(i,j), a key in one of them only one cell.  So
 *
 *   mean of zx(i) zy(j) = r(i,j)^s q^(|X|-s) q^(|Y|-s) = q^|X| q^|Y| (r(i,j) / q^2)^s
 *
 * and the covariance of the shares Zx and Zy, divided by their means, depends on s alone:
 *
 *   V(s) = 1/cells  sum over j of ((r(i,j) / q^2)^s - 1)                                   (2)
 *
 * where i is any cell.  The term of j = i has r = q.  The other cells come in groups (struct
 * picking): no key picks two cells of one word, or of two lines of a band, while cells of two
 * words of a line are picked together the more often.  No sample of lines is needed for (2).
 * (The sample covariance over the lines would be several times too large: it has the different
 * numbers of keys of the lines in it, which change nothing, since they add up to n.)
 *
 * The logarithm in (1) makes W(s) = V(s) / (log q)^2 the covariance of two sizes.  A and U have
 * |A| keys in common, B and U |B|, A and B |I|.  So the variances are
 *
 *   of A      W(A)
 *   of U      W(U)
 *   of I      W(U) - W(A) - W(B) + 2 W(I)
 *   of I/U    (W(A) + W(B) + 2 W(I)) / U^2 - 2 (A+B) (W(A) + W(B)) / U^3 + (A+B)^2 W(U) / U^4
 *   of r=I/A  (W(U) - W(B) - (1 - r^2) W(A) + 2 (1 - r) W(I)) / A^2
 *
 * the last two to the first order.  For classic Bloom filters W(A) is (e^x - 1 - x) cells /
 * bits^2, where x is the number of picks divided by that of cells, and for two sets without
 * common keys I has (e^x - 1) (e^y - 1) cells / bits^2: the cells that both have picked by
 * chance.  The curvature of the logarithm makes (1) too large by V/2 / -log q, which is taken
 * off.
 *
 * Where no cell is unpicked nothing bounds n: then (1) is taken for half an unpicked cell, and
 * the error is infinite. */
#include "overlap.h"

#include <math.h>

/* The size of a set. */
struct size {
    double keys;
    double variance;
    bool full; /* all cells are picked: it has as many keys at least */
};

/* Returns W(keys), the covariance of the sizes of two sets that have these keys in common. */
static double covariance(const struct picking *m, double keys)
{
    double log_q = log1p(-m->chance), sum = expm1(-keys * log_q);
    if (keys <= 0)
        return 0;
    for (unsigned i = 0; i < m->ngroups; i++)
        sum += m->group[i].cells * expm1(keys * log1p(m->group[i].together));
    return fmax(sum, 0) / m->cells / (log_q * log_q);
}

static struct size size_of(const struct picking *m, uint64_t picked)
{
    double unpicked = m->cells - (double)picked, log_q = log1p(-m->chance);
    if (picked == 0)
        return (struct size){ 0 };
    struct size size = { .full = unpicked < 0.5 };
    size.keys = log(fmax(unpicked, 0.5) / m->cells) / log_q;
    size.variance = covariance(m, size.keys);
    size.keys = fmax(size.keys + size.variance * log_q / 2, 0);
    return size;
}

static double square(double x)
{
    return x * x;
}

/* Returns an estimate with the error that follows from the variance. */
static struct perhaps_estimate estimate(double value, double variance, bool full)
{
    return (struct perhaps_estimate){
        .value = value,
        .error = full ? INFINITY : sqrt(fmax(variance, 0)),
    };
}

struct perhaps_estimate overlap_size(const struct picking *m, uint64_t picked)
{
    const struct size size = size_of(m, picked);
    return estimate(size.keys, size.variance, size.full);
}

/* Returns which share of the keys of a set, of this size and variance, the other set has.  Of a
 * set without keys that is 0. */
static struct perhaps_estimate share(struct size of, double other_variance, struct size either,
                                     double both, double both_variance)
{
    if (of.keys <= 0)
        return (struct perhaps_estimate){ 0 };
    double r = both / of.keys;
    double variance = either.variance - other_variance - (1 - r * r) * of.variance +
                      2 * (1 - r) * both_variance;
    return estimate(r, variance / square(of.keys), either.full);
}

static struct perhaps_estimate jaccard(struct size a, struct size b, struct size either,
                                       double both, double both_variance)
{
    if (either.keys <= 0)
        return (struct perhaps_estimate){ 0 };
    double sum = (a.keys + b.keys) / either.keys;
    double variance = a.variance + b.variance + 2 * both_variance -
                      2 * sum * (a.variance + b.variance) + square(sum) * either.variance;
    return estimate(fmin(both / either.keys, 1), variance / square(either.keys), either.full);
}

/* Chance may make the estimates contradict each other: then the intersection is at least
 * nothing, and at most the smaller set.  The order of the subtractions makes it the smaller set
 * exactly if the larger one has all picked cells. */
static void fill_in(const struct picking *m, struct size a, struct size b, struct size either,
                    struct perhaps_comparison *result)
{
    double small = fmin(a.keys, b.keys), large = fmax(a.keys, b.keys);
    double both = fmin(fmax(small - (either.keys - large), 0), small);
    double both_variance = m->exact ? 0 : covariance(m, both);
    *result = (struct perhaps_comparison){
        .a = estimate(a.keys, a.variance, a.full),
        .b = estimate(b.keys, b.variance, b.full),
        .either = estimate(either.keys, either.variance, either.full),
        .both = estimate(both, either.variance - a.variance - b.variance + 2 * both_variance,
                         either.full),
        .a_in_b = share(a, b.variance, either, both, both_variance),
        .b_in_a = share(b, a.variance, either, both, both_variance),
        .jaccard = jaccard(a, b, either, both, both_variance),
    };
}

void overlap_estimate(const struct picking *m, const struct picked *picked,
                      struct perhaps_comparison *result)
{
    struct size a = { .keys = (double)picked->a }, b = { .keys = (double)picked->b };
    struct size either = { .keys = (double)picked->either };
    if (!m->exact) {
        a = size_of(m, picked->a);
        b = size_of(m, picked->b);
        either = size_of(m, picked->either);
    }
    fill_in(m, a, b, either, result);
}
