"""Every form of input: npy, npz, raw, literals, generators, dims; each against NumPy."""
import io
import json
import zipfile

import numpy as np
import pytest

DTYPES = {"bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4",
          "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8"}


def identity(graph, dtype, dims):
    """A graph that returns its input through one node."""
    return graph(f"keel 1\n\nfn @main(x: {dtype}[{dims}]) -> {dtype}[{dims}] {{\n"
                 f"  y = reshape(x){{to=[{dims}]}}\n  return y\n}}\n\nentry main = @main (x) -> (y)\n")


def run(keel, tmp_path, path, *inputs, more=(), stdin=None):
    arguments = [a for i in inputs for a in ("-i", i)]
    keel("run", path, *arguments, "-o", "@out.npz", *more, stdin=stdin)
    return np.load(tmp_path / "out.npz")["y"]


def values(dtype):
    if dtype == "bool":
        return np.array([[True, False, True], [False, False, True]])
    kind = np.dtype(DTYPES[dtype])
    if kind.kind == "f":
        return np.array([[0, -1.5, np.inf], [np.nan, 2.0 ** -14, 1024]], kind)
    info = np.iinfo(kind)
    return np.array([[info.min, info.max, 0], [1, 2, 3]], kind)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["npy", "npz", "packed", "fortran", "big", "raw", "stdin", "all"])
def test_a_file_of_every_dtype_comes_back_unchanged(keel, graph, tmp_path, dtype, form):
    x = values(dtype)
    path, stdin = identity(graph, dtype, "2, 3"), None
    spec = {"npy": "x=@x.npy", "npz": "x=@x.npz:x", "packed": "x=@x.npz", "fortran": "x=@x.npy", "big": "x=@x.npy",
            "raw": f"x=@x.bin:{dtype}[2,3]", "stdin": "x=@-", "all": "@x.npz"}[form]
    if form in ("npy", "fortran", "big"):
        np.save(tmp_path / "x.npy", np.asfortranarray(x) if form == "fortran" else
                x.astype(x.dtype.newbyteorder(">")) if form == "big" else x)
    elif form in ("npz", "packed", "all"):
        (np.savez_compressed if form == "packed" else np.savez)(tmp_path / "x.npz", x=x)
    elif form == "raw":
        (tmp_path / "x.bin").write_bytes(x.tobytes())
    else:
        buffer = io.BytesIO()
        np.save(buffer, x)
        stdin = buffer.getvalue()
    y = run(keel, tmp_path, path, spec, stdin=stdin)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_bf16_is_two_byte_void_and_reads_from_u2(keel, graph, tmp_path):
    bits = np.array([0x3f80, 0xc000, 0x7fc0, 0x0001], np.uint16)  # 1, -2, nan, smallest
    path = identity(graph, "bf16", "4")
    np.save(tmp_path / "u.npy", bits)
    np.save(tmp_path / "v.npy", bits.view("V2"))
    (tmp_path / "r.bin").write_bytes(bits.tobytes())
    for spec in ("x=@u.npy", "x=@u.npy:bf16", "x=@v.npy", "x=@r.bin:bf16[4]", "x=@r.bin"):
        y = run(keel, tmp_path, path, spec)
        assert y.dtype.itemsize == 2
        np.testing.assert_array_equal(y.view(np.uint16), bits)
    assert keel("run", path, "-i", "x=1,-2,0,0.5").out == "y: bf16[4]\n[  1,  -2,   0, 0.5]\n"


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(keel, graph, tmp_path, version):
    x = np.arange(6, dtype="f4").reshape(2, 3)
    with open(tmp_path / "x.npy", "wb") as f:
        np.lib.format.write_array(f, x, version=version)
    np.testing.assert_array_equal(run(keel, tmp_path, identity(graph, "f32", "2, 3"), "x=@x.npy"), x)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (1, 1, 1, 1, 1, 1, 1, 2)])
def test_odd_shapes(keel, graph, tmp_path, shape):
    x = np.ones(shape, "i4")
    np.save(tmp_path / "x.npy", x)
    y = run(keel, tmp_path, identity(graph, "i32", ", ".join(map(str, shape))), "x=@x.npy")
    assert y.shape == shape and y.dtype == x.dtype


@pytest.mark.parametrize("spec, want", [
    ("x=f32[2,2]=1,2,3,4", [[1, 2], [3, 4]]),
    ("x=1,2,3,4", [[1, 2], [3, 4]]),
    ("x=-1.5e2", [[-150, -150], [-150, -150]]),
    ("x= 1 , 2 ,3,4", [[1, 2], [3, 4]]),
    ("x=nan,inf,-inf,-0", [[np.nan, np.inf], [-np.inf, -0.0]]),
    ("x=range", [[0, 1], [2, 3]]),
    ("x=range(3,-2)", [[3, 1], [-1, -3]]),
])
def test_literals(keel, graph, tmp_path, spec, want):
    np.testing.assert_array_equal(run(keel, tmp_path, identity(graph, "f32", "2, 2"), spec), np.array(want, "f4"))


