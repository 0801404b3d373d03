"""Where a variable can be deleted."""

import ast

import pytest

from gradinspect.analyses.planning.deletions import Spot, deletable_after, with_deletions

LOOP = """
for x, y in data:
    out = model(x)
    with autocast():
        loss = criterion(out, y)
    optimizer.zero_grad()
    if train:
        loss.backward()
    total += loss.item()
"""
FUNCTION = """
def step(model, x, y):
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    return loss.item()
"""


def after(source: str, name: str) -> str | None:
    """Return the line after which a variable can be deleted; it is seen at the backward call."""
    lines = source.splitlines()
    seen = next(number for number, line in enumerate(lines, 1) if "backward" in line)
    spot = deletable_after(source, seen, name)
    return None if spot is None else lines[spot.line - 1].strip()


def test_a_variable_goes_after_its_last_use() -> None:
    """Of an iteration, or of a function."""
    assert after(LOOP, "out") == "loss = criterion(out, y)"
    assert after(LOOP, "x") == "out = model(x)"
    assert after(LOOP, "loss") == "total += loss.item()"
    assert after(FUNCTION, "out") == "loss = criterion(out, y)"
    assert after(FUNCTION, "x") == "out = model(x)"
    assert after("y = f(x)\ny.backward()\n", "y") == "y.backward()"


@pytest.mark.parametrize(
    "source",
    [
        LOOP + "print(out)\n",
        LOOP.replace("    out = model(x)", "    if first:\n        out = model(x)"),
        "def last():\n    return out\n" + LOOP,
        "last = lambda: out\n" + LOOP,
        LOOP + "print(locals())\n",
        "eval('out')\n" + LOOP,
        "for i in j:\n    print(out)\n" + LOOP.replace("\n", "\n    "),
        LOOP.replace("for x, y in data", "while out is None"),
        LOOP.replace("out = model(x)", "out = model(out)"),
        LOOP.replace("out = model(x)", "out += model(x)"),
        LOOP.replace("optimizer.zero", "del out; optimizer.zero"),
        FUNCTION.replace("out = ", "global out\n    out = "),
        FUNCTION.replace("loss.backward()", "loss.backward()\n    return out"),
        FUNCTION.replace("loss.backward()", "hook = lambda: out\n    loss.backward()"),
        FUNCTION.replace("    out = ", "    if x:\n        out = "),
        "class Step:\n    out = model(x)\n    out.backward()\n    y = [out for _ in range(2)]\n    def f(self): pass\n",
        "def f(:\n    backward",
    ],
)
def test_a_variable_that_may_be_missed_stays(source: str) -> None:
    """Something else may read it, or set it in some cases only."""
    assert after(source, "out") is None


@pytest.mark.parametrize(
    "source",
    [
        "def last(out):\n    return out\n" + LOOP,
        "def last():\n    out = 1\n    return out\n" + LOOP,
        "print(vars(options))\n" + LOOP,
        LOOP.replace("criterion(out, y)", "sum([part.sum() for part in out])"),
    ],
)
def test_another_variable_of_the_same_name_does_not_matter(source: str) -> None:
    """A function may have one of its own."""
    assert after(source, "out") is not None


@pytest.mark.parametrize(
    ("source", "last"),
    [
        (
            "for x in data:\n    z = f(x); out = model(z); loss = out.sum() + z.sum()\n    loss.backward()\n",
            "loss = out.sum() + z.sum()",
        ),
        ("for x in data:\n    z = f(x); loss = z.sum(); loss.backward()\n    step()\n", "loss.backward()"),
        (
            "for x in data:\n    z = f(x)\n    loss = model(x)\n    loss.backward()\n    @part(z)\n    def g(): pass\n",
            "@part(z)\ndef g():\n    pass",
        ),
    ],
)
def test_a_deletion_comes_after_all_statements_of_its_line(source: str, last: str) -> None:
    """One that is written on a line of its own can come nowhere else."""
    seen = next(number for number, line in enumerate(source.splitlines(), 1) if "backward" in line)
    spot = deletable_after(source, seen, "z")

    assert spot is not None
    changed = with_deletions(ast.parse(source), [(spot, "z")])
    body = changed.body[0].body  # type: ignore[attr-defined]  # of the loop
    number = next(number for number, statement in enumerate(body) if isinstance(statement, ast.Delete))
    assert ast.unparse(body[number - 1]) == last


def test_a_deletion_comes_after_the_whole_statement() -> None:
    """Of two statements that end on one line, it follows the one at its indentation."""
    tree = with_deletions(ast.parse(LOOP), [(Spot(5, 4), "out")])
    lines = ast.unparse(tree).splitlines()

    assert lines[lines.index("    del out") - 1] == "        loss = criterion(out, y)"
    assert lines[lines.index("    del out") + 1] == "    optimizer.zero_grad()"
