"""The command in the package: python -m keel, and keel.command."""
import subprocess
import sys

import keel
import pytest
from keel import command


def module_keel(*arguments):
    return subprocess.run([sys.executable, "-m", "keel", *arguments], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_the_module_is_the_command(tmp_path):
    done = module_keel("--version")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"keel {keel.__version__} ")
    keel.save(tmp_path / "m.keel", f=keel.function(lambda x: x * 2).concrete(keel.f32[2]))
    assert "[2, 4]" in module_keel("run", str(tmp_path / "m.keel"), "-i", "x=1,2").stdout
    assert module_keel("run", str(tmp_path / "no.keel")).returncode == 3 and module_keel("nonsense").returncode == 2


def test_the_package_runs_it_and_its_failures_are_errors(tmp_path):
    assert command.run("eval", "1 + 2").strip() == "3"
    with pytest.raises(keel.Error, match="keel run: cannot read.*no.keel"):
        command.run("run", str(tmp_path / "no.keel"))


def test_without_the_command_the_error_says_where_it_should_be(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "PATH", str(tmp_path / "keel"))
    with pytest.raises(keel.NotFoundError, match=str(tmp_path)):
        command.main()
