"""Functions of tf.linalg whose operands or results differ from those of Keel's ops. Listed in names.py."""
from .. import _keel
from .._keel import ops


def _swapped(x):
    x = _keel.array(x)
    rank = len(x.shape)
    return ops.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def adjoint(x, wanted):
    """The transposed matrices, if wanted."""
    return _swapped(x) if wanted else x


def svd(tensor, full_matrices=False, compute_uv=True):
    """Singular values, then u and v with tensor = u diag(s) v'. full_matrices must be False."""
    _reduced("svd", full_matrices)
    u, s, v = ops.svd(tensor)
    return (s, u, _swapped(v)) if compute_uv else s


def qr(input, full_matrices=False):
    """q and r. full_matrices must be False."""
    _reduced("qr", full_matrices)
    return ops.qr(input)


def _reduced(name, full_matrices):
    if full_matrices:
        raise ValueError(f"tf.linalg.{name}: full_matrices=True is not supported; expected False, the reduced factors")


def band_part(input, num_lower, num_upper):
    """The elements from num_lower diagonals below the main one to num_upper above; a negative number: all."""
    lower = input if num_lower < 0 else ops.triangle(input, upper=True, k=-num_lower)
    return lower if num_upper < 0 else ops.triangle(lower, k=num_upper)
