"""Bad input: the class of the error and a part of its message, for many mistakes.

A row of BAD is the mistake, the class, and a regular expression for the message.
"""
import keel
import numpy as np
import pytest
from keel import (DTypeError, DeviceError, InvalidError, NotFoundError, OutOfMemoryError, PreconditionError, RangeError, ShapeError)

X = keel.array([[1., 2.], [3., 4.]])
ONE, V = keel.array(1), keel.Variable([1., 2.])
F = keel.function(lambda x: x + 1)
MODULE = F.concrete(keel.f32[2, 2])
SESSION = keel.Session(MODULE)
PLAN = SESSION.prepare()
ITSELF = []
ITSELF.append(ITSELF)


class Broken:
    def __array__(self, *_, **__):
        raise RuntimeError("own")

    def __index__(self):
        raise RuntimeError("own")


class NoCapsule:
    def __dlpack__(self, **_):
        return 3


def traced(code, *args):
    return lambda: keel.function(code)(*args or (X,))


@keel.function
def endless(x):
    return endless(x)


def of_an_old_trace():
    kept = []
    keel.function(lambda x: (kept.append(x + 1), x)[1])(X)
    return kept[0] + 1


BAD = [
    # arrays
    (lambda: keel.array(None), TypeError, "NoneType cannot be converted to a tensor"),
    (lambda: keel.array(1j), TypeError, "complex cannot be converted to a tensor"),
    (lambda: keel.array(range(3)), TypeError, "range cannot be converted to a tensor"),
    (lambda: keel.zeros(2, 3), DTypeError, "not the number 3\n.*one argument, as in keel.zeros"),
    (lambda: keel.array([[1, 2], [3]]), InvalidError, "at depth 1 one has 1 entries, another 2"),
    (lambda: keel.array([1, [2]]), InvalidError, "another is a number"),
    (lambda: keel.array([1], 3), DTypeError, "not the number 3\n.*one argument, as in keel.zeros"),
    (lambda: keel.array(ITSELF), InvalidError, "deeper than 8"),
    (lambda: keel.array(2**70), InvalidError, "1180591620717411303424 does not fit in i64"),
    (lambda: keel.i8(float("inf")), DTypeError, "inf is a float"),
    (lambda: keel.u8([300]), InvalidError, "300 does not fit in u8"),
    (lambda: keel.array(Broken()), RuntimeError, "own"),
    (lambda: keel.array([Broken()]), RuntimeError, "own"),
    (lambda: keel.array(NoCapsule()), InvalidError, "unused DLPack capsule"),
    (lambda: keel.from_dlpack(3), TypeError, "__dlpack__, not int"),
    (lambda: keel.array(np.zeros((1,) * 9)), ShapeError, "9 dims.*at most 8"),
    (lambda: keel.array(np.zeros(2, "M8[D]")), TypeError, "datetime64"),
    (lambda: keel.zeros((-1,)), ShapeError, "dim -1"),
    (lambda: keel.zeros((2**40, 2**40)), OutOfMemoryError, "limit of one tensor"),
    (lambda: keel.zeros((2**70,)), RangeError, "does not fit in i64"),
    (lambda: keel.zeros("ab"), TypeError, "a size must be an int or a keel.Dim, not str"),
    (lambda: keel.arange(0, 5, 0), InvalidError, "step is 0"),
    (lambda: keel.stack([X, X[0]]), ShapeError, r"x\[1\] has 2 dims"),
    (lambda: X.to("nope"), DeviceError, 'no device "nope"; available devices:'),
    (lambda: X.astype("q"), DTypeError, "no dtype is called 'q'"),
    (lambda: X.item(), InvalidError, "4 elements.*\n.*reduce it first"),
    (lambda: X.__dlpack__(dl_device=(2, 0)), BufferError, "tensor.to"),
    # indices
    (lambda: X["a"], TypeError, "an index must be an integer, a slice, .*not str"),
    (lambda: X[{}], TypeError, "not dict"),
    (lambda: X[.5], DTypeError, "indices must be integers"),
    (lambda: X[2**70], RangeError, "does not fit in i64"),
    (lambda: X["a":], TypeError, "ends and the step of a slice must be integers, not str"),
    (lambda: X[::0], InvalidError, "step of a slice must not be 0"),
    (lambda: X[[5]], RangeError, r"index 5 is not in \[0, 2\)"),
    (lambda: X[0, 0, 0], RangeError, r"3 indices for f32\[2, 2\]"),
    (lambda: X[np.array([True, False, True])], ShapeError, "dim 0 of the mask is 3, but dim 0 of t is 2"),
    (lambda: X[Broken()], RuntimeError, "own"),
    # ops
    (lambda: keel.add(X, keel.array(1., "f64")), DTypeError, r"b is f64 but a is f32.*\n.*write keel.cast\(x, keel.f32\)"),
    (lambda: keel.add(X, None), InvalidError, "b must be given"),
    (lambda: keel.add(X, Broken()), RuntimeError, "own"),
    (lambda: keel.matmul(X, keel.array(1.)), ShapeError, "b has 0 dims"),
    (lambda: X << 1, DTypeError, "must be one of u8"),
    (lambda: ONE // 0, RangeError, "division by zero"),
    (lambda: keel.array([1], "u8") + 300, InvalidError, "300 does not fit in u8"),
    (lambda: keel.reshape(X, (-1, -1)), ShapeError, "only one dim may be -1"),
    (lambda: keel.reduce_sum(X, axes=[2**70]), RangeError, "does not fit in i64"),
    (lambda: keel.reduce_sum(X, axes=[5]), ShapeError, r"axes = 5 is not in \[-2, 2\)"),
    (lambda: keel.split(X, 3), TypeError, "'sizes' must be a list"),
    (lambda: keel.gather(X, [.5]), DTypeError, "i is f32 but must be one of i32, i64"),
    (lambda: keel.random(keel.u64([1, 2]), (2,), kind="even"), InvalidError, "one of uniform, normal"),
    (lambda: keel.random(keel.u64([1, 2]), (2,), kind="\ud800"), TypeError, "'kind' must be a string"),
    (lambda: keel.concat([]), ShapeError, "at least 1 operand"),
    # devices and reports
    (lambda: keel.device("tpu"), DeviceError, 'no device "tpu"'),
    (lambda: keel.device(3), TypeError, "name of a device must be a string, not 3"),
    (lambda: keel.report("nope"), InvalidError, "expected one of plugins, devices"),
    (lambda: keel.load_plugin("/nope.so"), NotFoundError, "/nope.so"),
    # functions
    (lambda: keel.function(3), TypeError, "takes a callable.*got 3"),
    (lambda: keel.function(lambda x: x, nonsense=1)(X), InvalidError, 'option "nonsense" is unknown; the options are'),
    (lambda: keel.function(lambda x, y: x, signature=[keel.f32[2]]), InvalidError, "1 types, the function 2 parameters"),
    (lambda: keel.function(lambda x: x, signature="x: f32[3]")(X), ShapeError, r"Cannot feed value of shape \[2, 2\]"),
    (lambda: keel.function(lambda x: x, signature="x: f32[")(X), InvalidError, "expected a dim"),
    (lambda: F(), TypeError, r"<lambda>\(x\): missing a required argument: 'x'"),
    (lambda: F(2**70), InvalidError, "does not fit in i64"),
    (lambda: F(ITSELF), InvalidError, "contains itself"),
    (lambda: F("a\0b"), InvalidError, "contains a NUL"),
    (lambda: F("\ud800"), UnicodeEncodeError, "surrogates"),
    (lambda: F.concrete(keel.f32["b"]), ValueError, "symbolic sizes"),
    (lambda: endless(X), InvalidError, "calls itself.*\n.*write the recursion as a loop"),
    (traced(lambda x: object()), TypeError, "a result is object"),
    (traced(lambda x: x[0, 0].item()), PreconditionError, "no value yet.*\n.*keel.cond"),
    (traced(lambda x: np.asarray(x)), PreconditionError, "no value yet"),
    (of_an_old_trace, PreconditionError, "has ended.*\n.*return it as a result"),
    # control flow
    (lambda: keel.cond(X, lambda: 1, lambda: 2), InvalidError, "predicate is .*expected bool"),
    (lambda: keel.switch(0, []), InvalidError, "no branches"),
    (traced(lambda i: keel.switch(i, []), ONE), InvalidError, "no branches"),
    (lambda: keel.while_loop(None, lambda i: True, lambda i: i), InvalidError, "include None"),
    (lambda: keel.while_loop(0, lambda i: 3, lambda i: i), InvalidError, "test is i32"),
    (lambda: keel.scan(0., X, lambda c, r: c), InvalidError, r"must return \(carry, y\), not Tensor"),
    (traced(lambda x: keel.scan(0., x, lambda c, r: c)), InvalidError, r"must return \(carry, y\), not Tensor"),
    (lambda: keel.scan(0., X, lambda c, r: (c, r), length=7), ShapeError, "2 entries, not 7"),
    (lambda: keel.print("{} {}", X), InvalidError, "2 placeholders"),
    (lambda: keel.assert_(False, "boom"), InvalidError, "boom"),
    # variables and tapes
    (lambda: keel.Variable(1., name=3), TypeError, "name of a variable must be a string, not 3"),
    (lambda: V.assign([1., 2., 3.]), ShapeError, r"is f32\[2\], got f32\[3\]"),
    (lambda: V.assign(keel.array([1, 2])), DTypeError, r"is f32\[2\], got i32\[2\]"),
    (lambda: keel.Tape().watch(3), TypeError, "tensor or a variable, not int"),
    (lambda: keel.Tape().gradient(X, X, seeds=[X, X]), ValueError, "2 seeds for 1 targets"),
    (lambda: keel.grad(lambda x: x * 2)(ONE), InvalidError, "only floats have gradients"),
    (lambda: keel.grad(lambda x: None)(X), TypeError, "NoneType"),
    # files, sessions, plans
    (lambda: keel.load("/nope.keel"), NotFoundError, "cannot read '/nope.keel'"),
    (lambda: keel.load(3), TypeError, "not int"),
    (lambda: keel.parse("hello"), InvalidError, "1:1: expected 'keel'"),
    (lambda: keel.save("/nope/m.keel", f=MODULE), NotFoundError, "cannot save"),
    (lambda: keel.save("m.keel"), InvalidError, "there is no entry"),
    (lambda: keel.save("m.keel", f=3), TypeError, "f=3"),
    (lambda: keel.save_checkpoint("a.ckpt", 3), InvalidError, "no keel.Variable in 3"),
    (lambda: MODULE.variable("q"), NotFoundError, "no variable 'q'"),
    (lambda: keel.Session(MODULE, "tpu"), DeviceError, 'no device "tpu"'),
    (lambda: keel.Session(MODULE, threads="many"), InvalidError, "expected a number from 1"),
    (lambda: SESSION.run(), InvalidError, 'You must feed a value for parameter "x"'),
    (lambda: SESSION.run(x=[1.]), ShapeError, "Cannot feed value of shape"),
    (lambda: SESSION.run("q", {"x": X}), NotFoundError, "no value 'q'"),
    (lambda: SESSION.run(3, {"x": X}), TypeError, "feeds and fetches names.*not int"),
    (lambda: PLAN(X, X), InvalidError, "takes 1 inputs, got 2"),
    (lambda: PLAN(np.ones((2, 2))), DTypeError, "got dtype f64, expected f32"),
    (lambda: PLAN(x=X), TypeError, "positional inputs")]


@pytest.mark.parametrize("row", range(len(BAD)))
def test_bad_input_is_a_clear_error_and_changes_nothing(row):
    call, kind, text = BAD[row]
    with pytest.raises(kind, match="(?s)" + text) as caught:
        call()
    assert "incompatible function arguments" not in str(caught.value) and not isinstance(caught.value, SystemError)
    assert keel.executing_eagerly() and (X + 1)[1, 1].item() == 5 and V.tolist() == [1, 2] and PLAN(X)[0, 0].item() == 2


def test_each_code_has_a_class():
    from keel import errors
    kinds = {code: type(errors._make(int(code), "", "said", "op", "node", "plugin", "hint")) for code in keel.Code}
    assert kinds.pop(keel.Code.UNKNOWN) is keel.Error
    assert len(set(kinds.values())) == len(kinds) == 10 and all(issubclass(k, keel.Error) for k in kinds.values())
    made = errors._make(99, "", "said", "op", "node", "plugin", "hint")  # of a later libkeel
    assert type(made) is keel.Error and (made.op, made.node, made.plugin, made.hint) == ("op", "node", "plugin", "hint")
    assert str(made) == "said\n  hint: hint"


def test_indices_are_also_arrays_and_ends_beyond_the_tensor():
    x = np.arange(12.).reshape(4, 3)
    for index in (np.array([2, 0]), np.int64(1), np.array(1), slice(2**70), slice(-2**70, 2**70), slice(2**62, None, -1),
                  slice(None, -2**70, -1), slice(-2**63, None)):
        assert keel.array(x)[index].tolist() == x[index].tolist()
