"""keel.einsum against numpy.einsum: eager, traced, with sizes that only a run knows; gradients by differences; the order of products."""
import keel
import numpy as np
import pytest

SIZES = dict(zip("abcdefijklmn", (2, 3, 1, 4, 2, 3, 3, 4, 2, 5, 1, 3)))
EQUATIONS = ["ij,jk->ik", "ij,jk", "ij,kj->ik", "ji,jk->ik", "ij->ji", "ba", "ij->", "ij->j", "i,i->", "i,j->ij", "ij,ij->ij", "ij,ij->i", "aij,ajk->aik",
             "aij,jk->aik", "abij,abjk->abik", "ij,jk,kl->il", "ij,jk,kl,lm->im", "ij,kl->ijkl", "ik,jk,lk->ijl", "a,ab,abc->abc",
             "i->i", " i j , j k -> k i ", "ijk,ilm,njm,nlk->", "ij,i,j->", "bi,bj,bk->bijk", "ja,ij,bi->ab", "abcde,bd->ace"]
SPECIAL = [("ii->i", [(3, 3)]), ("ii", [(4, 4)]), ("iij->ij", [(2, 2, 3)]), ("iii->i", [(3, 3, 3)]), ("ijij->ji", [(2, 3, 2, 3)]), ("ii,ij->j", [(3, 3), (3, 2)]),
           ("...ij,...jk->...ik", [(2, 3, 4), (4, 2)]), ("...ij->...ji", [(2, 1, 3, 4)]), ("...,...->...", [(3, 1), (1, 4)]), ("i...->...i", [(3, 2, 4)]),
           ("...i,...i", [(2, 3, 4), (3, 4)]), ("...", [(2, 3)]), ("", [()]), (",->", [(), ()]), (",i->i", [(), (3,)]), ("a...b,b->...a", [(2, 3, 4, 5), (5,)]),
           ("ij,jk->ik", [(0, 3), (3, 2)]), ("ij,jk->ik", [(2, 0), (0, 3)]), ("ij->i", [(2, 0)]), ("ii->", [(0, 0)]), ("ij,jk->ik", [(1, 1), (1, 1)]),
           ("ij,ij->ij", [(1, 3), (2, 1)]), ("ij,jk->ik", [(2, 1), (3, 4)]), ("...ii->...", [(2, 3, 3)]), ("i,i,i,i,i,i,i,i,i,ij->j", [(3,)] * 9 + [(3, 2)])]


def shapes(equation):
    terms = equation.replace(" ", "").split("->")[0].split(",")
    return [tuple(SIZES[label] for label in term) for term in terms]


CASES = [(equation, shapes(equation)) for equation in EQUATIONS] + SPECIAL
every = pytest.mark.parametrize("equation, dims", CASES, ids=lambda v: v if isinstance(v, str) else "")


def drawn(dims, dtype=np.float64):
    rng = np.random.default_rng(5)
    return [rng.integers(-4, 5, shape).astype(dtype) for shape in dims]


@every
def test_numpy_gives_the_same(device, equation, dims):
    for dtype in (np.float32, np.int32, np.float64):
        operands = drawn(dims, dtype)
        want = np.einsum(equation, *operands)
        for got in (keel.einsum(equation, *operands), keel.function(lambda *x: keel.einsum(equation, *x))(*operands)):
            assert got.shape == want.shape and got.dtype == want.dtype.name
            np.testing.assert_array_equal(got.numpy(), want)  # whole numbers: exact


@every
def test_gradients(equation, dims):
    operands = drawn(dims)
    seed = np.random.default_rng(7).normal(size=np.shape(np.einsum(equation, *operands)))
    loss = lambda *x: keel.reduce_sum(keel.einsum(equation, *x) * seed)
    for i, gradient in enumerate(keel.grad(loss, argnums=tuple(range(len(dims))))(*map(keel.array, operands))):
        want = np.zeros(dims[i])
        for place in np.ndindex(dims[i]):  # linear in each operand: the difference is exact but for rounding
            moved = [x.copy() for x in operands]
            moved[i][place] += 1
            want[place] = np.sum((np.einsum(equation, *moved) - np.einsum(equation, *operands)) * seed)
        np.testing.assert_allclose(gradient.numpy(), want, rtol=1e-9, atol=1e-9)


def test_sizes_that_a_run_knows():
    f = keel.function(lambda a, b: keel.einsum("nij,jk->nik", a, b), signature=[keel.f64["n", 3, "m"], keel.f64["m", "k"]])
    for n, m, k in ((1, 1, 1), (4, 2, 5), (0, 3, 2), (2, 0, 3)):
        a, b = drawn([(n, 3, m), (m, k)])
        np.testing.assert_array_equal(f(a, b).numpy(), np.einsum("nij,jk->nik", a, b))
    assert f.trace_count == 1


def test_not_a_number_stays_where_it_belongs():
    x = np.array([[1, np.nan], [np.inf, 2]], np.float32)
    np.testing.assert_array_equal(keel.einsum("ii->i", x).numpy(), [1, 2])
    np.testing.assert_array_equal(keel.einsum("ij->i", x).numpy(), [np.nan, np.inf])


def products(equation, *dims):
    """The types of the results of the products, in their order."""
    f = keel.function(lambda *x: keel.einsum(equation, *x))
    text = f.concrete(*[np.ones(shape, np.float32) for shape in dims]).text()
    return [line.split(" : ")[-1] for line in text.split("\n") if "= einsum(" in line]


def test_the_order_has_the_fewest_multiplications():
    assert products("ij,jk,kl->il", (50, 40), (40, 30), (30, 2)) == ["f32[40, 2]", "f32[50, 2]"]
    assert products("ij,jk,kl->il", (2, 40), (40, 30), (30, 50)) == ["f32[2, 30]", "f32[2, 50]"]


@pytest.mark.parametrize("equation, dims, error, words", [
    ("ij,jk->ik", [(2, 3)], keel.InvalidError, "2 terms for 1 operands"), ("i1->i", [(2, 3)], keel.InvalidError, "'i1' in equation"),
    ("i..j", [(2, 3)], keel.InvalidError, "at most one"), ("......", [(2,)], keel.InvalidError, "at most one"), ("i->i->i", [(2,)], keel.InvalidError, "is no term"),
    ("ijk", [(2, 3)], keel.InvalidError, "names 3 dims of operand 0, which has 2"), ("i->i", [(2, 3)], keel.InvalidError, "names 1 dims"),
    ("i->ii", [(2,)], keel.InvalidError, "label 'i' of the result"), ("i->j", [(2,)], keel.InvalidError, "label 'j' of the result"),
    ("ij,jk->ik", [(2, 3), (4, 2)], keel.ShapeError, "label 'j' of equation 'ij,jk->ik' has sizes 3 and 4"),
    ("ii->i", [(2, 3)], keel.ShapeError, "label 'i'"), ("...,...", [(2,), (3,)], keel.ShapeError, "a dim of '...'"),
    (3, [(2,)], keel.InvalidError, "the equation is a int")])
def test_bad_equations(equation, dims, error, words):
    with pytest.raises(error) as e:
        keel.einsum(equation, *drawn(dims))
    assert words in str(e.value)


def test_operands_of_two_dtypes():
    with pytest.raises(keel.InvalidError, match="f32"):
        keel.einsum("ij,jk", np.ones((2, 2), np.float32), np.ones((2, 2)))
