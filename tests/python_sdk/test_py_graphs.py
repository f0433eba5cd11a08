"""Graphs built by programs: names, nodes, scopes, variables, gradients, devices, sessions; and wrong input."""
import pickle
import threading

import keel
import numpy as np
import pytest


@pytest.fixture
def g(device):
    return keel.Graph()


def test_ops_are_written_and_run_when_a_session_asks(g):
    with g.as_default() as entered:
        assert entered is g and keel.default_graph() is g and not keel.executing_eagerly()
        a, b = keel.constant(3, name="a"), keel.constant(5)
        c = a + b
        assert a.symbolic and c.symbolic and c.type == "i32[]" and not keel.add(1, 2).symbolic
    assert keel.executing_eagerly()
    session = keel.Session(g)
    assert session.run(c).item() == 8
    assert session.run([c, "a:0", {"k": (g.node("add"), b)}])[2]["k"][0] is None
    d = c * [[1, 2], [3, 4]]  # outside the scope: the operand determines the graph; the session sees the node
    assert session.run(d).tolist() == [[8, 16], [24, 32]] and session.run(d).device == ""


def test_names_are_unique_and_case_counts(g):
    with g.as_default():
        first = keel.constant(1)
        total = first + keel.constant(2)
        keel.constant(3, name="Const"), keel.placeholder(keel.f32), keel.placeholder(keel.f32)
        again = total + first
        assert [v.name for v in g.values()] == [
            "const", "const_1", "add", "Const", "placeholder", "placeholder_1", "add_1"]
        for taken in (lambda: keel.constant(3, name="const"), lambda: keel.placeholder(keel.f32, (), "add"),
                      lambda: keel.named(again, "add")):
            with pytest.raises(keel.ExistsError, match="already"):
                taken()
        assert g.name_of(keel.named(again, "add", unique=True)) == "add_2"
        assert g.name_of(keel.named(again, "sum")) == "sum"
        with keel.name_scope("layer"), keel.name_scope("inner"):
            assert g.name_of(total * 2) == "layer/inner/mul"
    with pytest.raises(keel.NotFoundError, match="no value 'add_1'"):
        g.value("add_1")
    assert g.node("sum:0").op == "add" and g.node("const").op == "constant" and g.node("placeholder").op == "parameter"
    assert repr(g.node("sum")) == "<keel.Node sum: sum = add(add, const)>"
    assert repr(g.values()[0]) == "<keel.Value const: i32[]>"


def test_placeholders_take_sizes_that_feeds_tell(g):
    with g.as_default():
        x, w = keel.placeholder(keel.f32, [None, "n"], "x"), keel.placeholder("f32", ("n", 2), name="w")
        y = keel.matmul(x, w)
        scalar = keel.placeholder(keel.i64)
    assert g.values()[0].shape == (-1, -1) and scalar.shape == ()
    assert keel.Session(g).run(scalar, {scalar: 3}).item() == 3
    session = keel.Session(g)
    assert session.run(y, {x: np.ones((5, 3)), "w": np.ones((3, 2), "f4")}).tolist() == [[3, 3]] * 5
    for feeds, said in (({x: np.ones((5, 3)), w: np.ones((4, 2))}, "n"),
                        ({x: np.ones(3), w: np.ones((3, 2))}, "Cannot feed value of shape"),
                        ({x: np.ones((5, 3))}, 'You must feed a value for parameter "w"')):
        with pytest.raises(keel.InvalidError, match=said):
            session.run(y, feeds)


def test_what_is_not_fed_is_no_fault_of_a_pass(g, capfd):
    with g.as_default():
        x, y = keel.placeholder(keel.f32, (2,), "x"), keel.placeholder(keel.f32, (2,), "y")
        z = keel.sqrt(keel.exp(x + y) * 2.)  # passes merge these into one node
    session = keel.Session(g)
    for fetch in (z, y):
        with pytest.raises(keel.InvalidError, match='You must feed a value for parameter "y"'):
            session.run(fetch, {x: [1., 2.]})
    assert "is disabled" not in capfd.readouterr().err
    np.testing.assert_allclose(session.run(z, {x: [1., 2.], y: [1., 2.]}), np.sqrt(np.exp([2., 4.]) * 2), rtol=1e-6)


def test_wrong_uses_of_graphs_are_errors(g):
    with pytest.raises(keel.PreconditionError, match="not compatible with eager"):
        keel.placeholder(keel.f32, (2,))
    with pytest.raises(keel.PreconditionError, match="not compatible with eager"):
        keel.function(lambda x: x + keel.placeholder(keel.f32))(keel.array(1.))
    for call in (keel.default_graph, keel.Session):
        with pytest.raises(keel.PreconditionError, match="there is no default graph"):
            call()
    with g.as_default():
        a = keel.constant(1)
    other = keel.Graph()
    with other.as_default():
        b = keel.constant(2)
    with pytest.raises(keel.Error, match="two traces"):
        a + b
    session = keel.Session(g)
    for fetch, kind in ((b, keel.InvalidError), (keel.array(3), keel.InvalidError), (3, TypeError),
                        ("nothing", LookupError)):
        with pytest.raises(kind):
            session.run(fetch)
    with pytest.raises(TypeError, match="feeds and fetches names: it runs a module"):
        keel.Session(keel.parse("keel 1\nfn @f(x: f32[]) {\n  return x\n}\nentry f = @f (x) -> (y)\n")).run(a)
    for read in (bool, float, lambda t: t.numpy()):
        with pytest.raises(keel.PreconditionError):
            read(a)
    with pytest.raises(keel.NotFoundError):
        g.node("nothing")


