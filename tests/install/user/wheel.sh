#!/usr/bin/env bash
# The wheel alone, in an empty venv: the package, the command, the devices, a file that goes from the one to the other.
# Usage: wheel.sh PYTHON WHEEL
. "$(dirname "$0")/common.sh"
python=$1 wheel=$2
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" -q --disable-pip-version-check install --no-index --no-deps "$wheel"
cd "$work"
expect "keel " venv/bin/keel --version
expect "cpu" venv/bin/keel devices
graph add.keelt
expect "[4, 6]" venv/bin/keel run add.keelt -d cpu -i x=1,2 -i z=3,4
cat >program.py <<'END'
import keel
assert keel.__file__.startswith(__import__("sys").prefix), keel.__file__

@keel.function
def f(x):
    return keel.softmax(x @ x) if keel.reduce_sum(x) > 0 else x

print(keel.ones((2, 2)) @ keel.array([1., 2.]), f(keel.ones((2, 2))))
keel.save("f.keel", f=f.concrete(keel.f32[2, 2]))
END
expect "[3. 3.]" venv/bin/python program.py
expect "0.5" venv/bin/keel run f.keel -d cpu -i x=1,1,1,1
[ -e venv/share/man/man1/keel-run.1 ] || fail "no manual page in the venv"
echo "wheel: $("$work/venv/bin/python" --version) imports keel and runs the command"
