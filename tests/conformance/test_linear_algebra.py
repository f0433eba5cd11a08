"""Factors, solutions and spectra of matrices against numpy.linalg: batches, empty matrices, wide and tall ones, all float dtypes; errors;
NaN and infinities; the choices that the documents make where the mathematics leaves one."""
import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError
from tested_devices import DEVICES

SIZES = [0, 1, 2, 5, 33]
UNIT = {np.float32: 2e-6, np.float64: 4e-15, np.float16: 2e-3, ml_dtypes.bfloat16: 1.6e-2}  # times the size: the tolerance
pytestmark = pytest.mark.parametrize("device", DEVICES)
dtypes = pytest.mark.parametrize("dtype", UNIT, ids=lambda t: t.__name__)
RESULTS = {"qr": 2, "svd": 3, "eigh": 2}


def turned(x):
    return np.swapaxes(x, -1, -2)


def drawn(*dims):
    return np.random.default_rng(sum(dims)).standard_normal(dims)


def regular(*batch, n):
    """Far from singular."""
    return drawn(*batch, n, n) / max(n, 1) ** 0.5 + 2 * np.eye(n)


def definite(*batch, n):
    a = drawn(*batch, n, n)
    return a @ turned(a) / max(n, 1) + np.eye(n)


def run(context, device, op, *operands, **attrs):
    made = context.apply(device, op, *operands, n_out=RESULTS.get(op, 1), **attrs)
    return [np.array(y) for y in made] if isinstance(made, list) else np.array(made)


def near(got, wanted, unit, size):
    np.testing.assert_allclose(np.asarray(got, np.float64), wanted, rtol=0, atol=unit * (size + 1) * max(1, np.abs(wanted).max(initial=0)))


def orthonormal(q, unit):
    q = q.astype(np.float64)
    near(turned(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])), unit, q.shape[-2])


@pytest.fixture(params=[(), (3,), (2, 0), (2, 1)], ids=str)
def batch(request):
    return request.param


@dtypes
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(context, device, batch, n, dtype):
    a = definite(*batch, n=n).astype(dtype)
    got = run(context, device, "cholesky", np.tril(a) + np.triu(np.full((n, n), np.nan, dtype), 1))  # reads one triangle
    assert got.dtype == dtype and got.shape == a.shape
    near(got, np.linalg.cholesky(a.astype(np.float64)), UNIT[dtype], n)
    assert not np.triu(got, 1).any()


@dtypes
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solve(context, device, n, dtype, lower, ta, unit):
    for batch, k in (((), 1), ((2,), 3), ((2, 2), 0), ((0,), 2)):
        a = regular(*batch, n=n).astype(dtype)
        part = (np.tril if lower else np.triu)(a.astype(np.float64), 0)
        unread = np.where(np.tril(np.ones((n, n)), -1) if not lower else np.triu(np.ones((n, n)), 1), np.nan, 0)
        if unit:
            part = part - part * np.eye(n) + np.eye(n)
            unread = unread + np.where(np.eye(n), np.inf, 0)
        b = drawn(*batch, n, k).astype(dtype)
        got = run(context, device, "triangular_solve", a + unread.astype(dtype), b, lower=lower, ta=ta, unit=unit)
        near(got, np.linalg.solve(turned(part) if ta else part, b.astype(np.float64)), 4 * UNIT[dtype], n)


@dtypes
@pytest.mark.parametrize("n", SIZES)
def test_solve_inv_det(context, device, batch, n, dtype):
    a = regular(*batch, n=n).astype(dtype)
    a = np.roll(a, 1, -1)  # needs pivots
    wide = a.astype(np.float64)
    for k in (0, 1, 3):
        b = drawn(*batch, n, k).astype(dtype)
        for ta in (False, True):
            near(run(context, device, "solve", a, b, ta=ta), np.linalg.solve(turned(wide) if ta else wide, b.astype(np.float64)), 4 * UNIT[dtype], n)
    near(run(context, device, "inv", a), np.linalg.inv(wide), 4 * UNIT[dtype], n)
    with np.errstate(over="ignore"):
        wanted = np.linalg.det(wide).astype(dtype).astype(np.float64)
    got = run(context, device, "det", a)
    assert got.shape == batch and np.array_equal(np.isinf(got), np.isinf(wanted))
    near(np.where(np.isinf(got), 0, got), np.where(np.isinf(wanted), 0, wanted), 4 * UNIT[dtype], n)


