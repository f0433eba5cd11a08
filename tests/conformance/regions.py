"""A region: a body that the cpu device runs as one `call`, compared with the same nodes run separately on the reference device.

A case is a function that appends its nodes to a graph and returns the results; `run_both` builds it twice.
"""
import keel_abi
import numpy as np


def cpu_class(context):
    """The instruction set for which the cpu device compiles: sse4, avx2, avx512 or amx."""
    description, = (d["description"] for d in context.report("devices") if d["name"] == "cpu:0")
    return description.split(":")[0].split()[-1]


def results_of(graph, build, values):
    made = build(graph, *values)
    made = made if isinstance(made, (list, tuple)) else [made]
    for i, value in enumerate(made):
        graph.result(f"y{i}", value)
    return len(made)


def as_call(context, build, inputs, constants, device="cpu", dims=None, **options):
    """Returns a plan whose graph is one call; `dims` are the declared shapes of the inputs (default: theirs)."""
    module = context.module()
    shapes = dims(module) if dims else [a.shape for a in inputs]
    body, arrays = module.graph("body"), [*inputs, *constants]
    declared = [*shapes, *[a.shape for a in constants]]
    params = [body.param(f"p{i}", a.dtype, s) for i, (a, s) in enumerate(zip(arrays, declared))]
    count = results_of(body, build, params)
    main = module.graph("main")
    values = [main.param(f"x{i}", a.dtype, s) for i, (a, s) in enumerate(zip(inputs, shapes))]
    values += [main.constant(a) for a in constants]
    made = main.node("call", *values, n_out=count, name="region", body=keel_abi.GraphNumber(0))
    for i, value in enumerate([made] if count == 1 else made):
        main.result(f"y{i}", value)
    module.entry("main", main)
    return module.session(device, **options).prepare()


def as_nodes(context, build, inputs, constants, device="reference", dims=None, **options):
    """Returns a plan of the same nodes, run separately."""
    module = context.module()
    main = module.graph("main")
    shapes = dims(module) if dims else [a.shape for a in inputs]
    values = [main.param(f"x{i}", a.dtype, s) for i, (a, s) in enumerate(zip(inputs, shapes))]
    results_of(main, build, [*values, *[main.constant(a) for a in constants]])
    module.entry("main", main)
    return module.session(device, **options).prepare()


def run_both(context, build, inputs, constants, region=True):
    """Returns (results of the region, results of the reference); region: whether a region is expected; None: as the device
    chooses."""
    plan = as_call(context, build, inputs, constants)
    report = plan.report(*inputs)
    impls = [step["impl"] for step in report["launches"]]
    assert region is None or (impls == ["oneDNN region"]) == region, impls
    first = [np.array(y) for y in plan.run(*inputs)]
    again = plan.run(*inputs)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, again)), "a second run differs"
    return first, as_nodes(context, build, inputs, constants).run(*inputs)


def assert_close(got, wanted, tolerance=2e-5):
    for y, z in zip(got, wanted):
        assert y.shape == z.shape and y.dtype == z.dtype
        if z.size:
            scale = max(1.0, float(np.abs(z.astype(np.float64)).max()))
            worst = float(np.abs(y.astype(np.float64) - z.astype(np.float64)).max())
            assert worst <= tolerance * scale, f"differs by {worst}, largest value {scale}"