def test_gradients_are_nodes(g):
    with g.as_default():
        x = keel.placeholder(keel.f32, [None, 2], "x")
        hidden = keel.tanh(x)
        loss = keel.reduce_sum(hidden * hidden)
        d = g.gradient(loss, {"x": x, "hidden": hidden, "none": keel.constant(1.)})
        with keel.Tape() as tape:
            tape.watch(x)
            y = keel.reduce_sum(x * x * x)
        dx = tape.gradient(y, x)
        seeded = g.gradient(hidden, x, seeds=hidden * 0. + 2.)
    fed = np.array([[.5, -1.], [2., 0.]], "f4")
    got = keel.Session(g).run({"d": d["x"], "hidden": d["hidden"], "tape": dx, "seeded": seeded}, {x: fed})
    slope = 1 - np.tanh(fed) ** 2
    np.testing.assert_allclose(got["d"], 2 * np.tanh(fed) * slope, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got["hidden"], 2 * np.tanh(fed), rtol=1e-5)
    np.testing.assert_allclose(got["tape"], 3 * fed ** 2, rtol=1e-6)
    np.testing.assert_allclose(got["seeded"], 2 * slope, rtol=1e-5, atol=1e-6)
    assert d["none"] is None
    with g.as_default():
        assert g.gradient(loss, keel.constant(1.), zeros=True).shape == ()
        with pytest.raises(keel.InvalidError):
            g.gradient(keel.constant(1), x)


def test_variables_are_read_and_written_in_program_order(g):
    w = keel.Variable([1., 2.], name="w")
    with g.as_default():
        before = w * 10.
        w.assign_add([1., 1.])
        step = g.node("assign_add")
        after = w * 10.
        inside = keel.Variable(5., name="inside")
        inner = inside + 1.
    session = keel.Session(g)
    assert session.run(before).tolist() == [10, 20]  # unfetched nodes do not run
    assert [t.tolist() for t in session.run([before, after, step])[:2]] == [[10, 20], [20, 30]] and w.tolist() == [2, 3]
    session.run(None, targets=["assign_add"])
    assert w.tolist() == [3, 4] and session.run(inner).item() == 6
    w.assign([0., 0.])
    assert session.run(before).tolist() == [0, 0]


def test_branches_loops_and_functions_are_written(g):
    with g.as_default():
        x = keel.placeholder(keel.i32, name="x")
        y = keel.cond(x > 0, lambda: x * 2, lambda: -x)
        n, p = keel.while_loop((0, x), lambda n, p: n < 3, lambda n, p: (n + 1, p * 2))
        f = keel.function(lambda t: t + 100)(x)
        keel.print("x is {}", x)
    session = keel.Session(g)
    assert [[t.item() for t in session.run([y, p, f], {x: v})] for v in (3, -4)] == [[6, 24, 103], [4, -32, 96]]


def test_devices_stay_with_the_nodes(g):
    with g.as_default():
        x = keel.placeholder(keel.f32, name="x")
        with keel.device("reference"):
            y = x + 1.
        z = y * 2.
    assert ('@"reference:0"' in g.module.text()) == (keel.Session(g).device != "reference")
    assert keel.Session(g).run(z, {x: 3}).item() == 8
    with pytest.raises(keel.DeviceError, match='no device "tpu"'):
        keel.device("tpu")


def test_default_sessions_evaluate(g):
    with g.as_default():
        a = keel.constant(3)
        b = a * a
    with pytest.raises(keel.PreconditionError, match="no default session"):
        b.eval()
    with keel.Session(g) as session:
        assert keel.default_session() is session and b.eval().item() == 9 and keel.evaluate([a, b])[1].item() == 9
        with keel.Session(g):
            assert b.eval({a: 5}).item() == 25
        assert keel.default_session() is session
    assert keel.default_session() is None and b.eval(session=session).item() == 9


def test_each_thread_has_its_own_defaults(g):
    seen = []
    with g.as_default(), keel.Session(g):
        thread = threading.Thread(target=lambda: seen.extend([keel.executing_eagerly(), keel.default_session()]))
        thread.start(), thread.join()
    assert seen == [True, None]


def test_a_scope_ends_with_an_exception_and_is_entered_once(g):
    scope = g.as_default()
    with pytest.raises(ZeroDivisionError), scope:
        with pytest.raises(keel.PreconditionError, match="already in use"):
            scope.__enter__()
        1 / 0
    assert keel.executing_eagerly()
    with scope:
        assert keel.default_graph() is g
    entered = g.as_default().__enter__()  # and given up
    assert entered is g and keel.executing_eagerly()


def test_graphs_are_saved_and_sessions_pickled(g, tmp_path):
    with g.as_default():
        x = keel.placeholder(keel.f32, [2], "x")
        g.result("y", keel.relu(x - 1.))
    g.module.save(tmp_path / "g.keel")
    session = keel.Session(g)
    for again in (keel.Session(tmp_path / "g.keel"), pickle.loads(pickle.dumps(session)), session):
        assert again.run("y", {"x": [0., 3.]}).tolist() == [0, 2]
        assert [p[0] for p in again.parameters] == ["x"] and again.results == [("y", keel.f32, (2,))]
    assert session.prepare(["x"], ["y"])([5., 0.]).tolist() == [4, 0]


def test_what_lives_longer_keeps_the_graph(device):
    def made():
        with keel.Graph().as_default() as g:
            return keel.Session(g), keel.constant(6) * 7
    session, y = made()
    assert session.run(y).item() == 42
