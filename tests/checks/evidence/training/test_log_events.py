"""What the log of a training loop hears, and what it leaves out."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn
from training_program import Program, code_of

from gradinspect.checks.evidence.training import parameters
from gradinspect.checks.evidence.training.flags import FlagLine, FoundFlag
from gradinspect.checks.evidence.values.torch_calls import GradientTouch
from gradinspect.checks.facts.training import (
    EvalTraining,
    GradientMisuse,
    IneffectiveFlag,
    OptimizerMisuse,
    SpoilingHook,
    UnheldParameters,
)

X = torch.ones(3, 2)


def sgd(*models: nn.Module) -> torch.optim.SGD:
    """Make an optimizer of some models."""
    return torch.optim.SGD([one for model in models for one in model.parameters()], lr=0.01)


def misuses(program: Program) -> list[tuple[str, str]]:
    """List what went wrong with gradients, and for which optimizer."""
    return [(one.kind, one.optimizer) for one in program.facts(GradientMisuse)]


@pytest.mark.parametrize(
    ("scale", "order", "found"),
    [
        (4.0, "cus", [("scaled", "")]),
        (4.0, "ucs", []),
        (1.0, "cus", []),
        (4.0, "s", []),  # the scaler divides them itself
        (4.0, "o", [("unscaled", "optimizer")]),
        (1.0, "o", []),
        (4.0, "ro", []),  # the program reads them, and may divide them
    ],
)
def test_gradients_that_a_scaler_has_multiplied(scale: float, order: str, found: list[tuple[str, str]]) -> None:
    """Clipped or applied before they were divided, unless the scale is 1."""
    program = Program()
    with program:
        model = nn.Linear(2, 1)
        optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=scale)
        program.backward(scaler.scale(model(X).sum()))
        for event in order:
            match event:
                case "c":
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                case "u":
                    scaler.unscale_(optimizer)
                case "s":
                    scaler.step(optimizer)
                case "o":
                    optimizer.step()
                case "r":
                    assert model.weight.grad is not None
                    assert model.bias.grad is not None

    assert misuses(program) == found


def test_a_gradient_that_the_program_sets_is_not_cleared() -> None:
    """Unless it sets it to None or to zeros."""
    for gradient, num_cleared in ((torch.ones(2), 0), (torch.zeros(2), 1), (None, 1)):
        program = Program()
        with program:
            weight = nn.Parameter(torch.ones(2))
            program.backward(weight.sum())
            weight.grad = gradient
        (known,) = program.log._gradients.parameters()

        assert (known.cleared > 0) == (num_cleared > 0)
    program = Program()
    with program:
        weight = nn.Parameter(torch.ones(2))
        program.backward(weight.sum())
        assert weight.grad is not None
        weight.grad.zero_()
    assert program.log._gradients.parameters()[0].cleared > 0


@pytest.mark.parametrize(("kind", "found"), [("grad", [("added", "optimizer")]), ("backward", [])])
def test_only_a_backward_that_is_not_observed_may_add_to_gradients(kind: Any, found: list[tuple[str, str]]) -> None:
    """autograd.grad() leaves them as they are."""
    program = Program()
    with program:
        model = nn.Linear(2, 1)
        optimizer = sgd(model)
        for _ in range(2):
            program.backward(model(X).sum())
            optimizer.step()
            program.log.unobserved(kind)

    assert misuses(program) == found


def test_steps_that_are_no_part_of_the_loop_are_not_seen() -> None:
    """Those that hooks make inside backward, and those after the end of what is recorded."""
    program = Program()
    with program:
        model = nn.Linear(2, 1)
        inside, after = sgd(model), sgd(model)
        model.bias.register_post_accumulate_grad_hook(lambda _weight: inside.step())
        model.weight.register_post_accumulate_grad_hook(lambda _weight: inside.step())
        for _ in range(2):
            program.backward(model(X).sum())
        seen = program.log._optimizers.of(inside).num_steps
        program.recorder.pause()
        after.step()

    assert (seen, program.log._optimizers.of(after).num_steps) == (0, 0)
    assert misuses(program) == []


def test_a_model_that_is_gone_in_the_end() -> None:
    """Is looked at when the optimizer steps the second time."""
    for steps, found in ((1, []), (2, ["attribute"]), (4, ["attribute"])):
        program = Program()
        with program:
            model: Any = nn.Linear(2, 2)
            model.my_scale = torch.ones(2, requires_grad=True)
            optimizer = sgd(model)
            for _ in range(steps):
                program.backward((model(X) * model.my_scale).sum())
                optimizer.step()
            program.recorder.modules.clear()
            program.recorder.module_windows.clear()
            program.recorder.own.outermost.clear()

        assert [one.kind for one in program.facts(UnheldParameters)] == found


def test_a_list_that_hides_parameters_is_told_once() -> None:
    """Whatever lines made what is in it, in a nested list as well."""
    program = Program()
    with program:
        model: Any = nn.Linear(2, 2)
        first = [nn.Linear(2, 2)]
        second = [nn.Linear(2, 2), nn.Linear(2, 2)]
        model.my_layers = [first, *second]
        optimizer = sgd(model)
        for _ in range(2):
            x = model(X)
            for layer in (*first, *second):
                x = layer(x)
            program.backward(x.sum())
            optimizer.step()
    facts = program.facts(UnheldParameters)

    assert [(one.kind, one.where, code_of(one.made), len(one.names)) for one in facts] == [
        ("container", "my_layers", "first = [nn.Linear(2, 2)]", 6),
    ]


@pytest.mark.parametrize(("num_steps", "found"), [(1, []), (2, [("model", "Linear")]), (14, [("model", "Linear")])])
def test_a_model_behind_one_that_learns_is_left_out(num_steps: int, found: list[tuple[str, str]]) -> None:
    """The order in which parameters are read is known from the first calls."""
    program = Program()
    with program:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        optimizer = sgd(model[0])
        for _ in range(num_steps):
            optimizer.zero_grad()
            program.backward(model(X).sum())
            optimizer.step()
    facts = program.facts(UnheldParameters)

    assert [(one.kind, one.where.partition(" ")[0]) for one in facts] == found
    assert {one.names for one in facts} <= {("1.weight", "1.bias")}


def test_a_model_is_trained_in_eval_mode() -> None:
    """With the line that switched it, that of the step and that of backward."""
    program = Program()
    with program:
        model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
        optimizer = sgd(model)
        for step in range(3):
            if step == 1:
                model.eval()
            optimizer.zero_grad()
            program.backward(model(X).sum())
            optimizer.step()
    (fact,) = program.facts(EvalTraining)

    assert (fact.model, fact.dropouts, fact.batch_norms) == ("Sequential", ("1",), ())
    assert [code_of(frame) for frame in (fact.switched, fact.backward, fact.step)] == [
        "model.eval()", "program.backward(model(X).sum())", "optimizer.step()",
    ]  # fmt: skip


def test_a_hook_of_a_result_that_loses_all_gradients() -> None:
    """Has the line that registers it; a sign may be meant."""
    for hook, effects in ((torch.zeros_like, ["zeroed"]), (torch.neg, []), (torch.clone, [])):
        program = Program()
        with program:
            model = nn.Linear(2, 2)
            optimizer = sgd(model)
            for _ in range(2):
                hidden = model(X)
                hidden.register_hook(hook)
                program.backward(hidden.exp().sum())
                optimizer.step()
        facts = program.facts(SpoilingHook)

        assert [(one.effect, one.names, code_of(one.registered)) for one in facts] == [
            (effect, (), "hidden.register_hook(hook)") for effect in effects
        ]


def test_an_optimizer_that_is_made_in_each_iteration() -> None:
    """Loses its state each time; a scheduler that ran before it is named with its own line."""
    program = Program()
    with program:
        model = nn.Linear(2, 1)
        for _ in range(3):
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            optimizer.zero_grad()
            program.backward(model(X).sum())
            optimizer.step()
    facts = program.facts(OptimizerMisuse)

    assert {(one.kind, one.optimizer, code_of(one.created), code_of(one.step)) for one in facts} == {
        ("anew", "optimizer", "optimizer = torch.optim.Adam(model.parameters(), lr=0.1)", "optimizer.step()")
    }


def test_objects_that_are_unlike_those_of_torch_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of ours never reach the program: not from its steps, its modules or its end."""

    def fail(*_arguments: object, **_options: object) -> Any:
        message = "an unusual object"
        raise RuntimeError(message)

    program = Program()
    with program:
        for owner in (program.log._gradients, program.log._registrations):
            for name in ("before_step", "after_step", "module", "parameter", "conclude"):
                if hasattr(owner, name):
                    monkeypatch.setattr(owner, name, fail)
        model = nn.Sequential(nn.Linear(2, 1))
        optimizer = sgd(model)
        program.backward(model(X).sum())
        optimizer.step()

    assert program.log.facts() == []