@dtypes
@pytest.mark.parametrize("m, n", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 5), (5, 1), (2, 2), (7, 4), (4, 7), (33, 33), (33, 20), (20, 33)])
def test_qr_and_svd(context, device, batch, m, n, dtype):
    a, k = drawn(*batch, m, n).astype(dtype), min(m, n)
    wide, unit = a.astype(np.float64), UNIT[dtype] * 4
    q, r = run(context, device, "qr", a)
    assert q.shape == (*batch, m, k) and r.shape == (*batch, k, n) and q.dtype == r.dtype == dtype
    near(q.astype(np.float64) @ r.astype(np.float64), wide, unit, m + n)
    orthonormal(q, unit)
    assert not np.tril(r, -1).any() and (np.diagonal(r, axis1=-2, axis2=-1) >= 0).all()
    u, s, v = run(context, device, "svd", a)
    assert u.shape == (*batch, m, k) and s.shape == (*batch, k) and v.shape == (*batch, k, n)
    near(s, np.linalg.svd(wide, compute_uv=False), unit, m + n)
    near(u.astype(np.float64) * s.astype(np.float64)[..., None, :] @ v.astype(np.float64), wide, unit, m + n)
    orthonormal(u, unit)
    orthonormal(turned(v), unit)
    assert (np.diff(s.astype(np.float64)) <= 0).all() and (s >= 0).all()
    assert signs_are_fixed(turned(v))


@dtypes
@pytest.mark.parametrize("n", SIZES)
def test_eigh(context, device, batch, n, dtype):
    a = drawn(*batch, n, n)
    a = (a + turned(a)).astype(dtype)
    w, v = run(context, device, "eigh", np.tril(a) + np.triu(np.full((n, n), np.nan, dtype), 1))
    wide, unit = a.astype(np.float64), UNIT[dtype] * 4
    assert w.shape == (*batch, n) and v.shape == a.shape and w.dtype == v.dtype == dtype
    near(w, np.linalg.eigvalsh(wide), unit, n)
    v64 = v.astype(np.float64)
    near(v64 * w.astype(np.float64)[..., None, :] @ turned(v64), wide, unit, n)
    orthonormal(v, unit)
    assert (np.diff(w.astype(np.float64)) >= 0).all() and signs_are_fixed(v)


def signs_are_fixed(v):
    """In each column, the first of the elements above 0.9 of the largest magnitude is positive."""
    columns = turned(v.astype(np.float64)).reshape(-1, v.shape[-2]) if v.size else ()
    for column in columns:
        size = np.abs(column)
        if np.abs(size / size.max() - 0.9).min() > 0.01 and column[size > 0.9 * size.max()][0] < 0:
            return False
    return True


def test_equal_elements_of_a_vector_do_not_change_its_sign(context, device):
    """The magnitudes are equal but for rounding, so the largest one is a matter of chance."""
    rng = np.random.default_rng(1)
    for scale in rng.uniform(0.1, 10, 20):
        a = np.array([[2, 1], [1, 2]]) * scale
        np.testing.assert_allclose(run(context, device, "eigh", a)[1], np.array([[1, 1], [-1, 1]]) / 2 ** 0.5, rtol=1e-12)
        np.testing.assert_allclose(run(context, device, "svd", a)[2], np.array([[1, 1], [1, -1]]) / 2 ** 0.5, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-0.9, 0.9])
def test_very_large_and_small_elements(context, device, dtype, power):
    """Their squares are infinite or 0."""
    scale = dtype(2.0 ** int(power * -np.finfo(dtype).minexp))
    a = drawn(6, 4).astype(dtype)
    q, r = run(context, device, "qr", a * scale)
    near(q @ (r / scale), a, UNIT[dtype] * 4, 10)
    u, s, v = run(context, device, "svd", a * scale)
    near(u * (s / scale) @ v, a, UNIT[dtype] * 4, 10)
    b = (a[:4] + a[:4].T).astype(dtype)
    w, v = run(context, device, "eigh", b * scale)
    near(v * (w / scale) @ v.T, b, UNIT[dtype] * 4, 10)


