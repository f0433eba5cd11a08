"""Time of `import keel` minus that of `import numpy`: the minimum of several processes each.

Usage: import_time.py [BUILD]    BUILD has the folder python/keel (default: build/release)
"""
import subprocess
import sys
from pathlib import Path

CODE = "import sys, time; sys.path.insert(0, sys.argv[1]); begin = time.perf_counter(); import {}; print(time.perf_counter() - begin)"


def milliseconds(modules, package, rounds=15):
    command = [sys.executable, "-c", CODE.format(modules), package]
    return 1e3 * min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(rounds))


def main():
    build = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parents[2] / "build" / "release"
    package = str(build / "python")
    alone, before = milliseconds("keel", package), milliseconds("numpy", package)
    both = milliseconds("numpy, keel", package)
    print(f"keel alone {alone:.1f} ms; NumPy {before:.1f} ms, with keel {both:.1f} ms: {both - before:.1f} ms more")


if __name__ == "__main__":
    main()
