"""A program that we start never outlives us."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradinspect.renderers.picture import child_process
from gradinspect.renderers.picture.child_process import Finished, run_child

posix = pytest.mark.skipif(not hasattr(os, "killpg"), reason="processes have no groups here")


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_a_program_writes_comes_back() -> None:
    """Its output, its errors and how it ended."""
    code = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('e'); sys.exit(3)"

    assert Finished(3, b"TEXT", b"e") == run_child([sys.executable, "-c", code], b"text", 60)


def test_a_program_that_is_not_there() -> None:
    """The error is that of the system, and nobody is left to wait."""
    with pytest.raises(FileNotFoundError):
        run_child(["./nowhere"], b"", 60)


@posix
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_program_ends_with_us(number: signal.Signals, tmp_path: Path) -> None:
    """Whatever ends us, and with it whatever it has started itself."""
    inner = f"import os, time; open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(600)"
    outer = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {inner!r}])\n{inner}"
    ours = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from gradinspect.renderers.picture.child_process import run_child\n"
        f"run_child([{sys.executable!r}, '-c', {outer!r}], b'', 600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", ours], stderr=subprocess.DEVNULL)
    while not (tmp_path / "pids").exists() or len((tmp_path / "pids").read_text().split()) < 2:
        assert parent.poll() is None
        time.sleep(0.05)
    children = list(map(int, (tmp_path / "pids").read_text().split()))

    assert all(map(is_alive, children))

    parent.send_signal(number)
    parent.wait()
    while any(map(is_alive, children)):  # it hangs where this does not hold
        time.sleep(0.05)


@posix
def test_without_a_shell_the_group_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that takes too long is ended all the same."""
    monkeypatch.setattr(child_process, "which", lambda *_, **__: None)

    with pytest.raises(subprocess.TimeoutExpired):
        run_child([sys.executable, "-c", "import time; time.sleep(600)"], b"", 0.1)


def test_without_groups_the_program_alone_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.delattr(os, "killpg", raising=False)

    with pytest.raises(subprocess.TimeoutExpired):
        run_child([sys.executable, "-c", "import time; time.sleep(600)"], b"", 0.1)
