"""Output on a terminal: lines that fit, progress during work; a pipe gets neither."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from command import command

CHAIN = "keel 1\n\nfn @main(x: f32[3, 40]) -> f32[3, 40] {\n" + "".join(
    f"  a_rather_long_name_of_a_value_number_{i} = tanh({'x' if i == 0 else f'a_rather_long_name_of_a_value_number_{i - 1}'})\n"
    for i in range(3)) + "  return a_rather_long_name_of_a_value_number_2\n}\n\nentry main = @main (x) -> (y)\n"

LONG = "keel 1\n\nfn @main(" + ", ".join(f"an_input_number_{i}: f32[{'max(rows, 2), ' * 7}columns]" for i in range(2)) + \
    ") {\n  y = an_input_number_0 + an_input_number_1\n  return y\n}\nentry main = @main (an_input_number_0, an_input_number_1) -> (y)\n"


@pytest.fixture
def at_terminal(tmp_path):
    """at_terminal(60, "run", ...): exit code and output on a terminal of 60 columns; stop=True: Ctrl-C on first output."""
    def run(columns, *arguments, stop=None, stderr_only=False):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([command(), *map(str, arguments)], cwd=tmp_path, stdin=slave, stderr=slave,
                                   stdout=subprocess.PIPE if stderr_only else slave,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        os.close(slave)
        seen = b""
        while True:
            try:
                got = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            seen += got
            if not got:
                break
            if stop and stop in seen:
                process.send_signal(signal.SIGINT)
                stop = None
        out = process.stdout.read().decode() if stderr_only else ""
        os.close(master)
        return process.wait(60), seen.decode().replace("\r\n", "\n"), out
    return run


@pytest.mark.parametrize("arguments", [["dump", "g.txt"], ["plan", "g.txt", "-d", "cpu"], ["inspect", "g.txt"],
                                       ["optimize", "g.txt"], ["profile", "g.txt", "-n", "7"],
                                       ["run", "g.txt", "-i", "x=randn(1)"], ["ops"], ["ops", "-d", "cpu"], ["passes"],
                                       ["compare", "g.txt", "-d", "cpu,reference"], ["devices"], ["--help"], ["plan", "--help"],
                                       ["doctor"], ["signatures", "long.txt"], ["inspect", "long.txt"], ["bench", "g.txt", "-n", "3"], ["demo"],
                                       ["run", "g.txt", "-i", "x=randn(1)", "--break", "*"], ["eval", "iota(){dims=[3, 40], axis=1} * 123456"]])
def test_lines_fit_the_terminal(at_terminal, graph, arguments):
    graph(CHAIN)
    graph(LONG, "long.txt")
    code, text, _ = at_terminal(60, *arguments)
    assert code == 0
    plain = re.sub(r"\r[^\n\r]*\x1b\[K", "", text)
    assert max(map(len, plain.splitlines())) <= 60, max(plain.splitlines(), key=len)


def test_numbers_are_wrapped_not_cut(at_terminal, keel, graph):
    graph(CHAIN)
    _, text, _ = at_terminal(60, "run", "g.txt", "-i", "x=randn(1)")
    number = re.compile(r"-?\d+\.?\d*(?:e-\d+)?")
    assert number.findall(text) == number.findall(keel("run", "g.txt", "-i", "x=randn(1)").out)


def test_progress_shows_on_a_terminal_only(at_terminal, keel, graph):
    path = graph(CHAIN)
    code, err, out = at_terminal(80, "bench", path, "-i", "x=randn(1)", "-n", "5000000", "-d", "cpu", stop=b"run ", stderr_only=True)
    assert re.search(r"\rkeel bench: run \d+ of 5000000", err) and code == 6
    assert re.search(r"stopped by Ctrl-C after \d+ of 5000000 runs", err)
    done = int(re.search(r"after (\d+) of", err)[1])
    assert f" {done} runs," in out and "p50_ms" in out and "throttling" in out
    assert keel("bench", path, "-n", "20").err.count("\n") == 1  # only the generated inputs
    _, err, _ = at_terminal(80, "convert", path, "g.keel", stderr_only=True)
    assert "\rkeel convert: reading" in err and err.endswith("\r\x1b[K")
    assert keel("convert", path, "h.keel").err == ""


def test_an_interrupted_profile_gives_what_it_has(at_terminal, graph):
    path = graph(CHAIN)
    code, err, out = at_terminal(80, "profile", path, "-d", "cpu", "-n", "5000000", stop=b"run ", stderr_only=True)
    assert code == 6 and re.search(r"stopped by Ctrl-C after \d+ of 5000000 runs", err)
    assert "measured roofline" in out and "tanh" in out
