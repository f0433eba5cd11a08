"""Ops and dtypes that a driver cannot compute: `keel ops -d vulkan` and errors give the reason. The loader of driver/ hides features."""
import json
import os
import subprocess

import pytest
from host_ops import MATRICES, OF_MATRICES
from vulkan_build import BUILD, PLUGIN

import keel

pytestmark = pytest.mark.usefixtures("loaded")
F64 = "missing: the driver has no shaderFloat64"
STORAGE8 = "missing: the driver has no storageBuffer8BitAccess"
STORAGE16 = "missing: the driver has no storageBuffer16BitAccess"
SHADER = "generated shader"
BODY = "its body: no impl of its own"
STORAGE = "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0 i4 u4 i2 u2 f4e2m1"


def table(hidden=""):
    """{op: {how: dtypes}} as `keel ops -d vulkan` prints it."""
    env = os.environ | {"KEEL_PLUGIN_PATH": str(PLUGIN.parent), "DRIVER_HIDE": hidden}
    run = subprocess.run([BUILD / "bin" / "keel", "ops", "-d", "vulkan"], capture_output=True, text=True, env=env, timeout=60)
    assert run.returncode == 0, run.stderr
    rows = {}
    for line in run.stdout.splitlines()[1:]:
        op, types, how = (part.strip() for part in line.split("  ") if part)
        rows.setdefault(op, {})[how] = types
    return rows


def test_a_driver_with_all_features_lacks_only_factors_of_matrices():
    rows = table()
    assert {op: list(how) for op, how in rows.items() if any(text.startswith("missing") for text in how)} == dict.fromkeys(
        MATRICES, ["missing: neither impl nor body"])
    assert rows["cast"] == {SHADER: f"bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 {STORAGE}"}
    assert rows["pow"] == {SHADER: "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"}
    assert rows["attention"] == {"groups of 64 rows": "f16 bf16 f32", BODY: "f64"}
    assert rows["mean_squared_error"] == {BODY: "f16 bf16 f32 f64"}
    assert rows["random"] == {"generated shader; normal needs shaderFloat64": "any"}


@pytest.mark.parametrize("hidden", ["", "shaderFloat64", "storageBuffer8BitAccess", "storageBuffer16BitAccess"])
def test_each_op_and_dtype_is_listed(hidden):
    rows = table(hidden)
    for op in json.loads(keel.report("ops:reference")):
        shown = " ".join(rows[op["name"]].values()).split()
        assert sorted(shown) == sorted(op["impls"]), op["name"]


@pytest.mark.parametrize("hidden, op, expected", [
    ("shaderFloat64", "add", {SHADER: "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32", F64: "f64"}),
    ("shaderFloat64", "sin", {F64: "f16 bf16 f32 f64"}),
    ("shaderFloat64", "matmul", {"tiles, or dot products when small": "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32", F64: "f64"}),
    ("shaderFloat64", "mean_squared_error", {BODY: "f16 bf16 f32", F64: "f64"}),
    ("shaderFloat64", "transpose", {"copy by strides": "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"}),
    ("storageBuffer8BitAccess", "add", {SHADER: "i16 i32 i64 u16 u32 u64 f16 bf16 f32 f64", STORAGE8: "i8 u8"}),
    ("storageBuffer8BitAccess", "equal", {STORAGE8: "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"}),
    ("storageBuffer8BitAccess", "reduce_sum", {"reduction by groups or threads": "i32 i64 u32 u64 f16 bf16 f32 f64", STORAGE8: "i8 i16 u8 u16"}),
    ("storageBuffer8BitAccess", "gather", {"gather": "i16 i32 i64 u16 u32 u64 f16 bf16 f32 f64", STORAGE8: "bool i8 u8"}),
    ("storageBuffer8BitAccess", "cast", {SHADER: "i16 i32 i64 u16 u32 u64 f16 bf16 f32 f64", STORAGE8: f"bool i8 u8 {STORAGE}"}),
    ("storageBuffer16BitAccess", "transpose", {"copy by strides": "bool i8 i32 i64 u8 u32 u64 f32 f64", STORAGE16: "i16 u16 f16 bf16"}),
    ("storageBuffer16BitAccess", "softmax", {"rows by groups or threads": "f32", BODY: "f64", STORAGE16: "f16 bf16"}),
])
def test_a_hidden_feature_is_the_reason(hidden, op, expected):
    assert table(hidden)[op] == expected


def test_several_hidden_features():
    assert table("shaderFloat64,storageBuffer8BitAccess,storageBuffer16BitAccess")["abs"] == {
        SHADER: "i32 i64 u32 u64 f32", F64: "f64", STORAGE8: "i8 u8", STORAGE16: "i16 u16 f16 bf16"}


UNARY = """
for op in json.loads(keel.report("ops")):
    if len(op["operands"]) != 1 or op["attributes"] or "f32" not in op["types"].get("T", []): continue
    with keel.device("vulkan"):
        try: getattr(keel, op["name"])(keel.array(np.ones(3, np.float32))).numpy()
        except keel.Error as e: print(op["name"], e.code.name, "the driver has no shaderFloat64" in str(e))
"""


def test_the_table_agrees_with_runs(in_child):
    """Unary ops on f32 fail if the table lists them as missing. Others that fail run as their body (tan by sin): the table lists
    its ops."""
    out, _ = in_child(UNARY, DRIVER_HIDE="shaderFloat64")
    lines = [line.split() for line in out.splitlines() if line.split()[0] not in OF_MATRICES]
    failed = {op for op, *_ in lines}
    assert all(why == ["UNIMPLEMENTED", "True"] for _, *why in lines), out
    rows, unary = table("shaderFloat64"), {}
    for op in json.loads(keel.report("ops")):
        if len(op["operands"]) == 1 and not op["attributes"] and "f32" in op["types"].get("T", []) and op["name"] not in OF_MATRICES:
            unary[op["name"]] = "f32" in rows[op["name"]].get(F64, "")
    bodies = {op for op in unary if "f32" in rows[op].get(BODY, "")}
    assert failed - bodies == {op for op, missing in unary.items() if missing}
    assert {"sin", "cos"} <= failed and "exp" not in failed


def test_errors_of_plans_give_the_reason(in_child):
    out, _ = in_child("""
x, y = np.ones(3, np.float32), np.ones(3)
with keel.device("vulkan"):
    for f in (lambda: keel.pow(keel.array(x), keel.array(x)), lambda: keel.array(y) + keel.array(y),
              lambda: keel.random.normal([3]) + 0.0):
        try: print(f().numpy())
        except keel.Error as e: print(type(e).__name__, e)
""", DRIVER_HIDE="shaderFloat64")
    lines = [line for line in out.splitlines() if not line.startswith("  hint: ")]
    assert len(lines) == 3, out
    assert all(line.startswith("UnimplementedError") and "the driver has no shaderFloat64" in line for line in lines), out
