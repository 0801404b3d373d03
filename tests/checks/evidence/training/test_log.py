"""Facts about whole training loops, of small models in this process."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from training_program import Program, code_of

from gradinspect.checks.evidence.training import log, unheld
from gradinspect.checks.facts.training import (
    HookPile,
    IneffectiveFlag,
    NothingLoaded,
    OptimizerMisuse,
    SharedLayer,
    SpoilingHook,
    TwoInOneMemory,
    UnheldParameters,
)


@pytest.fixture
def program() -> Program:
    """Make one."""
    torch.manual_seed(0)
    return Program()


class Holder(nn.Module):
    """A layer that an optimizer holds, and something that it does not."""

    def __init__(self, make: Callable[["Holder"], object]) -> None:
        super().__init__()
        self.body = nn.Linear(2, 2)
        self.inner = nn.Identity()
        make(self)

    def others(self) -> list[torch.Tensor]:
        """List all tensors that are hidden somewhere."""
        spaces = [vars(self), vars(self.inner), dict(self.named_buffers())]
        found: list[Any] = [value for space in spaces for name, value in space.items() if name.startswith("my")]
        found += [value for name, value in self.named_buffers() if name.startswith("my")]
        return [tensor for value in found for tensor in tensors_in(value)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Use everything."""
        x = self.inner(self.body(x))
        for one in self.others():
            x = x + one.sum()
        return x.square()


def tensors_in(value: Any) -> list[torch.Tensor]:
    """List the tensors in a value."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, nn.Module):
        return list(value.parameters())
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for item in items for tensor in tensors_in(item)]


def learned(size: int = 2) -> torch.Tensor:
    """Make a tensor that requires grad."""
    return torch.ones(size, requires_grad=True)


def in_list(model: Holder) -> None:
    """Keep layers in a plain list."""
    model.my_layers = [nn.Linear(2, 2), nn.Linear(2, 2)]


def in_dict(model: Holder) -> None:
    """Keep a tensor in a dict of tuples, in a submodule."""
    model.inner.my_dict = {"a": (learned(),)}


def too_deep(model: Holder) -> None:
    """Keep it one level deeper than anyone looks."""
    model.my_dict = {"a": ([learned()],)}


def as_attribute(model: Holder) -> None:
    """Keep a tensor."""
    model.my_scale = learned()


def as_buffer(model: Holder) -> None:
    """Register it as a buffer."""
    model.register_buffer("my_buffer", learned())


def computed(model: Holder) -> None:
    """Compute it from a parameter."""
    model.my_value = nn.Parameter(torch.ones(2)) * 0.5


def frozen(model: Holder) -> None:
    """Keep one that does not learn."""
    model.my_scale = torch.ones(2)


def in_eval(model: Holder) -> None:
    """Keep a layer that is not trained."""
    model.my_layers = [nn.Linear(2, 2).eval()]


UNHELD: list[tuple[Callable[[Holder], object], list[tuple[str, str, int]]]] = [
    (in_list, [("container", "my_layers", 4)]),
    (in_dict, [("container", "inner.my_dict", 1)]),
    (too_deep, []),
    (as_attribute, [("attribute", "my_scale", 1)]),
    (as_buffer, [("buffer", "my_buffer", 1)]),
    (computed, [("computed", "my_value", 1)]),
    (frozen, []),
    (in_eval, []),
]


@pytest.mark.parametrize(("make", "found"), UNHELD, ids=lambda value: getattr(value, "__name__", ""))
def test_what_a_model_hides_from_its_optimizer(
    program: Program, make: Callable[[Holder], object], found: list[tuple[str, str, int]]
) -> None:
    """In containers of two levels, as an attribute or a buffer, or computed from a parameter."""
    with program:
        model = Holder(make)
        optimizer = torch.optim.SGD(model.body.parameters(), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            program.backward(model(torch.ones(3, 2)).sum())
            optimizer.step()
    facts = program.facts(UnheldParameters)

    assert [(one.kind, one.where, len(one.names)) for one in facts] == found
    assert {one.optimizer for one in facts} <= {"optimizer"}
    assert {code_of(one.created) for one in facts} <= {"optimizer = torch.optim.SGD(model.body.parameters(), lr=0.01)"}


def test_a_container_is_read_up_to_a_number_of_elements(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies behind is counted once, however often it is asked for."""
    monkeypatch.setattr(unheld, "MAX_ELEMENTS", 1)
    with program:
        model = Holder(in_list)
        optimizer = torch.optim.SGD(model.body.parameters(), lr=0.01)
        program.backward(model(torch.ones(3, 2)).sum())
        optimizer.step()
    for _ in range(2):
        assert [len(one.names) for one in program.facts(UnheldParameters)] == [2]

    expected = ["Not checked: 1 attribute of a module, after the first 1 elements."]
    assert list(program.recorder.errors.notes()) == expected


