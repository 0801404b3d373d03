"""The rules about training loops, on facts made by hand."""

from typing import get_args

import pytest
from msgspec.structs import replace

from gradinspect.checks.facts.training import (
    EvalTraining,
    GradientMisuse,
    GradientMisuseKind,
    OptimizerMisuse,
    UnheldKind,
    UnheldParameters,
)
from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def line(number: int) -> Frame:
    """Make a line of the program."""
    return Frame(file="train.py", line=number, code="...")


def judged(fact: object) -> Finding:
    """Return the only finding."""
    (finding,) = findings_on(fact)
    return finding


def lines_of(finding: Finding) -> list[tuple[str, int]]:
    """List the roles and lines."""
    return [(place.role, place.line) for place in finding.places]


def misuse(kind: GradientMisuseKind) -> GradientMisuse:
    """Make the misuse of the gradients of one optimizer."""
    return GradientMisuse(
        kind=kind, optimizer="opt", names=("weight",), backward=line(1), step=line(2), cleared=line(3), clipped=line(4),
        unscaled=line(5), other=line(6) if kind == "other" else None,
    )  # fmt: skip


KINDS: tuple[GradientMisuseKind, ...] = get_args(GradientMisuseKind)


def test_each_misuse_of_gradients_has_its_rule_and_lines() -> None:
    """In the order in which they run."""
    found = {kind: judged(misuse(kind)) for kind in KINDS}

    assert [(kind, one.code, lines_of(one)) for kind, one in found.items()] == [
        ("added", "GI362", [("step", 2), ("cleared", 3), ("backward", 1)]),  # a part of them
        ("closure", "GI362", [("backward", 1), ("step", 2)]),
        ("cleared", "GI363", [("backward", 1), ("cleared", 3), ("step", 2)]),
        ("partial", "GI363", [("cleared", 3), ("backward", 1), ("step", 2)]),
        ("early", "GI364", [("clipped", 4), ("backward", 1), ("step", 2)]),
        ("late", "GI364", [("backward", 1), ("step", 2), ("clipped", 4)]),
        ("scaled", "GI364", [("backward", 1), ("clipped", 4), ("unscaled", 5)]),
        ("unscaled", "GI369", [("backward", 1), ("step", 2)]),
        ("other", "GI370", [("other", 6), ("backward", 1), ("step", 2)]),
    ]


def test_gradients_of_another_loss_are_cleared_right_before_backward() -> None:
    """Cleared after the step, they would be there again."""
    found = judged(GradientMisuse(kind="added", optimizer="opt", names=(), backward=line(1), step=line(2),
                                  other=line(6)))  # fmt: skip

    assert (
        found.remedy
        == "Call opt.zero_grad() right before train.py:1: backward at train.py:6 leaves gradients there too."
    )


def test_a_step_before_backward_is_moved_behind_it() -> None:
    """Where gradients are cleared is right then."""
    found = judged(GradientMisuse(kind="cleared", optimizer="opt", names=(), backward=line(9), step=line(2),
                                  cleared=line(1)))  # fmt: skip

    assert found.remedy == "Move the step at train.py:2 behind train.py:9."


def test_each_misuse_of_an_optimizer_has_its_rule() -> None:
    """With the line that made the optimizer, or stepped the scheduler."""
    found = [
        judged(OptimizerMisuse(kind=kind, optimizer="opt", created=line(1), scheduled=line(2), step=line(3), ratio=0.1))
        for kind in ("never", "anew", "scheduled", "zero", "falls")
    ]

    assert [one.code for one in found] == ["GI365", "GI366", "GI367", "GI368", "GI381"]
    assert [lines_of(one)[0] for one in found] == [
        ("optimizer", 1), ("optimizer", 1), ("scheduler", 2), ("optimizer", 1), ("step", 3),
    ]  # fmt: skip


