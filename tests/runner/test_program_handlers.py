"""While something is recorded, the program sees its own signal handlers, and ours are between them and our code."""

import contextlib
import re
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from runs import gradinspect

from gradinspect.recording.frames import RUNNERS
from gradinspect.runner import program_handlers
from gradinspect.runner.program_handlers import waiting_handlers
from gradinspect.runner.waiting_handler import WaitingHandler, handler_of
from gradinspect.torch_api.dynamo import passed_by

OURS = str(Path(program_handlers.__file__).parent / "made_up.py")
TORCHS = str(Path(torch.__file__).parent / "made_up.py")


def theirs(*_: object) -> None:
    """Do nothing."""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


def test_the_program_sees_its_own_handlers() -> None:
    """What it registers is what it gets back, and what was there before is again there afterwards."""
    signal.signal(signal.SIGUSR1, theirs)
    with waiting_handlers(), waiting_handlers():
        assert type(handler_of(signal.SIGUSR1)) is WaitingHandler
        assert signal.getsignal(signal.SIGUSR1) is theirs
        assert signal.signal(signal.SIGUSR1, signal.SIG_IGN) is theirs
        assert signal.signal(signal.SIGUSR1, theirs) is signal.SIG_IGN

    assert handler_of(signal.SIGUSR1) is theirs


def test_one_of_two_recordings_that_ends_leaves_handlers_to_the_other() -> None:
    """They may end in any order."""
    signal.signal(signal.SIGUSR1, theirs)
    first, second = waiting_handlers(), waiting_handlers()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)

    assert type(handler_of(signal.SIGUSR1)) is WaitingHandler

    second.__exit__(None, None, None)

    assert handler_of(signal.SIGUSR1) is theirs


def test_what_python_refuses_is_refused() -> None:
    """With its own error: another thread cannot register handlers, and not all numbers are signals."""
    errors: list[str] = []

    def register(number: int) -> None:
        try:
            signal.signal(number, theirs)
        except ValueError as error:
            errors.append(str(error))

    with waiting_handlers():
        register(1000)
        thread = threading.Thread(target=register, args=(signal.SIGUSR1,))
        thread.start()
        thread.join()

    assert errors == [
        "signal number out of range",
        "signal only works in main thread of the main interpreter",
    ]


def test_another_thread_lets_nothing_wait() -> None:
    """It could not take it back."""
    found: list[Any] = []
    signal.signal(signal.SIGUSR1, theirs)

    def look() -> None:
        with waiting_handlers():
            found.append(handler_of(signal.SIGUSR1))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert found == [theirs]


def calling(file: str, *, name: str = "call", is_passed_by: bool = False) -> Callable[..., Any]:
    """Return a function of a file that calls the first of its arguments with the others."""

    def call(inner: Callable[..., Any], *others: Callable[..., Any]) -> Any:
        return inner(*others)

    call.__code__ = call.__code__.replace(co_filename=file, co_name=name)
    return passed_by(call) if is_passed_by else call


def frame_here(*functions: Callable[..., Any]) -> FrameType:
    """Return the innermost frame, where each function calls the next one."""
    frame: FrameType = functions[0](*functions[1:], partial(sys._getframe, 0))
    return frame


def test_whose_code_runs() -> None:
    """NOTE [Whose code runs], and NOTE [Where nothing can be raised]."""
    program, torchs = calling("train.py"), calling(TORCHS)
    ours, hands_on, runner = calling(OURS), calling(OURS, is_passed_by=True), calling(RUNNERS[0])
    cases = {
        (program,): False,
        (program, torchs): False,
        (program, ours): True,
        (program, ours, torchs): True,
        (program, ours, program): False,
        (program, hands_on): True,
        (program, hands_on, torchs): False,
        (program, ours, hands_on, torchs): True,
        (program, calling(weakref.__file__)): True,
        (program, calling(TORCHS, name="__enter__")): True,
        (program, calling(contextlib.__file__, name="__exit__"), torchs): True,
        (program, calling(contextlib.__file__, name="__exit__"), program): False,
        (program, calling(threading.__file__, name="__enter__")): False,
        (program, calling(str(Path(torch.__file__).parent / "_subclasses" / "fake_tensor.py")), torchs): True,
        (program, calling(str(Path(torch.__file__).parent / "_library" / "simple_registry.py"))): True,
        (runner,): True,
        (runner, calling(contextlib.__file__)): True,
        (runner, torchs): False,
    }

    assert {chain: program_handlers._is_ours(frame_here(*chain)) for chain in cases} == cases


PROGRAM = """
import signal, torch
raised = caught = 0
is_armed = False
class Mine(BaseException): pass
def on_alarm(number, frame):
    global raised, is_armed
    if is_armed:
        is_armed = False
        raised += 1
        raise (Mine if raised % 2 else TimeoutError)(raised)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 1))
for parameter in net.parameters():
    parameter.register_hook(lambda gradient: gradient * 1.0)
optimizer = torch.optim.AdamW(net.parameters())
def step():
    optimizer.zero_grad()
    net(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
step()
signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
try:
    for _ in range(150):
        try:
            is_armed = True
            step()
            is_armed = False
        except (Mine, TimeoutError):
            caught += 1
finally:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
    except (Mine, TimeoutError):  # of a signal that came while the run was stopped
        caught += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    print("lost:", raised - caught, raised > 0, signal.getsignal(signal.SIGALRM) is on_alarm)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "verb", ["check --steps 100", "grads --continue", "memory --iterations 60", "fit --real", "fit"]
)
def test_no_exception_of_a_handler_is_lost(verb: str, tmp_path: Path) -> None:
    """A time limit raises every few milliseconds, wherever the main thread is, and the program catches each one."""
    (tmp_path / "script.py").write_text(PROGRAM)
    done = gradinspect(*verb.split(), "script.py", cwd=tmp_path, is_measured=False)

    assert re.findall("lost: .*", done.stdout + done.stderr) == ["lost: 0 True True"], done.stderr
    assert "not looked at" not in done.stderr + done.stdout