def test_integers_keep_all_their_bits(keel, graph, tmp_path):
    y = run(keel, tmp_path, identity(graph, "i64", "2"), "x=9223372036854775807,-9223372036854775808")
    assert y.tolist() == [2 ** 63 - 1, -2 ** 63]
    y = run(keel, tmp_path, identity(graph, "u64", "1"), "x=18446744073709551615")
    assert y.tolist() == [2 ** 64 - 1]


def test_random_numbers_follow_their_seed(keel, graph, tmp_path):
    path = identity(graph, "f32", "100, 100")
    normal = [run(keel, tmp_path, path, f"x=randn({s})") for s in (7, 7, 8)]
    np.testing.assert_array_equal(normal[0], normal[1])
    assert (normal[0] != normal[2]).any()
    assert abs(normal[0].mean()) < 0.05 and abs(normal[0].std() - 1) < 0.05
    uniform = run(keel, tmp_path, path, "x=rand(7)")
    assert 0 <= uniform.min() < 0.01 and 0.99 < uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02
    ints = run(keel, tmp_path, identity(graph, "i32", "1000"), "x=randint(-2,3,7)")
    assert sorted(set(ints.tolist())) == [-2, -1, 0, 1, 2]


def test_symbolic_dims_from_flag_literals_or_other_inputs(keel, one, graph, tmp_path):
    path = graph()
    assert run(keel, tmp_path, path, "x=randn(7)", more=["--dim", "b=5"]).shape == (5, 2)
    assert run(keel, tmp_path, path, "x=1,2,3,4,5,6").shape == (3, 2)
    both = one("add(x, z)", "f32[b, 2]", "f32[b, 2]")
    y = run(keel, tmp_path, both, "z=1", "x=f32[3,2]=range")
    np.testing.assert_array_equal(y, np.arange(6, dtype="f4").reshape(3, 2) + 1)
    err = keel("run", path, "-i", "x=randn(7)", code=2).err
    assert '"b"' in err and "--dim b=" in err


def test_cast_inputs(keel, graph, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1.25, 2]]))
    err = keel("run", graph(), "-i", "x=@x.npy", "--exact-inputs", code=5).err
    assert "f64" in err and "f32" in err and "x" in err
    for more in ([], ["--cast-inputs"]):
        np.testing.assert_array_equal(run(keel, tmp_path, graph(), "x=@x.npy", more=more), np.array([[2.25, 3]], "f4"))


def test_inputs_are_cast_within_their_kind(keel, one, tmp_path):
    """The oracle is NumPy's casting rule of that name."""
    names = {"bool": "bool", "u8": "u1", "i32": "i4", "i64": "i8", "f32": "f4", "f64": "f8"}
    for to, numpy_to in names.items():
        path = one("identity(x)", f"{to}[2]")
        for name, dtype in names.items():
            np.save(tmp_path / "x.npy", np.array([0, 1], dtype))
            same = np.can_cast(dtype, numpy_to, "same_kind")
            keel("run", path, "-i", "x=@x.npy", code=0 if same else 5)
            keel("run", path, "-i", "x=@x.npy", "--cast-inputs")


@pytest.mark.parametrize("spec, words", [
    ("x", ["NAME=SPEC"]),
    ("=1", ["NAME=SPEC"]),
    ("x=f32[2,2]=1,2,3", ["got 3", "expected 4"]),
    ("x=f32[2,2]", ["x=f32[2,2]=1,2,3,4"]),
    ("x=q7[2]=1", ["cannot read"]),
    ("x=f32[2,2]=one", ['"one"', "f32"]),
    ("x=randn(1.5)", ["randn"]),
    ("x=randn(1", ["randn"]),
    ("x=i32[2]=randn(7)", ["randint"]),
    ("x=i32[2]=randint(5,5)", ["LO < HI"]),
    ("x=i8[1]=300", ['"300"', "i8"]),
    ("x=u8[1]=-1", ['"-1"', "u8"]),
    ("x=f32[b,2]=1,2,3", ['"b"']),
])
def test_bad_specs_say_what_was_wanted(keel, graph, spec, words):
    err = keel("run", graph(), "-i", spec, code=2).err
    for word in words:
        assert word in err


def npy(header, data=b"", version=b"\x01\x00"):
    text = header.encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"


