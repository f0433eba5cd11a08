"""Statistics that the comparisons share."""
import math


def interval(values):
    """95 % interval of the median: the k-th smallest and largest, k from the binomial distribution."""
    ordered, n, k, below = sorted(values), len(values), 0, 0.0
    while (below := below + math.comb(n, k) / 2**n) <= 0.025:
        k += 1
    return ordered[max(0, k - 1)], ordered[min(n - 1, n - k)]
