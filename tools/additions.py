"""How many files an addition edits, shown by making each one, building it and running it.

Usage: additions.py BUILD [NAME...]    BUILD: an up-to-date build folder; NAME: an addition (default: all)

The tree is not touched: each addition is made in a view of it (an overlay, in a mount namespace of its own) in which the
build continues from the state of BUILD. Needs root, or a kernel that allows user namespaces. A new addition is a row
of ADDITIONS: the files that it edits, the targets that it builds, the command that shows it, and its output.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SUBCOMMAND = '''// hello.cc: `keel hello`: an addition.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/exit.h"

namespace cli {
namespace {

std::string name = "nobody";

void name_flag(Flags& flags, Args&) { flags.add("--name", name, "who is greeted"); }

int hello_command(const Args&) {
  fmt::print("hello, {}\\n", name);
  return kOk;
}

const Command kHello("hello", "Greet", {name_flag}, hello_command);

}  // namespace
}  // namespace cli
'''
PROGRAM = '''#include <iostream>
#include <keel/keel.hpp>
int main() { std::cout << keel::cube(keel::Tensor{1.f, 2.f}) << std::endl; }
'''
GRADIENTS = '''import keel
for op, at in ((keel.cube, [1., 2.]), (lambda x: keel.squash(x, limit=2.), [-1., 3.]), (keel.center, [4., 6.])):
    print(keel.grad(lambda x: keel.reduce_sum(op(x)))(keel.array(at)))
'''
METHOD = '''    def doubled(self: Any) -> Any:
        """Twice the tensor."""
        return self + self


for _name'''
COMPOSITES = """
op cube since 1  in x: T[P..]   out y: T[P..]   type T: num   is elementwise
  body { return x * x * x }
op squash since 1  in x: T[P..]   attr limit: f64 = 1.0   out y: T[P..]   type T: float   is elementwise
  body { return limit * x / (1 + abs(x)) }
op center since 1  in x: T[P.., n@axis, Q..]   attr axis: axis = -1   out y: T[P.., n, Q..]   type T: float
  body { return x - reduce_mean(x){axes=[axis], keep=true} }
