"""Saved tensors that were modified afterwards, in words, on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.rules.graphs.stale_values import MASKED_ASSIGNMENT, StaleValue, Write, stale_findings
from gradinspect.graph import Frame, Graph

SAVED = Frame(file="train.py", line=4, code="y = x.exp()")
BACKWARD = Frame(file="train.py", line=9, code="loss_g.backward()")


def line(code: str, number: int = 6) -> Frame:
    """A line of the program."""
    return Frame(file="train.py", line=number, code=code)


def recorded() -> Graph:
    """Two nodes of one line."""
    return graph(
        op("ExpBackward0", 1, sequence_nr=1, frame=0), op("MulBackward0", 2, sequence_nr=0, frame=0), leaf("x", 2),
        frames=(SAVED,),
    )  # fmt: skip


def value(*writes: Write, node: int = 0, label: str = "y", expected: int | None = 0) -> StaleValue:
    """A value that was saved at version 0 and is at version 1 now."""
    return StaleValue(node=node, name="_saved_result", label=label, writes=writes, version=1, expected_version=expected)


@pytest.mark.parametrize(
    ("write", "remedy"),
    [
        (
            Write(op="add_", frame=line("y += 1"), is_tracked=True),
            "Write 'y = y + 1' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op="add_", frame=line("y += x * 2"), is_tracked=True),
            "Write 'y = y + x * 2' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op="copy_", frame=line("h[t + 1] = cell(h[t])"), is_tracked=True),
            "Collect the parts in a list and torch.stack() them instead of assigning to h at train.py:6.",
        ),
        (
            Write(op="relu_", frame=line("y.relu_()"), is_tracked=True, has_form=True),
            "Write 'y = y.relu()' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op="zero_", frame=line("y[0].zero_()"), is_tracked=True),
            "Write to a copy: add 'y = y.clone()' before train.py:6.",
        ),
        (
            Write(op=MASKED_ASSIGNMENT, frame=line("y[x > 0] = 0.5"), is_tracked=True),
            "Write 'y = y.masked_fill(x > 0, 0.5)' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op=MASKED_ASSIGNMENT, frame=line("y[m] = x[m]"), is_tracked=True),
            "Write 'y = torch.where(m, x, y)' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op="mul", frame=line("torch.mul(x, 2, out=y)")),
            "Remove out= at train.py:6 and assign the result, which is a new tensor.",
        ),
        (
            Write(op="relu_", frame=line("y = model(y)"), is_tracked=True, has_form=True),
            "Remove inplace=True from the function or module that runs relu_ at train.py:6.",
        ),
        (
            Write(op="div_", frame=line("w.div_(2)")),
            "Move train.py:6 after train.py:9, unless something in between needs the new values.",
        ),
        (
            Write(op="mul_", frame=None),
            "Look for code that writes to it outside torch, such as NumPy or another thread, and give it a copy.",
        ),
    ],
)
def test_each_way_of_writing_has_its_remedy(write: Write, remedy: str) -> None:
    """What to write instead."""
    (found,) = stale_findings(recorded(), [value(write)], BACKWARD)

    assert found.code == "GI101"
    assert found.remedy == remedy


def test_an_optimizer_is_named() -> None:
    """With where to call it."""
    step = Write(op="addcdiv_", frame=line("opt_d.step()"), optimizer="opt_d")
    (found,) = stale_findings(recorded(), [value(step)], BACKWARD)

    assert found.code == "GI102"
    assert "opt_d.step() modified it afterwards (now at version 1), so this backward will fail." in found.text
    assert found.remedy.startswith("Compute train.py:4 again after opt_d.step() at train.py:6. Or call the step after ")


def test_an_optimizer_and_something_else_are_no_optimizer() -> None:
    """Then to move the step would not help."""
    writes = (Write(op="add_", frame=line("o.step()"), optimizer="o"), Write(op="mul_", frame=line("y.mul_(2)", 7)))
    (found,) = stale_findings(recorded(), [value(*writes)], BACKWARD)

    assert found.code == "GI101"
    assert [(place.role, place.line) for place in found.places] == [
        ("saved", 4), ("written", 6), ("written", 7), ("backward", 9),
    ]  # fmt: skip


def test_a_version_that_stayed_is_silent() -> None:
    """Torch will not notice, and it says so."""
    (found,) = stale_findings(recorded(), [value(Write(op="mul_", frame=line("y.data.mul_(2)")), expected=None)], None)

    assert found.code == "GI103"
    assert found.text.endswith("gradients will be wrong and torch raises no error.")


def test_what_the_same_lines_did_is_one_finding() -> None:
    """Two tensors of one saving and one writing line; another writing line is another finding."""
    write, other = Write(op="add_", frame=line("y += 1")), Write(op="add_", frame=line("z += 1", 7))
    values = [value(write), value(write, node=1, label="z"), value(other, node=1, label="w")]
    found = list(stale_findings(recorded(), values, BACKWARD))

    assert [len(finding.subjects) for finding in found] == [2, 1]
    assert "saved z and y at version 0" in found[0].text
