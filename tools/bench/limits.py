"""Limits on running processes: a quota of processor time, and a reduced affinity mask."""
import contextlib
import os
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD = 100_000  # us


def group_files():
    """(cpu cgroup folder, {file: text for a quota of that many cores}), for cgroups version 1 or 2."""
    for root in (ROOT / "cpu", ROOT / "cpu,cpuacct"):
        if (root / "cpu.cfs_quota_us").exists() or (root / "tasks").exists():
            return root, lambda cores: {"cpu.cfs_period_us": PERIOD, "cpu.cfs_quota_us": round(cores * PERIOD)}
    return ROOT, lambda cores: {"cpu.max": f"{round(cores * PERIOD)} {PERIOD}"}


@contextlib.contextmanager
def quota(cores, pids):
    """Limits the processes together to that many cores (1.5: 150 ms of processor time per 100 ms). Needs root."""
    root, texts = group_files()
    folder = root / f"keel-bench-{os.getpid()}"
    folder.mkdir()
    try:
        for name, text in texts(cores).items():
            (folder / name).write_text(str(text))
        for pid in pids:
            (folder / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for pid in pids:
            (root / "cgroup.procs").write_text(str(pid))
        folder.rmdir()


@contextlib.contextmanager
def cores(count, pids):
    """Restricts all threads of the processes to the first `count` cores, like `taskset -a -p`."""
    threads = [int(t.name) for pid in pids for t in Path(f"/proc/{pid}/task").iterdir()]
    before = {t: os.sched_getaffinity(t) for t in threads}
    for t in threads:
        os.sched_setaffinity(t, sorted(before[t])[:count])
    try:
        yield
    finally:
        for t in threads:
            os.sched_setaffinity(t, before[t])
