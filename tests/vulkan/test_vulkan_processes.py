"""The device outside of a test bench: forked children, Ctrl-C, an installation that was moved, a C program that is linked to it."""
import os
import shutil
import signal
import subprocess
import time

import pytest
from vulkan_build import BUILD, HERE

ROOT = HERE.parents[1]
FORK = """
import os, signal
def add():
    with keel.device("vulkan"):
        return (keel.array(np.arange(3, dtype=np.float32)) + 1.0).numpy().tolist()
def child(body):
    if not (pid := os.fork()):
        signal.alarm(30)
        try: print(body(), flush=True)
        except keel.Error as e: print(type(e).__name__, str(e).replace(chr(10), " "), flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
LOOP = """keel 1
fn @main(x: f32[400, 400]) -> f32[400, 400] {
  r0, r1 = while(i32(0), x){carry=2}
    test(c, y) {
      more = less(c, i32(1000000))
      yield more
    }
    body(c, y) {
      next = add(c, i32(1))
      z = softmax(matmul(y, y)){axis=1}
      yield next, z
    }
  return r1
}
entry main = @main (x) -> (_)
"""
ADD = "keel 1\nfn @main(x: f32[n]) -> f32[n] {\n  y = add(x, x)\n  return y\n}\nentry main = @main (x) -> (_)\n"


def test_a_child_forked_before_the_first_use_has_a_device_of_its_own(in_child):
    out, _ = in_child(FORK + "child(add)\nprint(add())")
    assert out.splitlines() == ["[1.0, 2.0, 3.0]"] * 2


def test_a_child_forked_after_the_first_use_gets_an_error(in_child):
    """Also where work is in flight and for arrays of the parent; other devices work there, and the parent goes on."""
    out, _ = in_child(FORK + """
def other():
    with keel.device("cpu"): return (keel.array(np.ones(2, np.float32)) + 1.0).numpy().tolist()
keel.load_plugin(CPU)
x = keel.array(np.ones((300, 300), np.float32)).to("vulkan")
with keel.device("vulkan"): y = x @ x @ x
child(add), child(y.numpy), child(other)
print(y.numpy()[0, 0], add())
""".replace("CPU", repr(str(BUILD / "lib/keel/plugins/keel-cpu.so"))))
    lines = out.splitlines()
    assert all("vulkan:0 was opened before fork(): a child process cannot use it" in line for line in lines[:2]), out
    assert lines[2:] == ["[2.0, 2.0]", "90000.0 [1.0, 2.0, 3.0]"]


def keel_run(*arguments, binary=None, environment=None, **more):
    env = {"KEEL_PLUGIN_PATH": str(BUILD / "lib" / "keel" / "plugins")} | os.environ if environment is None else environment
    return subprocess.Popen([binary or BUILD / "bin" / "keel", "run", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), **more)


def test_ctrl_c_ends_keel_run(loaded, tmp_path):
    (tmp_path / "loop.keelt").write_text(LOOP)
    run = keel_run(tmp_path / "loop.keelt", "-d", "vulkan", "-i", "x=randn(1)")
    time.sleep(2)
    assert run.poll() is None, run.communicate()
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 6 and "stopped" in err and "Ctrl-C" in err and not out, (run.returncode, out, err)


def test_ctrl_c_ends_a_python_loop_and_the_device_goes_on(in_child):
    out, _ = in_child("""
import _thread, threading
threading.Timer(1, _thread.interrupt_main).start()
x, rounds = keel.array(np.full((64, 64), 1 / 64, np.float32)), 0
try:
    with keel.device("vulkan"):
        while True: x, rounds = x @ x, rounds + 1
except KeyboardInterrupt: print("interrupted", rounds > 0)
print(x.numpy()[0, 0] <= 1)
with keel.device("vulkan"): print((keel.array(np.ones(2, np.float32)) + 1.0).numpy())
""")
    assert out.splitlines() == ["interrupted True", "True", "[2. 2.]"]


@pytest.fixture(scope="module")
def moved(loaded, tmp_path_factory):
    """A folder to which an installation was moved."""
    if not shutil.which("cmake"):
        pytest.skip("no cmake")
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder / "first"], check=True, stdout=subprocess.DEVNULL)
    (folder / "first").rename(folder / "second")
    return folder / "second"


def test_an_installation_that_was_moved(moved, tmp_path):
    (tmp_path / "add.keelt").write_text(ADD)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("KEEL_PLUGIN")}
    run = keel_run("add.keelt", "-d", "vulkan", "-i", "x=range", "--dim", "n=3", binary=moved / "bin" / "keel", environment=plain, cwd=tmp_path)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0 and out.split("\n")[-2] == "[0, 2, 4]", out + err


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_c_program_linked_to_it(moved, tmp_path):
    """The program of docs/start/c.md, with this device."""
    text = (ROOT / "docs" / "start" / "c.md").read_text().split("```c\n")[1].split("```")[0]
    assert '"cpu"' in text
    (tmp_path / "add.c").write_text(text.replace('"cpu"', '"vulkan"'))
    subprocess.run(["cc", "add.c", f"-I{moved}/include", f"-L{moved}/lib", f"-Wl,-rpath,{moved}/lib", "-lkeel", "-o", "add"], cwd=tmp_path, check=True)
    run = subprocess.run(["./add"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, "0 2 4 \n"), run.stderr
