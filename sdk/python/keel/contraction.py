"""keel.einsum: sums of products by an equation, composed of transposes, sums and matrix products of two operands at a time.

A Factor is a tensor with a label for each of its dims. Labels are letters, and numbers for the dims of an ellipsis: 0 for its last
dim, 1 for the one before, so that those of different operands broadcast. A dim of 1 that broadcasts loses its label.
"""
import math
import re
from collections import namedtuple

from . import _keel
from ._keel import ops
from .errors import InvalidError, ShapeError

Factor = namedtuple("Factor", "x labels")
SEARCHED = 8  # operands for which all orders are compared
UNKNOWN = 128  # in comparisons of orders, a size that is known in a run only


def einsum(equation, *operands):
    """Sums of products, as numpy.einsum(): einsum("ij,jk->ik", a, b) is a matrix product, "ii->i" a diagonal, "ii" a trace,
    "...ij->...ji" a transpose of the last dims. A label is a letter and names a dim of one size, or of 1, which broadcasts; "..."
    stands for the dims that have none. Labels that the result lacks are summed over. Without "->" the result has the dims of "...",
    then the labels that occur once, in alphabetical order. Operands have one dtype; up to 8 are multiplied in the order
    with the fewest multiplications. Raises InvalidError for an equation that is wrong or does not fit the operands, ShapeError
    for a label with two sizes."""
    tensors = [_keel.array(x) for x in operands]
    terms, result = _parsed(equation, tensors)
    factors = [_diagonal(equation, Factor(x, term)) for x, term in zip(tensors, terms)]
    sizes = _sizes(equation, factors)
    factors = [_without_broadcast(f, sizes) for f in factors]
    while len(factors) > SEARCHED:
        rest = factors[2:]
        factors = [_joined(factors[:2], _needed(rest, result), sizes), *rest]
    return _in_order(_joined(factors, set(result), sizes), result)


# ---- equations

def _parsed(equation, tensors):
    """The labels of each operand, and of the result."""
    if not isinstance(equation, str):
        raise InvalidError(f"einsum: the equation is a {type(equation).__name__}, expected a str such as 'ij,jk->ik'")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise InvalidError(f"einsum: equation {equation!r} has {len(terms)} terms for {len(tensors)} operands")
    for term in (*terms, right):
        if not re.fullmatch(r"[a-zA-Z]*(\.\.\.)?[a-zA-Z]*", term):
            raise InvalidError(f"einsum: {term!r} in equation {equation!r} is no term; expected letters and at most one '...'")
    dots = [_dots(equation, i, *each) for i, each in enumerate(zip(terms, tensors))]
    labels = [_labels(*each) for each in zip(terms, dots)]
    every = [label for each in labels for label in each]
    if not arrow:
        once = {label for label in every if isinstance(label, str) and every.count(label) == 1}
        return labels, [*reversed(range(max(dots))), *sorted(once)]
    result = _labels(right, max(dots))
    for label in result:
        if result.count(label) > 1 or (label not in every and isinstance(label, str)):
            raise InvalidError(f"einsum: label {label!r} of the result must occur once there and in a term of {equation!r}")
    return labels, result


def _dots(equation, i, term, x):
    """The number of dims that the ellipsis of a term stands for."""
    named = len(term.replace("...", ""))
    if named > x.ndim or (named < x.ndim and "..." not in term):
        raise InvalidError(f"einsum: term {term!r} of equation {equation!r} names {named} dims of operand {i}, which has {x.ndim}",
                           hint="'...' stands for the dims that have no label")
    return x.ndim - named


def _labels(term, dots):
    head, dotted, tail = term.partition("...")
    return [*head, *(reversed(range(dots)) if dotted else ()), *tail]


# ---- sizes

def _sizes(equation, factors):
    """The size of each label: not 1, if another operand has a larger one."""
    sizes = {}
    for f in factors:
        for label, size in zip(f.labels, f.x.shape):
            before = sizes.setdefault(label, size)
            if _is_one(before):
                sizes[label] = size
            elif isinstance(before, int) and isinstance(size, int) and size not in (1, before):
                name = f"label {label!r}" if isinstance(label, str) else "a dim of '...'"
                raise ShapeError(f"einsum: {name} of equation {equation!r} has sizes {before} and {size}")
    return sizes


def _is_one(size):
    return isinstance(size, int) and size == 1