def test_the_reason_why_a_parameter_is_not_held() -> None:
    """And a remedy that fits it."""

    def unheld(kind: UnheldKind) -> Finding:
        return judged(
            UnheldParameters(
                kind=kind, where="head", names=("head.weight",), optimizer="opt", created=line(1), made=line(2)
            )
        )

    assert lines_of(unheld("replaced")) == [("optimizer", 1), ("replaced", 2)]
    assert unheld("replaced").text.endswith("head was replaced at train.py:2, after opt was made.")
    assert unheld("later").remedy == "Make opt after train.py:2, or pass the new parameters to its add_param_group()."
    assert unheld("attribute").remedy == "Make head an nn.Parameter."
    assert lines_of(unheld("remade")) == [("optimizer", 1), ("replaced", 2)]
    assert unheld("remade").remedy == "Make head once, in __init__, instead of at train.py:2."
    assert unheld("computed").remedy.startswith("Compute the value first, and make an nn.Parameter of the result")
    assert unheld("model").remedy.startswith("Pass them as well at train.py:1.")
    assert unheld("instead").remedy == "Make opt at train.py:1 of the parameters of the model that is trained."
    assert "nn.ModuleList" in unheld("container").remedy


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        ("Net.forward", "Assign no new nn.Parameter at train.py:2: compute the value in a local variable"),
        ("reset", "Assign no new nn.Parameter at train.py:2: write the values into the one that opt holds"),
    ],
)
def test_a_parameter_that_is_assigned_in_each_step(function: str, remedy: str) -> None:
    """The parameter itself, not the module that has it: computed in forward, or set once in a while."""
    made = Frame(file="train.py", line=2, code="...", function=function)
    found = judged(UnheldParameters(kind="remade", where="w", names=("w", "v"), optimizer="opt", made=made))

    assert found.text == (
        "Backward reaches w and v, but no optimizer holds them: train.py:2 assigns new ones each time it runs, and opt "
        "keeps the old ones."
    )
    assert found.remedy.startswith(remedy)


def test_an_optimizer_that_only_its_scheduler_steps() -> None:
    """Both lines are in the advice."""
    fact = OptimizerMisuse(kind="never", optimizer="opt", backward=line(1), cleared=line(2), scheduled=line(3))
    found = judged(fact)

    assert lines_of(found) == [("backward", 1), ("scheduler", 3), ("cleared", 2)]
    assert found.remedy == "Call opt.step() after train.py:1, and before the scheduler's step() at train.py:3."


def test_the_layers_that_eval_mode_changes_are_named() -> None:
    """Each with what it does."""
    fact = EvalTraining(model="Net", dropouts=("drop",), batch_norms=("bn1", "bn2"), switched=line(4), step=line(9))
    finding = judged(fact)

    assert finding.text == (
        "Net is in eval mode since train.py:4 while an optimizer trains it: drop drops nothing, and bn1 and bn2 use "
        "running statistics and do not update them."
    )
    assert lines_of(finding) == [("eval", 4), ("step", 9)]


@pytest.mark.parametrize(
    ("step", "backward", "moves"),
    [
        (line(1), line(2), True),
        (line(2), line(2), False),
        (line(3), line(2), False),
        (None, line(2), False),
        (line(1), None, False),
        (replace(line(1), function="a"), line(2), False),
        (replace(line(1), function="z"), line(2), False),
        (replace(line(1), file="a.py"), line(2), False),
    ],
)
def test_a_step_that_stands_before_backward_is_moved(
    step: Frame | None, backward: Frame | None, *, moves: bool
) -> None:
    """In one function; otherwise it is the clearing that moves."""
    fact = GradientMisuse(kind="cleared", optimizer="opt", names=("w",), backward=backward, step=step, cleared=None)
    remedy = judged(fact).remedy

    assert remedy.startswith("Move the step at" if moves else "Clear the gradients after")
    assert ", something clears them, and opt steps without any." in judged(fact).text