@pytest.mark.parametrize("downwards", [False, True])
def test_elements_of_very_different_size(context, device, downwards):
    """From 1 to 1e-200: both ends of a sweep."""
    scale = 10.0 ** -np.linspace(0, 100, 101)[::-1 if downwards else 1]
    a = drawn(101, 101) * scale * scale[:, None]
    b = a + a.T
    w, v = run(context, device, "eigh", b)
    near(v * w @ v.T, b, 1e-14, 10)
    u, s, t = run(context, device, "svd", a)
    near(u * s @ t, a, 1e-14, 10)
    for factor in (v, u, t.T):
        orthonormal(factor, 1e-14)


def test_deficient_matrices_have_orthonormal_vectors(context, device):
    for a in (np.zeros((4, 3)), np.ones((5, 5)), np.outer(np.arange(7.0), [1, 0, 2]), np.diag([3.0, 0, 1]), np.full((3, 6), -2.0)):
        q, r = run(context, device, "qr", a)
        u, s, v = run(context, device, "svd", a)
        for factor in (q, u, v.T):
            orthonormal(factor, 1e-14)
        near(q @ r, a, 1e-14, 10)
        near(u * s @ v, a, 1e-14, 10)
    w, v = run(context, device, "eigh", np.eye(4))
    np.testing.assert_array_equal(w, np.ones(4))
    orthonormal(v, 1e-14)


ERRORS = [("cholesky", "definite", "matrix 2 is not positive definite", 0.0), ("cholesky", "definite", "matrix 2 is not positive definite", -1.0),
          ("solve", "regular", "matrix 2 is singular", 0.0), ("inv", "regular", "matrix 2 is singular", 0.0),
          ("triangular_solve", "regular", "matrix 2 is singular: element 1 of its diagonal is 0", None)]


@dtypes
@pytest.mark.parametrize("op, kind, words, by", ERRORS, ids=lambda v: str(v))
def test_errors_name_the_first_matrix(context, device, dtype, op, kind, words, by):
    a = {"definite": definite, "regular": regular}[kind](3, 2, n=3).reshape(3, 2, 3, 3).astype(dtype)
    for at in ((1, 0), (2, 1)):
        if by is None:
            a[at][1, 1] = 0
        else:
            a[at] *= by
    with pytest.raises(KeelError, match=words) as e:
        run(context, device, op, a, *([a] if "solve" in op else []))
    assert e.value.code == "RANGE"


def test_the_determinant_of_a_singular_matrix_is_0(context, device):
    for a in (np.zeros((2, 2)), np.ones((4, 4)), np.array([[1.0, 2], [2, 4]]), np.zeros((1, 1))):
        assert run(context, device, "det", a) == 0
    np.testing.assert_allclose(run(context, device, "det", np.array([[[0.0, 1], [1, 0]], [[2, 0], [0, 3]]])), [-1, 6], rtol=1e-15)


@dtypes
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("op", ["cholesky", "triangular_solve", "solve", "inv", "det", "qr", "svd", "eigh"])
def test_nan_and_infinities_make_their_matrix_nan(context, device, dtype, op, value):
    n = 20
    a = definite(3, n=n).astype(dtype)
    more = [regular(3, n=n).astype(dtype)] if "solve" in op else []
    for at in ((0, 0), (n - 1, 3), (n - 1, n - 1)):
        for operand in range(1 + len(more)):
            given = [a.copy(), *(x.copy() for x in more)]
            given[operand][1][at] = value
            got, clean = (run(context, device, op, *x) for x in (given, [a, *more]))
            for y, z in zip(got, clean, strict=True) if op in RESULTS else [(got, clean)]:
                assert np.isnan(y[1]).all()
                np.testing.assert_array_equal(y[[0, 2]], z[[0, 2]])


def test_operands_that_do_not_fit(context, device):
    square, wide = np.eye(3), np.ones((3, 4))
    for op, *operands in [("cholesky", wide), ("det", wide), ("inv", wide), ("eigh", wide), ("solve", wide, square), ("solve", square, np.ones((4, 1))),
                          ("triangular_solve", square, np.ones(3)), ("qr", np.ones(3)), ("svd", np.array(1.0)), ("solve", square, np.ones((2, 3, 1)))]:
        with pytest.raises(KeelError, match=op) as e:
            run(context, device, op, *operands)
        assert e.value.code == "INVALID"
    with pytest.raises(KeelError, match="det"):
        run(context, device, "det", np.eye(2, dtype=np.int32))