def _without_broadcast(f, sizes):
    """Without the dims of 1 whose label has another size elsewhere."""
    kept = [i for i, label in enumerate(f.labels) if not _is_one(f.x.shape[i]) or _is_one(sizes[label])]
    if len(kept) == len(f.labels):
        return f
    return Factor(ops.reshape(f.x, [f.x.shape[i] for i in kept]), [f.labels[i] for i in kept])


# ---- of one operand

def _diagonal(equation, f):
    """x[i, i] as x[i]."""
    x, labels = f
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            _sizes(equation, [Factor(x, labels)])
            here = ops.iota(x.shape, axis=i) == ops.iota(x.shape, axis=j)
            x = ops.reduce_sum(ops.select(here, x, ops.cast(0, x.dtype)), [j])
            labels = labels[:j] + labels[j + 1:]
    return Factor(x, labels)


def _in_order(f, labels):
    return f.x if f.labels == labels else ops.transpose(f.x, [f.labels.index(label) for label in labels])


def _summed(f, needed):
    """Without the labels that are not needed."""
    axes = [i for i, label in enumerate(f.labels) if label not in needed]
    return Factor(ops.reduce_sum(f.x, axes), [label for label in f.labels if label in needed]) if axes else f


# ---- of several

def _needed(factors, result):
    return {label for f in factors for label in f.labels} | set(result)


def _joined(factors, needed, sizes):
    """The product of the factors with the needed labels, in the order of the fewest multiplications."""
    kept, parts = _order([f.labels for f in factors], needed, sizes)

    def join(members):
        if len(members) == 1:
            return _summed(factors[min(members)], kept[members])
        return _product(*map(join, parts[members]), kept[members], sizes)

    return join(frozenset(range(len(factors))))


def _order(terms, needed, sizes):
    """For each set of terms its labels that are needed outside of it, and the two parts whose product is cheapest."""
    amount = {label: size if isinstance(size, int) else UNKNOWN for label, size in sizes.items()}
    kept, parts, cost = {}, {}, {}
    for number in range(1, 2 ** len(terms)):
        members = frozenset(i for i in range(len(terms)) if number >> i & 1)
        outside = needed.union(*(terms[i] for i in range(len(terms)) if i not in members))
        kept[members] = {label for i in members for label in terms[i]} & outside
        cost[members] = 0 if len(members) == 1 else math.inf
        for one in _parts(members):
            other = members - one
            price = cost[one] + cost[other] + math.prod(amount[label] for label in kept[one] | kept[other])
            if price < cost[members]:
                cost[members], parts[members] = price, (one, other)
    return kept, parts


def _parts(members):
    """The proper subsets that contain the first member: the largest first, so that equal orders go from the left."""
    first, *others = sorted(members)
    for number in reversed(range(2 ** len(others) - 1)):
        yield frozenset([first, *(o for i, o in enumerate(others) if number >> i & 1)])


def _product(a, b, kept, sizes):
    shared = [label for label in a.labels if label in b.labels]
    batch = [label for label in shared if label in kept]
    inner = [label for label in shared if label not in kept]
    left, right = ([label for label in f.labels if label not in shared] for f in (a, b))
    extent = lambda labels: [sizes[label] for label in labels]
    if not inner:  # no sums
        x = ops.reshape(_in_order(a, batch + left), [*extent(batch + left), *[1] * len(right)])
        y = ops.reshape(_in_order(b, batch + right), [*extent(batch), *[1] * len(left), *extent(right)])
        return Factor(x * y, batch + left + right)
    x, turned_x = _matrices(a, batch, left, inner, extent)
    y, turned_y = _matrices(b, batch, inner, right, extent)
    product = ops.matmul(x, y, ta=turned_x, tb=turned_y)
    if not _are_matrices(batch, left, right):
        product = ops.reshape(product, extent(batch + left + right))
    return Factor(product, batch + left + right)


def _are_matrices(batch, rows, columns):
    return len(batch) <= 1 and len(rows) == len(columns) == 1


def _matrices(f, batch, rows, columns, extent):
    """f as [batch, rows, columns], or transposed where it has this order already, and whether it is."""
    turned = bool(rows and columns) and f.labels == batch + columns + rows
    first, last = (columns, rows) if turned else (rows, columns)
    x = _in_order(f, batch + first + last)
    if not _are_matrices(batch, first, last):
        x = ops.reshape(x, [math.prod(extent(group)) for group in ([batch] if batch else []) + [first, last]])
    return x, turned