def test_tensors_that_are_no_part_of_what_learns(program: Program) -> None:
    """Those that were reached once, whose gradient was read, or that autograd.grad was called for."""
    with program:
        model = Holder(as_attribute)
        optimizer = torch.optim.SGD(model.body.parameters(), lr=0.01)
        program.backward(model(torch.ones(3, 2)).sum())
        optimizer.step()
    assert program.facts(UnheldParameters) == []

    for is_read in (False, True):
        program = Program()
        with program:
            model = Holder(as_attribute)
            scale = vars(model)["my_scale"]
            optimizer = torch.optim.SGD(model.body.parameters(), lr=0.01)
            for _ in range(2):
                program.backward(model(torch.ones(3, 2)).sum())
                if is_read:
                    assert scale.grad is not None
                else:
                    program.log._gradients.wanted([scale])
                optimizer.step()
        assert program.facts(UnheldParameters) == []


@pytest.mark.parametrize(("is_first", "kinds"), [(False, ["later", "replaced", "later"]), (True, [])])
def test_what_becomes_part_of_a_model_after_its_optimizer_was_made(
    program: Program, is_first: bool, kinds: list[str]
) -> None:
    """A new layer, one in the place of another, and a new parameter: each with its line."""
    with program:
        model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
        optimizer = torch.optim.SGD([next(model.parameters())], lr=0.01)
        if is_first:
            del optimizer
        model[1][0] = nn.Linear(2, 2)
        model.append(nn.Linear(2, 2))
        model[0].register_parameter("scale", nn.Parameter(torch.ones(2)))
        if is_first:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(2):
            program.backward((model(torch.ones(3, 2)) * model[0].scale).sum())
            optimizer.step()
    facts = sorted(program.facts(UnheldParameters), key=lambda one: one.where)

    assert [one.kind for one in facts if one.kind != "model"] == kinds
    if not is_first:
        assert [(one.where, one.names, code_of(one.made)) for one in facts] == [
            ("0.scale", ("0.scale",), 'model[0].register_parameter("scale", nn.Parameter(torch.ones(2)))'),
            ("1.0", ("1.0.weight", "1.0.bias"), "model[1][0] = nn.Linear(2, 2)"),
            ("2", ("2.weight", "2.bias"), "model.append(nn.Linear(2, 2))"),
        ]
        backward = "program.backward((model(torch.ones(3, 2)) * model[0].scale).sum())"
        assert {code_of(one.backward) for one in facts} == {backward}


def test_a_layer_that_replaces_one_that_an_optimizer_holds(program: Program) -> None:
    """The old parameters need not be explained otherwise; those that are made again each time are of another kind."""
    for is_again in (False, True):
        program = Program()
        with program:
            model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            old = [id(one) for one in model[1].parameters()]
            held = [*model.parameters()]
            for step in range(3):
                if step == 0 or is_again:
                    model[1] = nn.Linear(2, 2)
                program.backward(model(torch.ones(3, 2)).sum())
                optimizer.step()
        facts = program.facts(UnheldParameters)

        assert [one.kind for one in facts] == ["remade" if is_again else "replaced"]
        assert {one.names for one in facts} == {("1.weight", "1.bias")}
        assert program.log.replaced == set(old)
        assert held