@pytest.mark.parametrize("bytes_, word", [
    (b"", "neither"), (b"\x93NUM", "neither"), (b"\x93NUMPY", "whole"), (b"\x93NUMPY\x01\x00\xff\xff{}", "truncated"),
    (npy(GOOD), "truncated"), (npy(GOOD, b"1234567"), "truncated"), (npy(GOOD, version=b"\x09\x00"), "version 9"),
    (npy("{}"), "without descr"), (npy("{'descr': '<f4'"), "end"), (npy("   "), "end"),
    (npy(GOOD.replace("<f4", "|O")), "|O"), (npy(GOOD.replace("<f4", "<c8")), "<c8"), (npy(GOOD.replace("<f4", "")), "''"),
    (npy(GOOD.replace("'<f4'", "[('a', '<f4')]")), "structured"), (npy(GOOD.replace("(1, 2)", "(-1, 2)")), "-1"),
    (npy(GOOD.replace("(1, 2)", "(4294967296, 4294967296, 4294967296)")), "too large"),
    (npy(GOOD.replace("(1, 2)", "(99999999999999999999,)")), "dim"), (npy(GOOD.replace("(1, 2)", "(1, 2")), "dim"),
    (npy(GOOD.replace("(1, 2)", "(1,1,1,1,1,1,1,1,1)")), "more than 8"), (npy(GOOD.replace("False", "Maybe")), "True or False"),
    (npy(GOOD.replace("'shape'", "'sharp'")), "sharp"), (npy("(" * 60), "expected '{'"),
])
def test_bad_npy_files_are_named(keel, graph, tmp_path, bytes_, word):
    (tmp_path / "x.npy").write_bytes(bytes_)
    err = keel("run", graph(), "-i", "x=@x.npy:f64[3]" if word == "neither" else "x=@x.npy", code=3).err
    assert "x.npy" in err and (word in err or word == "neither")


def test_damaged_npz_never_crashes(keel, graph, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("x.npy", npy(GOOD, np.array([1, 2], "f4").tobytes()))
    good, path, seen = buffer.getvalue(), graph(), set()
    for at in range(0, len(good), 3):
        for bad in (good[:at], good[:at] + bytes([good[at] ^ 0xff]) + good[at + 1:]):
            (tmp_path / "x.npz").write_bytes(bad)
            done = keel_any(keel, path, "x=@x.npz:x")
            seen.add(done)
    assert seen <= {0, 2, 3, 5, 6} and 3 in seen


def keel_any(keel, path, spec):
    try:
        return keel("run", path, "-i", spec).returncode
    except AssertionError as error:
        return int(str(error).split("exit ")[1].split(",")[0])


def test_an_npz_without_the_array_lists_what_it_has(keel, graph, tmp_path):
    np.savez(tmp_path / "in.npz", input=np.ones((1, 2), "f4"), other=np.ones(3))
    err = keel("run", graph(), "-i", "x=@in.npz:inptu", code=3).err
    assert "inptu" in err and "input, other" in err and 'did you mean "input"' in err


def test_results_as_json_are_exact(keel, graph, tmp_path):
    done = keel("run", graph(), "-i", "x=0.1,nan,inf,-inf", "--json")
    y = json.loads(done.out)["outputs"]["y"]
    assert y["dtype"] == "f32" and y["shape"] == [2, 2]
    assert y["data"][1:] == ["nan", "inf", "-inf"] and np.float32(y["data"][0]) == np.float32(0.1) + np.float32(1)


def test_storage_dtypes_are_one_byte_void_and_packed_in_raw_files(keel, graph, tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    path, x = identity(graph, "i4", "5"), np.array([1, -2, 7, -8, 3]).astype(ml_dtypes.int4)
    np.save(tmp_path / "v.npy", x)
    np.save(tmp_path / "b.npy", x.view(np.uint8))
    (tmp_path / "r.bin").write_bytes(bytes([0xe1, 0x87, 0x03]))
    for spec in ("x=@v.npy", "x=@v.npy:i4", "x=@b.npy", "x=@r.bin:i4[5]", "x=@r.bin", "x=1,-2,7,-8,3"):
        assert keel("run", path, "-i", spec).out == "y: i4[5]\n[ 1, -2,  7, -8,  3]\n"
        np.testing.assert_array_equal(run(keel, tmp_path, path, spec).view(ml_dtypes.int4), x)
    assert json.loads(keel("run", path, "-i", "x=0", "--json").out)["outputs"]["y"]["data"] == [0] * 5
    assert "8 does not fit in i4" in keel("run", path, "-i", "x=8,0,0,0,0", code=2).err
    (tmp_path / "r2.bin").write_bytes(bytes(2))
    assert "has 2 bytes, but i4[5] takes 3" in keel("run", path, "-i", "x=@r2.bin", code=3).err
    path = identity(graph, "f8e4m3fn", "3")
    assert keel("run", path, "-i", "x=1.1,-1e6,nan").out == "y: f8e4m3fn[3]\n[1.125,  -448,   nan]\n"
    assert keel("run", path, "-i", "x=f32[3]=1,2,3", "--cast-inputs").out == "y: f8e4m3fn[3]\n[1, 2, 3]\n"
