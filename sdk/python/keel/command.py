"""The command `keel` of the package: its path, and running it.

    python -m keel inspect m.keel        # the same as: keel inspect m.keel
"""
import os
import sys

from .errors import Error, NotFoundError

PATH = os.path.join(os.path.dirname(__file__), "bin", "keel")


def path():
    """The path of the executable. Raises NotFoundError."""
    if not os.path.exists(PATH):
        raise NotFoundError(f"the package has no command `keel`: {PATH} does not exist",
                            hint="install the wheel, or build the whole tree")
    return PATH


def run(*arguments):
    """Runs the command and returns its stdout as text. Raises keel.Error with its stderr if it fails."""
    import subprocess  # imported here, to keep `import keel` fast
    done = subprocess.run([path(), *arguments], capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Error(f"keel {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def main():
    """Replaces the process by the command, with the same arguments."""
    os.execv(path(), ["keel", *sys.argv[1:]])
