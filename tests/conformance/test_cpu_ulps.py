"""The unary ops of f32 on the device cpu are within their bounds of ulp for each class of processor: a sample of all numbers here, all of them by
`tools/sweep ulps`. The oracles are NumPy and the C library in f64 (cpu_ulps.py), and literals for those."""
import os
import subprocess
import sys
from pathlib import Path

import cpu_ulps
import keel_abi
import numpy as np
import pytest
from test_cpu_isa import call_in_each_class, classes_here

HERE = Path(__file__).resolve().parent
# Computed with 60 decimal digits.
LITERALS = {"erf": {0.5: 0.52049987781304653768, 2.0: 0.99532226501895273416, -1.0: -0.84270079294971486934},
            "gelu": {1.0: 0.84134474606854294859, -5.0: -1.43325785939596955837e-6, -2.0: -0.045500263896358414401},
            "gelu.tanh": {1.0: 0.84119199060827670478, -5.0: -2.29179619662950604559e-7},
            "sigmoid": {-100.0: 3.7200759760208359630e-44, 1.0: 0.73105857863000487926},
            "softplus": {-100.0: 3.7200759760208359630e-44, 0.0: 0.69314718055994530942},
            "silu": {-1.0: -0.26894142136999512075}}


@pytest.mark.parametrize("op", LITERALS)
def test_oracles(op):
    x = np.array(list(LITERALS[op]))
    np.testing.assert_allclose(cpu_ulps.OPS[op][0](x), list(LITERALS[op].values()), rtol=1e-12)


def test_an_error_is_seen():
    """Results that are off by four units, and an infinity in place of a number, exceed the bound."""
    x = np.float32([0.3, 1, 2])
    wanted = np.exp(x.astype(np.float64)).astype(np.float32)
    assert cpu_ulps.error(wanted, x, "exp")[0] == 0
    assert cpu_ulps.error((wanted.view(np.int32) + np.int32([0, 4, 0])).view(np.float32), x, "exp")[0] > 1
    assert cpu_ulps.error(np.float32([wanted[0], np.inf, wanted[2]]), x, "exp")[0] == np.inf
    assert cpu_ulps.error(np.float32([wanted[0], np.nan, wanted[2]]), x, "exp")[0] == np.inf


def rows(step, *ops, **environment):
    """The lines of cpu_ulps.py, which must succeed."""
    done = subprocess.run([sys.executable, str(HERE / "cpu_ulps.py"), step, *ops], env=os.environ | environment, capture_output=True, text=True,
                          timeout=300)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 0, [line for line in lines if float(line[1]) > 1] or done.stderr
    return lines


@pytest.mark.parametrize("isa", classes_here())
def test_errors_in_ulp(isa):
    assert [row[0] for row in rows("4001", KEEL_CPU_ISA=isa)] == list(cpu_ulps.OPS)


@pytest.mark.parametrize("isa", classes_here())
def test_many_numbers_of_tables(isa):
    """A table of polynomials may be off in one of its intervals only."""
    assert [row[0] for row in rows("397", "gelu", "erf", KEEL_CPU_ISA=isa)] == ["gelu", "erf"]


SPECIAL = np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, -1e-40, 3e38, -3e38])
ON_SPECIAL = {"exp": [np.nan, np.inf, 0, 1, 1, 1, 1, np.inf, 0], "tanh": [np.nan, 1, -1, 0, -0.0, 1e-40, -1e-40, 1, -1],
              "erf": [np.nan, 1, -1, 0, -0.0, 1.128373e-40, -1.128373e-40, 1, -1], "sigmoid": [np.nan, 1, 0, 0.5, 0.5, 0.5, 0.5, 1, 0],
              **dict.fromkeys(("gelu", "gelu.tanh", "silu"), [np.nan, np.inf, np.nan, 0, -0.0, 5e-41, -5e-41, 3e38, -0.0])}


def check_rows_of_any_length():
    """The same bits whatever the length; special numbers as the definition has them, in each lane."""
    context, x = keel_abi.Context(threads=1), np.linspace(-16, 5, 70, dtype=np.float32)
    for op, results in ON_SPECIAL.items():
        name, attrs = cpu_ulps.node(op)

        def apply(v):
            return np.array(context.apply("cpu", name, v, **attrs))
        want = apply(x)
        for n in (0, 1, 7, 8, 9, 15, 16, 17, 33):
            np.testing.assert_array_equal(apply(x[-n:] if n else x[:0]), want[-n:] if n else want[:0])
        expected = np.float32(results)
        for i in range(40):
            got = apply(np.insert(x, np.full(9, i), SPECIAL))[i:i + 9]
            np.testing.assert_array_equal(got, expected, op)
            signed = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(expected[signed]), op)


def test_rows_of_any_length_in_each_class():
    call_in_each_class("test_cpu_ulps", "check_rows_of_any_length")


@pytest.mark.parametrize("isa", classes_here())
def test_errors_after_a_product(isa):
    ops = [f"region:{op}" for op in ("sigmoid", "silu", "gelu", "gelu.tanh", "tanh", "exp")]
    assert [row[0] for row in rows("20011", *ops, KEEL_CPU_ISA=isa, KEEL_CPU_PRODUCTS="onednn")] == ops