def kinds_of(touch: GradientTouch, args: Sequence[Any]) -> tuple[int, bool]:
    """Tell a log of one touch after a step: how many tensors began to require grad, and whether one is exposed."""
    program = Program()
    weight = nn.Parameter(torch.ones(2))
    with program:
        optimizer = torch.optim.SGD([weight], lr=0.1)
        program.backward(weight.sum())
        optimizer.step()
        program.log.touched(touch, (weight, *args), [weight], sys._getframe())
    (known,) = program.log._gradients.parameters()
    return len(program.log._registrations._unfrozen), known.is_exposed


def test_what_is_done_to_a_leaf_itself() -> None:
    """It may be frozen or thawed, or its memory be written."""
    assert kinds_of(GradientTouch.FREEZES, ()) == (1, False)
    assert kinds_of(GradientTouch.READS_DATA, ()) == (0, True)
    assert kinds_of(GradientTouch.SETS_DATA, (torch.ones(2),)) == (0, True)
    assert kinds_of(GradientTouch.SETS, (torch.ones(2),)) == (0, False)


def test_each_model_is_looked_at() -> None:
    """Also after one that no optimizer trains."""
    program = Program()
    with program:
        fixed, model = nn.Linear(2, 2), nn.Linear(2, 2)
        fixed.requires_grad_(False)
        holder: Any = model
        holder.my_scale = torch.ones(2, requires_grad=True)
        optimizer = sgd(model)
        for _ in range(2):
            program.backward((model(fixed(X)) * holder.my_scale).sum())
            optimizer.step()

    assert [(one.kind, one.where) for one in program.facts(UnheldParameters)] == [("attribute", "my_scale")]


