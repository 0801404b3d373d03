"""The line that decided what two runs of a function did."""

import random
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from gradinspect.checks.evidence.decisions import decision

SOURCE = """\
import random
cache, flag = [], True


def block(x, kept=()):
    if flag:
        x = first(x)
    else:
        x = second(x)
    for step in range(len(cache)):
        x = third(x)
    y = first(x) if x is None else second(x)
    return helper(x)


def drawn(x):
    n = random.randint(1, 4)
    local = []
    local.append(n)
    return first(x[:n])


def grown(x):
    cache.append(x)
    return first(cache)


def frozen(x):
    needs = x.requires_grad
    return first(x)


class Net:
    def forward(self, x):
        y = x + 1
        self.memory = y
        return first(self.memory)


def pure(x):
    return first(x)


def local(x, given, *, by=None):
    given.append(x)
    found, by[0] = [], x
    found.append(x)
    append(x)
    return first(x)


def shared(x):
    global count
    count = cache
    count.append(x)
    return first(x)


def timed(x):
    now: float = time.time()
    return first(x, now)


def counted(x):
    flags[0] += 1
    return first(x)


def matched(x):
    match x:
        case 1:
            return first(x)
        case 2:
            return second(x)
        case _:
            return second(x) if x else first(
                x,
            )
    try:
        if flag:
            x = first(
                x,
            )
            x = third(x)
        else:
            x = second(x)
    except ValueError:
        x = third(x)
    except KeyError:
        x = second(x)
    return (
        first(x) if x
        else second(x)
    )


top = random.random()
"""


@pytest.fixture
def codes(tmp_path: Path) -> dict[str, CodeType]:
    """Compile the functions."""
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    space: dict[str, Any] = {"random": random}
    exec(compile(SOURCE, str(file), "exec"), space)  # noqa: S102  # functions of a file of ours
    found = {name: value.__code__ for name, value in space.items() if hasattr(value, "__code__")}
    return {**found, "forward": space["Net"].forward.__code__}


@pytest.mark.parametrize(
    ("function", "lines", "decided"),
    [
        ("block", (7, 9), 6),  # the branches of an if
        ("block", (11, 13), 10),  # a loop that one run did not enter
        ("block", (7, 13), 6),  # a branch that one run skipped
        ("drawn", (20, 20), 17),
        ("grown", (25, 25), 24),
        ("frozen", (30, 30), 29),
        ("forward", (37, 37), 36),
        ("pure", (41, 41), None),
        ("local", (49, 49), None),  # what it changes is its own, or a part of what it was given
        ("shared", (56, 56), 55),
        ("timed", (61, 61), 60),
        ("counted", (66, 66), 65),
        ("matched", (72, 74), 70),  # another case
        ("matched", (76, 77), 76),  # of an expression in a case
        ("matched", (82, 86), 80),  # the innermost branch of two, in one of several lines
        ("matched", (81, 84), None),  # two lines of one branch
        ("matched", (88, 90), 79),  # another handler
        ("matched", (84, 90), 80),
        ("matched", (92, 93), 92),
        ("matched", (97, 97), None),  # outside of all functions
    ],
)
def test_the_line_that_decided(
    codes: dict[str, CodeType], function: str, lines: tuple[int, int], decided: int | None
) -> None:
    """A branch, a loop, a random number, a list that grows, what requires grad, an attribute; or nothing."""
    code = codes[function]
    found = decision([(code, lines[0])], [(code, lines[1])])

    assert (None if found is None else found[1]) == decided


def test_two_runs_part_in_the_function_that_both_were_in(codes: dict[str, CodeType]) -> None:
    """What they called is different; a helper may have decided too."""
    outer, one, other = codes["block"], codes["drawn"], codes["grown"]

    assert decision([(one, 20), (outer, 7)], [(other, 25), (outer, 9)]) == (outer, 6)
    assert decision([(one, 20), (outer, 13)], [(one, 20), (outer, 13)]) == (one, 17)
    assert decision([(one, 20), (outer, 7)], [(one, 20), (outer, 9)]) == (outer, 6)
    assert decision([(outer, 7), (one, 20)], [(outer, 9), (one, 20)]) == (outer, 6)
    assert decision([(outer, 7), (one, 20)], [(outer, 7), (one, 20)]) == (one, 17)
    assert decision([(outer, 7)], [(one, 20)]) is None
    assert decision([], []) is None


def test_runs_may_be_called_from_different_depths() -> None:
    """What both were in is compared."""

    def outer() -> int:
        return 1

    def inner() -> int:
        return 2

    line = outer.__code__.co_firstlineno + 1
    short, long = [(outer.__code__, line)], [(inner.__code__, line + 3), (outer.__code__, line)]

    assert decision(short, long) is None
    assert decision(long, short) is None