def test_what_was_frozen_when_the_optimizer_was_made(program: Program) -> None:
    """And requires grad later, after a step."""
    with program:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[0].requires_grad_(False)
        optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.01)
        for step in range(3):
            program.backward(model(torch.ones(3, 2)).sum())
            optimizer.step()
            if step == 0:
                model[0].requires_grad_(True)
    (fact,) = program.facts(UnheldParameters)

    assert (fact.kind, fact.where, fact.names) == ("unfrozen", "Linear 0", ("0.weight", "0.bias"))
    assert code_of(fact.made) == "model[0].requires_grad_(True)"
    assert program.log.replaced == set()


def test_what_was_unfrozen_before_the_optimizer_was_made(program: Program) -> None:
    """It may have left that out on purpose, as one of a later phase that trains some layers more."""
    with program:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[0].requires_grad_(False)
        for phase in range(2):
            optimizer = torch.optim.SGD(model[1].parameters(), lr=0.01)
            for _ in range(3):
                program.backward(model(torch.ones(3, 2)).sum())
                optimizer.step()
            if phase == 0:
                model[0].requires_grad_(True)

    assert "unfrozen" not in {one.kind for one in program.facts(UnheldParameters)}


def test_an_optimizer_that_was_never_seen_holds_what_it_holds(program: Program) -> None:
    """It may have been made before, and step later."""
    before = Holder(in_list)
    other = torch.optim.SGD(tensors_in(vars(before)["my_layers"]), lr=0.01)
    with program:
        optimizer = torch.optim.SGD(before.body.parameters(), lr=0.01)
        for _ in range(2):
            program.backward(before(torch.ones(3, 2)).sum())
            optimizer.step()

    assert other.param_groups
    assert program.facts(UnheldParameters) == []


def test_an_optimizer_that_never_steps(program: Program) -> None:
    """Its gradients are dropped again and again; after fewer times if none steps at all."""
    for others, times, found in ((False, 1, []), (False, 2, ["never"]), (True, 4, []), (True, 5, ["never"])):
        program = Program()
        with program:
            model, second = nn.Linear(2, 2), nn.Linear(2, 2)
            forgotten = torch.optim.SGD(model.parameters(), lr=0.01)
            stepping = torch.optim.SGD(second.parameters(), lr=0.01)
            for _ in range(times):
                forgotten.zero_grad()
                stepping.zero_grad()
                program.backward(second(model(torch.ones(3, 2))).sum())
                if others:
                    stepping.step()
            forgotten.zero_grad()
        facts = [one for one in program.facts(OptimizerMisuse) if one.optimizer == "forgotten"]

        assert [one.kind for one in facts] == found
        assert {code_of(one.cleared) for one in facts} <= {"forgotten.zero_grad()"}
        created = "forgotten = torch.optim.SGD(model.parameters(), lr=0.01)"
        assert {code_of(one.created) for one in facts} <= {created}
        backward = "program.backward(second(model(torch.ones(3, 2))).sum())"
        assert {code_of(one.backward) for one in facts} <= {backward}


@pytest.mark.parametrize("name", ["SGD", "learner"])
def test_an_optimizer_that_no_line_names_has_the_name_that_holds_it(program: Program, name: str) -> None:
    """When the program ends; that of its class if it is in a list only."""
    model, kept = nn.Linear(2, 2), []
    with program:
        kept.append(torch.optim.SGD(model.parameters(), lr=0.01))
        learner = kept[0] if name == "learner" else None
        for _ in range(3):
            program.backward(model(torch.ones(3, 2)).sum())
            kept[0].zero_grad()
    facts = program.facts(OptimizerMisuse)

    assert [(one.kind, one.optimizer) for one in facts] == [("never", name)]
    assert (learner is None) == (name == "SGD")


@pytest.mark.filterwarnings("ignore:Detected call of:UserWarning")
def test_schedulers_and_optimizers_with_their_lines(program: Program) -> None:
    """One that steps too early, one that falls after each step, one that leaves nothing."""
    with program:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)
        scheduler.step()
        for _ in range(3):
            optimizer.zero_grad()
            program.backward(model(torch.ones(3, 2)).sum())
            optimizer.step()
            scheduler.step()
        other = torch.optim.SGD(model.parameters(), lr=0.0)
        for _ in range(2):
            other.zero_grad()
            program.backward(model(torch.ones(3, 2)).sum())
            other.step()
    facts = program.facts(OptimizerMisuse)

    assert [(one.kind, one.optimizer) for one in facts] == [
        ("scheduled", "optimizer"), ("falls", "optimizer"), ("zero", "other"),
    ]  # fmt: skip
    assert [code_of(one.step) for one in facts] == ["optimizer.step()", "optimizer.step()", "other.step()"]
    assert [one.scheduled and one.scheduled.code for one in facts] == ["scheduler.step()", "scheduler.step()", None]
    assert [round(one.ratio, 6) for one in facts[1:2]] == [0.1]
    first, second = (one.scheduled.line for one in facts[:2])
    assert second == first + 5


