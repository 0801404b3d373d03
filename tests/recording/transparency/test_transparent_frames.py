"""The stack as it would be without us."""

import re
import sys
import traceback
import warnings
from contextlib import nullcontext
from types import FrameType
from typing import Any, ClassVar

import pytest
import torch

from gradinspect.recording.frames import RUNNERS
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.transparency import transparent_frames
from gradinspect.recording.transparency.transparent_frames import (
    frames_without_us,
    stack_without_us,
    warnings_without_us,
)


class Asks(torch.Tensor):
    """Notes the stack when a function is called with it."""

    seen: ClassVar[list[list[str]]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note it."""
        stack = list(frames_without_us(sys._getframe()))
        stop = next(number for number, frame in enumerate(stack) if frame.f_code.co_name.startswith("test_"))
        cls.seen.append([frame.f_code.co_name for frame in stack[: stop + 1]])
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_watched_call_has_the_stack_of_one_that_is_not() -> None:
    """Of a function in C, and of one in Python, which torch passes to our mode and we call again."""
    x = torch.ones(2).as_subclass(Asks)
    Asks.seen = []
    for _ in range(2):
        x.exp()
        torch.nn.functional.softmax(x, 0)
        with Recorder():
            x.exp()
            torch.nn.functional.softmax(x, 0)
    plain, watched = Asks.seen[: len(Asks.seen) // 4], Asks.seen[len(Asks.seen) // 4 : len(Asks.seen) // 2]

    assert plain == watched
    assert all("__torch_function__" in stack[0] for stack in plain)


def nested(depth: int, then: Any) -> Any:
    """Call something a few frames further in."""
    return nested(depth - 1, then) if depth else then()


def test_without_us_on_it_a_stack_is_all_of_it() -> None:
    """Innermost first; a function that calls itself is not called once only."""
    names = [
        frame.f_code.co_name for frame in nested(3, lambda: list(frames_without_us(sys._getframe())))
    ]  # fmt: skip
    kept = nested(2, lambda: transparent_frames._kept_from(sys._getframe()))

    assert names[:6] == [
        "<lambda>", "nested", "nested", "nested", "nested", test_without_us_on_it_a_stack_is_all_of_it.__name__,
    ]  # fmt: skip
    assert kept == [True] * len(traceback.format_stack(sys._getframe())) + [True] * 4


def as_ours(text: str, **known: Any) -> dict[str, Any]:
    """Run code as if it stood in a file of ours."""
    namespace: dict[str, Any] = dict(known)
    exec(compile(text, f"{transparent_frames._OURS}/recording/made_up.py", "exec"), namespace)  # noqa: S102
    return namespace


def test_our_frames_are_left_out_wherever_they_are() -> None:
    """In the middle, and several in a row."""
    ours = as_ours("def call(then):\n    return again(then)\n\ndef again(then):\n    return then()\n")

    def stack() -> list[str]:
        return [frame.f_code.co_name for frame in frames_without_us(sys._getframe())]

    def outer() -> list[str]:
        found: list[str] = ours["call"](stack)
        return found

    assert outer()[:3] == ["stack", "outer", test_our_frames_are_left_out_wherever_they_are.__name__]
    assert outer_kept(ours)[-4:] == [True, False, False, True]


def outer_kept(ours: dict[str, Any]) -> list[bool]:
    """Ask which frames would exist, from a frame behind two of ours."""
    found: list[bool] = ours["call"](lambda: transparent_frames._kept_from(sys._getframe()))
    return found


def test_of_entries_that_are_no_stack_all_are_kept() -> None:
    """Another program may have replaced the function that makes them."""
    ours = as_ours("def call(then):\n    return then()\n")
    formatted = stack_without_us(lambda: ["one"])
    stack = stack_without_us(traceback.format_stack)

    assert formatted() == ["one"]
    assert any(transparent_frames._OURS in entry for entry in ours["call"](traceback.format_stack))
    assert not any(transparent_frames._OURS in entry for entry in ours["call"](stack))


def shown(warn: Any, **filters: Any) -> list[tuple[str, int]]:
    """Issue warnings through ours, and return the lines that are shown."""
    found: list[tuple[str, int]] = []
    ours = as_ours("def call(then):\n    return then()\n")
    with warnings.catch_warnings():
        warnings.simplefilter(filters.get("action", "always"))
        show = warnings_without_us(lambda message: found.append((message.filename, message.lineno)))
        original = warnings._showwarnmsg  # type: ignore[attr-defined]
        warnings._showwarnmsg = show  # type: ignore[attr-defined]
        try:
            ours["call"](warn)
        finally:
            warnings._showwarnmsg = original  # type: ignore[attr-defined]
    return found


def line_of(frame: FrameType) -> int:
    """Return the line that a frame is at."""
    return frame.f_lineno


def test_a_warning_is_shown_for_the_line_that_it_would_have_without_us() -> None:
    """The first caller that is not ours; a warning about its own line stays where it is."""
    here: list[int] = []

    def own() -> None:
        here.append(line_of(sys._getframe()) + 1)
        warnings.warn("own", stacklevel=1)

    def of_the_caller() -> None:
        warnings.warn("caller", stacklevel=2)

    (by_itself,) = shown(own)
    ((file, line),) = shown(of_the_caller)

    assert by_itself == (__file__, here[0])
    assert file == __file__
    assert line == shown.__code__.co_firstlineno + 10


def test_a_warning_of_a_caller_outside_the_program_is_placed_where_python_places_it() -> None:
    """A script that warns of its caller has none: not our frame, and not its own line."""
    plain: list[tuple[str, int]] = []
    beyond = 10_000  # more than there are frames
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("beyond all", stacklevel=beyond)
        plain += [(one.filename, one.lineno) for one in caught]
    runner = next(iter(RUNNERS))
    namespace: dict[str, Any] = {}
    exec(compile("def run(then):\n    return then()\n", runner, "exec"), namespace)  # noqa: S102

    def warns(level: int) -> None:
        warnings.warn(f"level {level}", stacklevel=level)

    def script() -> None:
        for level in (2, 3, 4, beyond):
            warns(level)

    found = shown(lambda: namespace["run"](script))

    assert found[0] == (__file__, script.__code__.co_firstlineno + 2)
    assert found[1:] == plain * 3


TRACED = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.conv, self.cell = torch.nn.Linear(3, 3), torch.nn.Conv1d(3, 3, 1), torch.nn.GRU(3, 3)

    def forward(self, x):
        hidden = self.linear(x).relu()
        softly = torch.softmax(hidden, -1) + hidden
        out, state = self.cell(softly.unsqueeze(0))
        first, second = torch.split(torch.nn.functional.gelu(out), 1, 1)
        return torch.cat([first, second]) * self.conv(out.transpose(1, 2)).sum()

def expression(x, y):
    product = x @ y
    return torch.einsum("ij->i", product.exp()) + torch.nn.functional.dropout(product, 0.5, False)[:, 0]
"""


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("name", ["Net()", "torch.nn.TransformerEncoderLayer(4, 2, 4)", "expression"])
def test_traced_code_has_the_lines_and_names_that_it_has_without_us(name: str) -> None:
    """NOTE [Traced regions]: they stand in the code of the trace, in what is exported from it, and in its errors."""
    known: dict[str, Any] = {"torch": torch, "__name__": __name__}
    exec(compile(TRACED, "<traced>", "exec"), known)  # noqa: S102
    inputs = {
        "Net()": (torch.ones(2, 3),),
        "expression": (torch.ones(2, 2), torch.ones(2, 2)),
    }.get(name, (torch.ones(2, 3, 4),))
    said = []
    for watching in (nullcontext(), Recorder(), nullcontext()):
        with watching:
            traced = torch.jit.trace(eval(name, known), inputs, check_trace=False)  # noqa: S307
        said.append(re.sub(r"\.___torch_mangle_\d+", "", f"{traced.inlined_graph}{traced.code}"))

    assert "# " in said[0]  # its lines are there
    assert said == said[:1] * 3


def test_a_warning_that_is_an_error_is_raised_without_our_frames() -> None:
    """A filter of the module that it belongs to may ask for that."""

    def of_the_caller() -> None:
        warnings.warn("caller", stacklevel=2)

    with pytest.raises(UserWarning, match="caller"):
        shown(of_the_caller, action="error")