def test_a_layer_that_stands_twice_hides_no_other() -> None:
    """One that was replaced before it is found."""
    program = Program()
    with program:
        shared = nn.Linear(2, 2)
        model = nn.Sequential(nn.Linear(2, 2), shared, shared)
        optimizer = sgd(model)
        model[0] = nn.Linear(2, 2)
        for _ in range(2):
            program.backward(model(X).sum())
            optimizer.step()

    assert [(one.kind, one.where) for one in program.facts(UnheldParameters)] == [("replaced", "0")]


@pytest.mark.filterwarnings("ignore:Detected call of:UserWarning")
def test_the_last_step_of_a_scheduler_is_named() -> None:
    """Beside an optimizer that never steps."""
    program = Program()
    with program:
        model = nn.Linear(2, 1)
        optimizer = sgd(model)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        for _ in range(3):
            optimizer.zero_grad()
            program.backward(model(X).sum())
            if len(program.log._optimizers.seen[0].scheduled) < 2:
                scheduler.step()
        optimizer.zero_grad()
        scheduler.step()  # the last
    (fact,) = program.facts(OptimizerMisuse)

    assert (fact.kind, fact.optimizer, code_of(fact.scheduled)) == (
        "never",
        "optimizer",
        "scheduler.step()  # the last",
    )


def test_a_copied_optimizer_was_made_nowhere() -> None:
    """What became part of a model after it is not known; what is hidden is."""
    program = Program()
    with program:
        model: Any = nn.Sequential(nn.Linear(2, 2))
        model.my_scale = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            optimizer = sgd(model)
        program.log._optimizers.seen.clear()
        model.append(nn.Linear(2, 2))
        for _ in range(2):
            program.backward((model(X) * model.my_scale).sum())
            optimizer.step()
    facts = program.facts(UnheldParameters)

    assert [(one.kind, one.where) for one in facts if one.kind != "model"] == [("attribute", "my_scale")]


def test_what_the_next_step_may_show_is_waited_for() -> None:
    """Gradients of another loss that were applied once, a rate that is zero, a hook that was added."""
    program = Program()
    with program:
        actor, critic = nn.Linear(2, 2), nn.Linear(2, 1)
        first, second = sgd(actor), sgd(critic)
        assert program.log.waits() is None
        program.backward(critic(actor(X)).sum())
        first.step()
        first.zero_grad()
        program.backward(critic(X).sum())
        second.step()
        said = program.log.waits()

    assert said == "an optimizer had applied the gradients of another loss once"
    assert misuses(program) == []
    for rate, text in ((0.0, "the learning rate of optimizer was still 0"), (0.1, None)):
        program = Program()
        with program:
            model = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=rate)
            for _ in range(2):
                optimizer.zero_grad()
                program.backward(model(X).sum())
                optimizer.step()
            assert program.log.waits() == text


def test_flags_of_one_line_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the first two backward calls, if the program's own line sets them."""
    lines = {"requires_gard": None, "require_grad": 3, "requires_grad": 3}

    def line_of(flag: FoundFlag) -> FlagLine | None:
        line = lines[flag.attribute]
        return None if line is None else FlagLine("/nowhere/program.py", line, "part")

    monkeypatch.setattr(parameters, "line_of_flag", line_of)
    program = Program()
    with program:
        model: Any = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
        vars(model[0].weight)["require_grad"] = False  # not in a line that other tests could find
        vars(model[1].weight)["requires_gard"] = False
        for call in range(3):
            program.backward(model(X).sum())
            vars(model[call])["requires_grad"] = False
    (fact,) = program.facts(IneffectiveFlag)

    assert (fact.attribute, fact.target) == ("require_grad", "part")
    assert (fact.names, fact.modules) == (("0.weight", "0.bias"), ("0",))
    assert code_of(fact.backward) == "program.backward(model(X).sum())"