def test_layers_and_checkpoints(program: Program) -> None:
    """One layer in all places of a container, and a checkpoint with other names; each with its line."""
    with program:
        first = nn.Linear(2, 2)
        model = nn.Sequential(nn.Sequential(first, first, first))
        model.load_state_dict({"module.0.0.weight": torch.ones(2, 2)}, strict=False)
        for _ in range(2):
            program.backward(model(torch.ones(3, 2)).sum())
    (layer,) = program.facts(SharedLayer)
    (nothing,) = program.facts(NothingLoaded)

    assert (layer.container, layer.layer, layer.count) == ("0", "Linear", 3)
    assert code_of(layer.made) == "model = nn.Sequential(nn.Sequential(first, first, first))"
    assert code_of(layer.backward) == "program.backward(model(torch.ones(3, 2)).sum())"
    assert (nothing.model, nothing.num_names, nothing.given, nothing.is_nested) == (
        "Sequential", 1, "module.0.0.weight", False,
    )  # fmt: skip
    assert nothing.wanted == "0.0.weight"
    assert code_of(nothing.loaded).startswith("model.load_state_dict(")  # type: ignore[union-attr]


@pytest.mark.parametrize(("view", "is_same"), [(lambda x: x, True), (torch.t, False), (lambda x: x.view(4), False)])
def test_two_parameters_in_one_memory(
    program: Program, view: Callable[[torch.Tensor], torch.Tensor], is_same: bool
) -> None:
    """By their names, the one that shares it later last; with shape and strides."""
    with program:
        model = nn.Module()
        model.one = nn.Parameter(torch.ones(2, 2))
        model.two = nn.Parameter(view(model.one.detach()))
        model.three = nn.Parameter(torch.ones(2, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        program.backward(model.one.sum() + model.two.sum() + model.three.sum())
        optimizer.step()
    (fact,) = program.facts(TwoInOneMemory)

    assert (fact.first, fact.second, fact.is_same_shape) == ("one", "two", is_same)
    assert code_of(fact.made) == "model.two = nn.Parameter(view(model.one.detach()))"
    assert code_of(fact.step) == "optimizer.step()"


def test_hooks_that_spoil_gradients(program: Program) -> None:
    """Zeros of what is held, the opposite for a layer of torch; elsewhere it is meant."""
    with program:
        model, other = nn.Linear(2, 2), nn.Linear(2, 2)
        sign = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([*model.parameters(), sign], lr=0.01)
        model.weight.register_hook(torch.zeros_like)
        other.weight.register_hook(torch.zeros_like)
        model.bias.register_hook(torch.neg)
        sign.register_hook(torch.neg)
        for _ in range(2):
            program.backward((other(model(torch.ones(3, 2))) * sign).sum())
            optimizer.step()
    facts = program.facts(SpoilingHook)

    assert [(one.effect, one.names, code_of(one.registered)) for one in facts] == [
        ("zeroed", ("model.weight",), "model.weight.register_hook(torch.zeros_like)"),
        ("reversed", ("model.bias",), "model.bias.register_hook(torch.neg)"),
    ]
    assert {code_of(one.backward) for one in facts} == {
        "program.backward((other(model(torch.ones(3, 2))) * sign).sum())"
    }


def test_only_inputs_that_backward_is_called_for_get_gradients(program: Program) -> None:
    """Others are not reached."""
    with program:
        model = nn.Linear(2, 2)
        program.backward(model(torch.ones(3, 2)).sum(), inputs=(model.weight,))

    assert [one.name for one in program.log._gradients.parameters()] == ["weight"]


def test_hooks_and_flags_with_their_lines(program: Program) -> None:
    """One hook more in each iteration, and a misspelled flag."""

    def scale(gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 0.5

    with program:
        model = nn.Linear(2, 2)
        model.weight.require_gard = False
        for _ in range(3):
            model.bias.register_hook(scale)
            program.backward(model(torch.ones(3, 2)).sum())
    (pile,) = program.facts(HookPile)
    (flag,) = program.facts(IneffectiveFlag)
    backward = "program.backward(model(torch.ones(3, 2)).sum())"

    assert (pile.kind, pile.names, pile.count) == ("tensor", ("bias",), 3)
    assert (code_of(pile.registered), code_of(pile.backward)) == ("model.bias.register_hook(scale)", backward)
    assert (flag.attribute, flag.names, flag.modules, flag.target) == ("require_gard", ("weight",), (), "model.weight")
    assert (code_of(flag.set), code_of(flag.backward)) == ("model.weight.require_gard = False", backward)


def train(program: Program, model: nn.Module, optimizer: torch.optim.Optimizer, num_steps: int = 4) -> None:
    """Train a model, on the same lines for each of them."""
    for _ in range(num_steps):
        optimizer.zero_grad()
        program.backward(model(torch.ones(3, 2)).sum())
        optimizer.step()


def replaces(program: Program, *, is_told: bool) -> None:
    """Replace a layer between two trainings, and perhaps tell the optimizer; then the model is gone."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train(program, model, optimizer)
    model[1] = nn.Linear(2, 2)
    if is_told:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train(program, model, optimizer)


def warms_up(program: Program) -> None:
    """Add the parameters of a layer to an optimizer after some of its steps; then the model is gone."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train(program, model, optimizer)
    model.append(nn.Linear(2, 2))
    train(program, model, optimizer)
    optimizer.add_param_group({"params": list(model[2].parameters())})
    train(program, model, optimizer)


@pytest.mark.parametrize("is_told", [False, True])
def test_a_layer_that_was_replaced_in_a_model_that_is_gone(program: Program, is_told: bool) -> None:
    """It is found although the program's function has ended, unless the optimizer was told of it."""
    with program:
        replaces(program, is_told=is_told)

    expected = [] if is_told else [("replaced", "1", ("1.weight", "1.bias"))]
    assert [(one.kind, one.where, one.names) for one in program.facts(UnheldParameters)] == expected


def test_a_layer_that_learns_later(program: Program) -> None:
    """What an optimizer was given in the end is not said to be in none."""
    with program:
        warms_up(program)

    assert program.facts(UnheldParameters) == []


def leaves_out_the_end(program: Program) -> None:
    """Train a model whose optimizer does not hold its last layer; then both are gone."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model[:1].parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        program.backward(model(torch.ones(3, 2)).sum())
        optimizer.step()


def also_leaves_out_the_end(program: Program) -> None:
    """Do the same on lines of its own, with a model of the same names that may have the same ids."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.Adam(model[:1].parameters())
    for _ in range(3):
        optimizer.zero_grad()
        program.backward(model(torch.ones(3, 2)).sum())
        optimizer.step()


def test_models_that_are_trained_one_after_the_other(program: Program) -> None:
    """What is found of the first is not taken for what is found of the second, although all names are the same."""
    with program:
        leaves_out_the_end(program)
        also_leaves_out_the_end(program)
    facts = program.facts(UnheldParameters)

    assert [one.names for one in facts] == [("1.weight", "1.bias")] * 2
    assert [str(code_of(one.created)).split("(")[0] for one in facts] == [
        "optimizer = torch.optim.SGD", "optimizer = torch.optim.Adam",
    ]  # fmt: skip


def test_new_parameters_are_looked_for_a_few_times(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may make some again and again."""
    looks: list[int] = []

    def look(*_args: object) -> list[unheld.Unheld]:
        looks.append(1)
        return []

    monkeypatch.setattr(log, "unheld", look)
    with program:
        body = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(body.parameters(), lr=0.01)
        for _ in range(8 * log.MAX_LOOKS):
            train(program, nn.Sequential(body, nn.Linear(2, 2)), optimizer, 1)

    assert len(looks) <= log.MAX_LOOKS + 2
