"""After the capture a program stops, whatever it does with exceptions, and cleans up after itself."""

from pathlib import Path

import pytest
from runs import gradinspect, python

# Every program prints KEPT for what must still happen, and LOST for what must not.
PREAMBLE = """
import atexit, contextlib, sys
import torch
atexit.register(lambda: print("KEPT atexit"))
x = torch.ones(2, requires_grad=True)
def step():
    (x * 2).sum().backward()
    print("LOST after backward")
"""
PROGRAMS = {
    "endless_bare_except": """
while True:
    try:
        step()
    except:
        print("KEPT handler")
""",
    "except_exception": """
try:
    step()
except Exception:
    print("LOST except Exception")
""",
    "except_keyboard_interrupt": """
try:
    step()
except KeyboardInterrupt:
    print("LOST KeyboardInterrupt")
""",
    "finally_and_with": """
class Context:
    def __enter__(self): return self
    def __exit__(self, *error):
        for _ in range(3):
            pass
        print("KEPT exit")
try:
    with Context():
        step()
finally:
    for _ in range(3):
        pass
    print("KEPT finally")
""",
    "suppress": """
for _ in range(3):
    with contextlib.suppress(BaseException):
        step()
    print("LOST after suppress")
""",
    "return_in_finally": """
def inner():
    try:
        step()
    finally:
        return 3
value = inner()
print("LOST after return", value)
""",
    "raise_from": """
try:
    step()
except BaseException as error:
    raise RuntimeError("LOST") from error
""",
    "del_while_unwinding": """
class Guard:
    def __del__(self):
        one = 1
        print("KEPT del")
def hold():
    guard = Guard()
    step()
hold()
""",
    "generator": """
@contextlib.contextmanager
def swallowing():
    try:
        yield
    except BaseException:
        print("KEPT generator")
with swallowing():
    step()
print("LOST after with")
""",
    "unittest": """
import unittest
class Case(unittest.TestCase):
    def test_a(self):
        step()
    def test_b(self):
        print("LOST second test")
unittest.main(argv=["x"])
""",
    "thread": """
import threading
thread = threading.Thread(target=step)
thread.start()
thread.join()
for _ in range(10**10):
    pass
""",
    "queue": """
import queue, threading
answers = queue.Queue()
threading.Thread(target=step).start()
answers.get()
""",
    "queue_without_exit": """
import os, queue, threading
os._exit = lambda code: print("LOST exit")
answers = queue.Queue()
threading.Thread(target=step).start()
answers.get()
""",
    "pool": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    pool.submit(step).result()
print("LOST after pool")
""",
    "asyncio": """
import asyncio
async def main():
    try:
        step()
    except BaseException:
        print("KEPT coroutine")
    await asyncio.sleep(0)
    print("LOST after await")
asyncio.run(main())
""",
    "loader": """
from torch.utils.data import DataLoader, TensorDataset
for _ in DataLoader(TensorDataset(torch.ones(8, 2)), num_workers=2):
    step()
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_stops_and_cleans_up(name: str, tmp_path: Path) -> None:
    """What must run runs, what must not does not, no traceback is printed, and there is a report."""
    body = PROGRAMS[name]
    script = tmp_path / "program.py"
    script.write_text(PREAMBLE + body)
    done = gradinspect("trace", script)
    printed = done.stdout + done.stderr
    kept = {line.split("KEPT ")[1].strip('")') for line in body.splitlines() if "KEPT" in line} | {"atexit"}

    assert done.returncode == 0
    assert "backward #1  program.py:7" in done.stdout
    assert "LOST" not in printed
    assert "Traceback" not in printed
    for what in kept:
        assert f"KEPT {what}" in printed


TESTS = """
import pytest, torch
@pytest.fixture
def thing():
    yield
    print("KEPT fixture")
def step(thing):
    try:
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
    except Exception:
        print("LOST handler")
    except:
        print("KEPT handler")
    print("LOST after backward")
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["test_it = step\ndef test_b(): print('LOST second')\n", "step(None)\n"])
@pytest.mark.parametrize("option", [(), ("--continue",)])
def test_pytest_ends_in_order(where: str, option: tuple[str, ...], tmp_path: Path) -> None:
    """At the first backward of a test, or of a module that is collected: with its fixtures and without a traceback."""
    (tmp_path / "test_steps.py").write_text(TESTS + where)
    done = gradinspect("trace", *option, "-m", "pytest", "--", "-q", "-s", "-p", "no:cacheprovider", cwd=tmp_path)

    assert done.returncode == (5 if option and "test_b" not in where else 0)
    assert done.stderr == ""
    assert "backward #1  test_steps.py:9" in done.stdout
    assert "Traceback" not in done.stdout
    assert "gradinspect/" not in done.stdout
    assert ("LOST" in done.stdout) == bool(option)
    assert ("KEPT fixture" in done.stdout) == ("test_b" in where)
    assert ("KEPT handler" in done.stdout) == (not option)


MEASURED = """
import torch
def cleaned():
    print("cleaned")
def step():
    try:
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
        print("not run")
    finally:
        cleaned()
def train():
    try:
        step()
    except:
        print("swallowed")
    print("not run")
train()
"""
MEASURING = """
import atexit
import coverage
watched = coverage.Coverage(data_file=None, config_file=False, include=["steps.py"], branch=True)
def measured():
    watched.stop()
    print("not run:", watched.analysis2("steps.py")[3])
atexit.register(measured)
watched.start()
import steps
"""


def test_a_tracer_of_the_program_sees_what_runs_after_the_stop(tmp_path: Path) -> None:
    """Coverage of the program has the lines of its `finally:` and what they call, and no others than are run."""
    (tmp_path / "steps.py").write_text(MEASURED)
    (tmp_path / "program.py").write_text(MEASURING)
    done = gradinspect("trace", "program.py", cwd=tmp_path)
    lines = done.stdout.splitlines()

    assert (lines[:2], lines[-1]) == (["cleaned", "swallowed"], "not run: [8, 16]")


WITHHOLDING = """
from gradinspect.runner.stopping import Stopper
def program(stopper):
    with stopper.withheld():
        stopper.stop_from_outside(0, 60.0)
        for _ in range(1000):
            pass
        print("KEPT judging")
    for _ in range(1000):
        pass
    print("LOST after judging")
with Stopper() as stopper:
    try:
        program(stopper)
    except SystemExit:
        print("KEPT stop")
    finally:
        stopper.ended()
"""


def test_a_stop_from_another_thread_waits_for_what_is_judged(tmp_path: Path) -> None:
    """And comes as soon as that is over: under load, findings were lost when the time was up meanwhile."""
    (tmp_path / "program.py").write_text(WITHHOLDING)

    assert python(Path("program.py"), cwd=tmp_path).stdout.splitlines() == ["KEPT judging", "KEPT stop"]
