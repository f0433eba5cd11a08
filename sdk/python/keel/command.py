"""The command `keel` that comes with the package: where it is, and running it.

    python -m keel inspect m.keel        # the same as: keel inspect m.keel
"""
import os
import sys

from .errors import Error, NotFoundError

PATH = os.path.join(os.path.dirname(__file__), "bin", "keel")


def path():
    """The executable's path. Raises NotFoundError."""
    if not os.path.exists(PATH):
        raise NotFoundError(f"the command `keel` is not beside the package: {PATH} is not there",
                            hint="install the wheel, or build the whole tree")
    return PATH


def run(*arguments):
    """What the command prints. Raises keel.Error with what it says on stderr where it fails."""
    import subprocess  # here, for importing keel is to be quick
    done = subprocess.run([path(), *arguments], capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Error(f"keel {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def main():
    """Becomes the command, with the arguments of this program."""
    os.execv(path(), ["keel", *sys.argv[1:]])
