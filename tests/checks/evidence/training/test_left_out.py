"""Models that no optimizer holds, of which backward has reached the parameters."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import UsedParameter
from gradinspect.checks.evidence.training.left_out import left_in_layers, left_out
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.torch_api.tensors import known_version


class Pair(nn.Module):
    """An encoder and a decoder."""

    def __init__(self) -> None:
        """Make two layers."""
        super().__init__()
        self.encoder, self.decoder = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU())


def used(tensor: torch.Tensor, first_use: int | None, **fields: Any) -> UsedParameter:
    """Make what is known of a parameter that two backward calls have reached."""
    known = {"num_reached": 2, "version": known_version(tensor), "first_use": first_use, **fields}
    return UsedParameter(weakref.ref(tensor), "", **known)


def optimizer_of(*modules: nn.Module, num_steps: int = 2) -> SeenOptimizer:
    """Make an optimizer of some models that has stepped."""
    sgd = torch.optim.SGD([one for module in modules for one in module.parameters()], lr=0.1)
    return SeenOptimizer(
        weakref.ref(sgd), "SGD", frozenset(map(id, sgd.param_groups[0]["params"])), num_steps=num_steps
    )


def found(
    roots: Sequence[nn.Module], optimizers: Sequence[SeenOptimizer], uses: Mapping[Any, int | None],
    loaded: Sequence[nn.Module] = (), **fields: Any,
) -> list[tuple[str, int, bool]]:  # fmt: skip
    """Return what is left out: name, number of parameters, and whether the optimizer holds another model instead."""
    held = {key for one in optimizers for key in one.holds()}
    reached = [used(one, first, **fields) for module, first in uses.items() for one in module.parameters()]
    left = {id(one.tensor()): one for one in reached if id(one.tensor()) not in held}
    every = left_out(left, reached, roots, optimizers, set(map(id, loaded)))
    return [(one.name, len(one.parameters), one.is_instead) for one in every]


def of_pair(change: Callable[[Pair], object] = lambda _pair: None, **fields: Any) -> list[tuple[str, int, bool]]:
    """Leave out the decoder of a pair, which is read later than its encoder."""
    pair = Pair()
    change(pair)
    return found([pair], [optimizer_of(pair.encoder)], {pair.encoder: 3, pair.decoder: 7}, **fields)


DECODER = [("Sequential decoder", 2, False)]


def test_a_decoder_behind_an_encoder_that_learns() -> None:
    """It is named with its path; its parameters are counted."""
    assert of_pair() == DECODER


def freeze(pair: Pair) -> None:
    """Say that the decoder is not to learn."""
    pair.decoder.requires_grad_(False)


def evaluate(pair: Pair) -> None:
    """Say so of a part of it."""
    pair.decoder[1].eval()


@pytest.mark.parametrize("change", [freeze, evaluate])
def test_a_part_that_is_not_to_learn(change: Callable[[Pair], object]) -> None:
    """By its own flags."""
    assert of_pair(change) == []


@pytest.mark.parametrize(
    "fields",
    [{"num_reached": 1}, {"is_input": True}, {"is_exposed": True}, {"version": 9}],
)
def test_parameters_that_somebody_uses(fields: dict[str, Any]) -> None:
    """Whose gradient is asked for, or that change, or were reached once."""
    assert of_pair(**fields) == []


def cleared(trained: int | None, other: int, **fields: Any) -> bool:
    """Clear the gradients of a model that learns and of another one on some lines; return if the other one is found."""
    model, alone = nn.Linear(2, 2), nn.Linear(2, 2)
    held = [used(one, 3, cleared=trained is not None, clearing=trained) for one in model.parameters()]
    left = [used(one, 5, cleared=1, clearing=other, **fields) for one in alone.parameters()]
    by_id = {id(one.tensor()): one for one in left}
    return bool(list(left_out(by_id, [*held, *left], [model, alone], [optimizer_of(model)], set())))


def test_gradients_that_are_cleared() -> None:
    """By themselves, as those of what is only gone through; but not together with others, or if they are clipped."""
    assert not cleared(7, 8)
    assert not cleared(None, 8)
    assert cleared(8, 8)
    assert cleared(7, 8, clipped=1)


def test_what_lies_before_the_trained_part_may_be_kept_as_it_is() -> None:
    """Or beside it; and where it is read is not always known."""
    pair = Pair()
    orders: list[tuple[int | None, int | None]] = [(3, 7), (7, 3), (3, 3), (None, 7), (3, None)]
    results = [
        bool(found([pair], [optimizer_of(pair.encoder)], {pair.encoder: encoder, pair.decoder: decoder}))
        for encoder, decoder in orders
    ]

    assert results == [True, False, False, False, False]


def test_a_loaded_model_may_be_kept_as_it_is() -> None:
    """Also if only a part was loaded."""
    pair = Pair()
    optimizer, uses = optimizer_of(pair.encoder), {pair.encoder: 3, pair.decoder: 7}

    assert found([pair], [optimizer], uses, loaded=[nn.Linear(1, 1)]) == DECODER
    assert found([pair], [optimizer], uses, loaded=[pair.decoder]) == []
    assert found([pair], [optimizer], uses, loaded=[pair.encoder]) == []


def test_single_tensors_may_learn_alone() -> None:
    """As a prompt does: the optimizer holds no whole layer."""
    pair = Pair()
    prompt = nn.ParameterList([pair.encoder.weight])

    assert found([pair], [optimizer_of(prompt)], {pair.encoder: 3, pair.decoder: 7}) == []


def test_a_model_of_its_own() -> None:
    """Beside one that learns; it may be meant to be so if its gradients are cleared."""
    model, other = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))

    assert found([model, other], [optimizer_of(model)], {model: 3, other: 1}) == [("Sequential", 2, False)]
    assert found([model, other], [optimizer_of(model)], {model: 3, other: 1}, cleared=1) == []
    assert found([model], [optimizer_of(other)], {model: 3}) == [("Linear", 2, True)]
    assert found([model], [optimizer_of(other)], {model: 3}, cleared=1) == [("Linear", 2, True)]


def test_it_is_known_which_optimizer_should_have_it() -> None:
    """There is one that steps again and again, or none has anything that backward reaches."""
    model, other, third = (nn.Linear(2, 2) for _ in range(3))
    uses: dict[nn.Module, int | None] = {model: 3, other: 1}
    one, two, idle = optimizer_of(model), optimizer_of(third), optimizer_of(third, num_steps=1)

    assert found([model, other], [], uses) == []
    assert found([model, other], [idle], uses) == []
    assert found([model, other], [one, two], uses) == []  # none is seen to step after the call that reaches it
    assert found([model, other], [one, idle], uses) == [("Linear", 2, False)]
    assert found([model], [two, two], {model: 3}) == [("Linear", 2, True)]
    assert found([model, other], [one, optimizer_of(model)], uses) == [("Linear", 2, False)]
    assert found([Pair()], [one, optimizer_of(model)], uses) == []


def test_one_of_several_optimizers_steps_after_the_call_that_reaches_a_model() -> None:
    """It should have it, but it is not known of a part of a model that others train."""
    first, second, alone, pair = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2), Pair()

    def optimizers(trained: nn.Module, left: nn.Module, after: int) -> list[SeenOptimizer]:
        both = [optimizer_of(first), optimizer_of(trained)]
        held = [used(one, 3, stepped_after=4) for one in first.parameters()]
        held += [used(one, 3, stepped_after=after) for one in trained.parameters()]
        part = {id(one): used(one, 7, backward=5) for one in left.parameters()}
        roots = [first, pair if left is pair.decoder else trained, alone]
        every = left_out(part, [*held, *part.values()], roots, both, set())
        return [both[1]] if [one.optimizer for one in every] == [both[1]] else []

    assert optimizers(second, alone, 5)
    assert not optimizers(second, alone, 6)
    assert not optimizers(pair.encoder, pair.decoder, 5)


def test_an_optimizer_of_an_input_trains_no_model_beside_others() -> None:
    """Though another one trains a model before the attack."""
    model, victim, noise = nn.Linear(2, 2), nn.Linear(2, 2), nn.Parameter(torch.ones(2))
    both = [optimizer_of(model), optimizer_of(nn.ParameterList([noise]))]
    held = [*(used(one, 3, stepped_after=4) for one in model.parameters()), used(noise, 1, stepped_after=5)]
    left = {id(one): used(one, 7, backward=5) for one in victim.parameters()}

    assert list(left_out(left, [*held, *left.values()], [model, victim], both, set())) == []


def test_an_optimizer_of_an_input_trains_no_model() -> None:
    """As an attack does, or an explanation."""
    model, image = nn.Linear(2, 2), nn.ParameterList([nn.Parameter(torch.ones(2))])

    assert found([model], [optimizer_of(image)], {model: 3, image: 1}) == []


def test_parts_are_looked_for_in_depth() -> None:
    """The outermost ones of which the optimizer holds nothing."""
    inner = Pair()
    model = nn.ModuleDict({"body": inner, "act": nn.ReLU(), "head": nn.Linear(2, 2)})
    uses: dict[nn.Module, int | None] = {inner.encoder: 1, inner.decoder: 5, model["head"]: 7}

    assert sorted(found([model], [optimizer_of(inner.encoder)], uses)) == [
        ("Linear head", 2, False), ("Sequential body.decoder", 2, False),
    ]  # fmt: skip


@pytest.mark.parametrize(("home", "expected"), [("json", []), ("torch.nn.modules", DECODER), ("not.there", DECODER)])
def test_a_library_may_keep_a_part_of_its_models(
    monkeypatch: pytest.MonkeyPatch, home: str, expected: list[tuple[str, int, bool]]
) -> None:
    """Its weights may come with it; not so the containers of torch, and what the program defines."""
    monkeypatch.setattr(Pair, "__module__", home)

    assert of_pair() == expected


def test_a_model_that_was_reached_again_and_again() -> None:
    """Twice, or more often."""
    assert of_pair(num_reached=3) == DECODER


def test_several_parts_must_lie_behind_all_that_is_trained() -> None:
    """The first of their parameters counts, and the last of those."""
    pair = Pair()
    weight, bias = pair.decoder[0].parameters()
    for uses, is_found in (((5, 7), True), ((2, 7), False), ((3, 7), False)):
        left = {id(one): used(one, first) for one, first in zip((weight, bias), uses, strict=True)}
        trained = [used(one, first) for one, first in zip(pair.encoder.parameters(), (1, 3), strict=True)]
        every = left_out(left, [*left.values(), *trained], [pair], [optimizer_of(pair.encoder)], set())

        assert bool(list(every)) == is_found


def in_layers(*modules: str, change: Callable[[nn.Module], object] = lambda _model: None, **fields: Any) -> list[str]:
    """Name the parameters of layers that are left out, if an optimizer holds all other parameters of a model."""
    model = nn.ModuleDict({name: nn.LSTM(2, 2) if name == "rnn" else nn.Linear(2, 2) for name in modules})
    change(model)
    left = {id(one): used(one, 1, **fields) for name, one in model.named_parameters() if "bias_hh" in name}
    held = {id(one) for one in model.parameters()} - left.keys()
    return [name for name, _ in left_in_layers(model, left, held, list(left.values()))]


def test_a_parameter_of_a_layer_that_learns_otherwise() -> None:
    """If nobody uses its gradient, and the layer is in train mode."""
    assert in_layers("rnn", "out") == ["rnn.bias_hh_l0"]
    assert in_layers("rnn", "out", is_input=True) == []
    assert in_layers("rnn", "out", change=lambda model: model.eval()) == []
    assert in_layers("out") == []


def test_what_learns_may_be_the_smaller_part() -> None:
    """As where only biases are trained."""
    layer = nn.Linear(2, 2)
    left = {id(layer.weight): used(layer.weight, 1)}

    assert list(left_in_layers(layer, left, {id(layer.bias)}, list(left.values()))) == []


def test_a_layer_between_those_that_learn() -> None:
    """All convolutions between their norms, but not the stem before them, nor what is most of a model."""

    def found(*places: int) -> list[str]:
        layers = [nn.Linear(2, 2, bias=False), nn.LayerNorm(2), nn.Linear(2, 2, bias=False), nn.LayerNorm(2)]
        model = nn.Sequential(*layers, nn.Linear(2, 2))
        uses = {id(one): used(one, place) for place, one in enumerate(model.parameters())}
        left = {key: one for place in places for key, one in uses.items() if key == id(layers[place].weight)}
        return [name for name, _ in left_in_layers(model, left, uses.keys() - left.keys(), list(uses.values()))]

    assert found(0, 2) == ["0.weight", "2.weight"]
    assert found(0) == []
    assert found(2) == ["2.weight"]
