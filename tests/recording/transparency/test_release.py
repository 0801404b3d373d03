"""A walked chain of any depth is freed without overflowing the C stack."""

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from runs import python

from gradinspect.recording.transparency import release

PROGRAM = """
import gc, sys, torch
from gradinspect.recording.transparency import release
from gradinspect.recording.walk import Walk
x = torch.ones(2, requires_grad=True)
y = x
for _ in range(120_000):
    y = y + x
walk = Walk([y.grad_fn])
if "fail" in sys.argv:
    try:
        walk.numbers = None
        walk.numbers.clear()
    except AttributeError:
        walk.numbers = {}
walk.close()
if "backward" in sys.argv:
    y.sum().backward()
if "exit" in sys.argv:
    sys.exit()
half = None
if "half" in sys.argv:
    half = y.grad_fn
    for _ in range(60_000):
        half = half.next_functions[0][0]
del y
gc.collect(0)
if half is not None:
    print("kept", len(release._parked))
    del half
    gc.collect(0)
print("parked", len(release._parked), release._on_collection in gc.callbacks)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["drop", "backward", "exit", "half", "fail"])
def test_a_deep_chain_dies_in_peace(how: str, tmp_path: Path) -> None:
    """The process lives on, and nothing of the graph is held, whichever way the chain goes."""
    script = tmp_path / "deep.py"
    script.write_text(PROGRAM)
    if how == "exit":  # Python takes all apart, which a fork leaves out
        command = [sys.executable, str(script), how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    else:
        done = python(script, how)

    assert (done.returncode, done.stderr) == (0, "")
    if how != "exit":
        assert done.stdout.splitlines()[-1] == "parked 0 False"


@pytest.mark.slow
def test_a_chain_that_was_never_parked_ends_the_process(tmp_path: Path) -> None:
    """The fact that all this rests on: torch frees a walked chain by recursion."""
    script = tmp_path / "deep.py"
    script.write_text(PROGRAM.replace("walk.close()\n", "walk.nodes.clear(); walk.numbers.clear(); del walk\n", 1))

    assert python(script, "drop").returncode < 0  # a signal


class Wrapper:
    """Stands for the wrapper of a node; the order in which these die is noted."""

    def __init__(self, number: int, died: list[int]) -> None:
        self.number = number
        self.died = died

    def __del__(self) -> None:
        """Note it."""
        self.died.append(self.number)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Park nothing of other tests, and no wrapper longer than the test."""
    monkeypatch.setattr(release, "_parked", [])
    monkeypatch.setattr(release, "SMALL_GRAPH", 4)
    yield
    release._parked.clear()
    with suppress(ValueError):
        gc.callbacks.remove(release._on_collection)


def park(died: list[int], first: int, count: int) -> list[object]:
    """Park some wrappers, and return them."""
    wrappers: list[object] = [Wrapper(number, died) for number in range(first, first + count)]
    release.park_wrappers(wrappers)
    return wrappers


@pytest.mark.usefixtures("alone")
def test_wrappers_are_released_root_first_once_nothing_holds_the_root() -> None:
    """Not before, and then at the next collection, which is looked for no longer."""
    died: list[int] = []
    root = park(died, 0, 6)[0]
    release._on_collection("stop", {})
    before = list(died)
    watches = release._on_collection in gc.callbacks
    del root
    release._on_collection("start", {})
    at_start = list(died)
    gc.collect(0)

    assert (before, watches, at_start) == ([], True, [])
    assert died == [0, 1, 2, 3, 4, 5]
    assert release._parked == []
    assert release._on_collection not in gc.callbacks


@pytest.mark.usefixtures("alone")
def test_what_the_user_still_holds_is_kept_in_order() -> None:
    """The part behind the node that somebody has stays parked while it is long, and is released from there on."""
    died: list[int] = []
    wrappers = park(died, 0, 12)
    middle = wrappers[6:]
    del wrappers
    release.release_wrappers()
    kept = [[wrapper.number for wrapper in held] for held in release._parked]  # type: ignore[attr-defined]
    first = list(died)
    del middle
    release.release_wrappers()

    assert first == [0, 1, 2, 3, 4, 5]
    assert kept == [[11, 10, 9, 8, 7, 6]]
    assert died == list(range(12))


@pytest.mark.usefixtures("alone")
def test_a_short_rest_is_not_parked() -> None:
    """It may be freed in any order, as a small graph may."""
    died: list[int] = []
    wrappers = park(died, 0, 10)
    rest = wrappers[8:]
    del wrappers
    release.release_wrappers()
    park(died, 20, 4)

    assert release._parked == []
    assert sorted(died) == [0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 23]
    assert len(rest) == 2


@pytest.mark.usefixtures("alone")
def test_a_graph_that_is_walked_again_is_held_once() -> None:
    """Else neither list would be the only owner, and nothing would be released; other graphs stay as they are."""
    died: list[int] = []
    wrappers = park(died, 0, 6)
    other = park(died, 10, 5)
    release.park_wrappers(wrappers[1:])
    held = [[wrapper.number for wrapper in held] for held in release._parked]  # type: ignore[attr-defined]
    release.park_wrappers(wrappers)
    again = [[wrapper.number for wrapper in held] for held in release._parked]  # type: ignore[attr-defined]
    del wrappers, other
    release.release_wrappers()

    assert held == [[0], [14, 13, 12, 11, 10], [5, 4, 3, 2, 1]]
    assert again == [[14, 13, 12, 11, 10], [5, 4, 3, 2, 1, 0]]
    assert sorted(died) == [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14]


@pytest.mark.usefixtures("alone")
def test_several_threads_park_and_release() -> None:
    """None takes a list that another one is emptying, and nothing is left."""
    died: list[int] = []
    errors: list[BaseException] = []
    interval = sys.getswitchinterval()

    def work() -> None:
        try:
            for _ in range(1000):
                park(died, 0, 8)
                release.release_wrappers()
        except BaseException as error:
            errors.append(error)

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    release.release_wrappers()

    assert (errors, release._parked, len(died)) == ([], [], 32_000)