"""
EXPM1 = "\nop expm1 since 1  in x: T[P..]   out y: T[P..]   type T: float   is elementwise   vjp (dy) { return dy * (y + 1) }\n"


def append(text):
    return lambda before: before + text


def replace(old, new):
    def edit(before):
        assert before.count(old) == 1, old
        return before.replace(old, new)
    return edit


# name: (most files, {file: its edit, or the text of a new one}, targets, shell command in BUILD, its output)
ADDITIONS = {
    "three composite ops": (1, {"kernel/language/opset/composite.ops": append(COMPOSITES)}, ["keel", "keel_cpp_ops", "_keel"],
                            "bin/keel eval 'cube([1., 2.])' -d reference && bin/keel eval 'cube([2, 3])' -d cpu && "
                            "bin/keel eval 'squash([-1., 3.]){limit=2.0}' -d cpu && bin/keel eval 'center([[1., 3.], [2., 8.]]){axis=0}' -d cpu && "
                            "PYTHONPATH=python $PYTHON gradients.py && "
                            "c++ -std=c++20 -I include -I $ROOT/sdk/cpp -I $ROOT/abi -I $ROOT added.cc -L lib -lkeel -Wl,-rpath,lib "
                            "-o added && ./added",
                            "[1. 8.]\n[ 8 27]\n[-1.   1.5]\n[[-0.5 -2.5]\n [ 0.5  2.5]]\n[ 3. 12.]\n[0.5   0.125]\n[0. 0.]\n[1. 8.]\n"),
    "primitive op": (3, {
        "kernel/language/opset/elementwise.ops": append(EXPM1),
        "plugins/reference/unary.cc": lambda before: replace(
            "constexpr auto kSqrt", "constexpr auto kExpm1 = [](auto x) { return std::expm1(x); };\nconstexpr auto kSqrt")(
                replace('    row<unary<Floats, NearestOf<kSqrt>>>(',
                        '    row<unary<Floats, MathOf<kExpm1>>>(REFERENCE_OP("expm1"), kFlags),\n'
                        '    row<unary<Floats, NearestOf<kSqrt>>>(')(before)),
    }, ["keel", "keel-reference"], "bin/keel eval 'expm1([0., 1.])' -d reference", "[0.        1.7182819]\n"),
    "subcommand": (1, {"cli/commands/hello.cc": SUBCOMMAND}, ["keel_command"],
                   "bin/keel hello --name you && bin/keel --help | grep -c 'hello *Greet'", "hello, you\n1\n"),
    "Python method": (1, {"sdk/python/keel/methods.py": replace("\n\nfor _name", "\n" + METHOD)}, [],
                      "PYTHONPATH=python $PYTHON -c 'import keel; print(keel.ones((2,)).doubled())'", "[2. 2.]\n"),
    "plugin": (0, {"plugins/hello/CMakeLists.txt": "keel_add_plugin(hello SOURCES hello.c)\n",
                   "plugins/hello/hello.c": lambda _: (ROOT / "sdk/examples/hello.c").read_text().replace(
                       '"keel_plugin.h"', "<keel/keel_plugin.h>")}, ["keel-hello"],
               "bin/keel devices | grep -o 'hello:0' | head -n 1", "hello:0\n"),
}


def make(name, build):
    """Edits, builds and runs in the view. Returns None, or the fault"""
    most, edits, targets, command, wanted = ADDITIONS[name]
    for path, edit in edits.items():
        file = ROOT / path
        before = file.read_text() if file.exists() else ""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(edit if isinstance(edit, str) else edit(before))
    (build / "added.cc").write_text(PROGRAM)
    (build / "gradients.py").write_text(GRADIENTS)
    if targets:
        done = subprocess.run(["cmake", "--build", build, "--target", *targets], capture_output=True, text=True)
        if done.returncode:
            return done.stdout[-4000:] + done.stderr
    done = subprocess.run(["bash", "-c", command], cwd=build, capture_output=True, text=True,
                          env={**os.environ, "ROOT": str(ROOT), "PYTHON": str(ROOT / ".venv/bin/python")})
    if done.stdout != wanted:
        return f"{command}\nprinted\n{done.stdout}{done.stderr}and not\n{wanted}"
    edited = [path for path in edits if name != "plugin" or not path.startswith("plugins/hello/")]
    return None if len(edited) <= most else f"edits {len(edited)} files; at most {most}"


def in_a_view(name, build):
    with tempfile.TemporaryDirectory() as folder:
        upper, work = Path(folder, "upper"), Path(folder, "work")
        upper.mkdir(), work.mkdir()
        mount = f'mount -t overlay overlay -o "lowerdir={ROOT},upperdir={upper},workdir={work}" "{ROOT}" && cd "{ROOT}" && exec "$@"'
        users = [] if os.geteuid() == 0 else ["--map-root-user"]
        return subprocess.run(["unshare", "--mount", *users, "bash", "-c", mount, "view", sys.executable, __file__, build,
                               "--make", name], capture_output=True, text=True)


def main():
    build = Path(sys.argv[1]).resolve()
    if sys.argv[2:3] == ["--make"]:
        wrong = make(sys.argv[3], build)
        print(wrong or "")
        return 1 if wrong else 0
    failed = 0
    names = sys.argv[2:] or list(ADDITIONS)
    for name in names:
        done = in_a_view(name, build)
        failed += done.returncode != 0
        files = ", ".join(ADDITIONS[name][1])
        print(f"{name}: {'FAILED: ' + done.stdout + done.stderr if done.returncode else 'built and run'}: {files}", flush=True)
    print(f"additions: {len(names)}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
