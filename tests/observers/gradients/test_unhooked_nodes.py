"""Nodes without a hook: all that is known of them is what a hook on each would have measured."""

import gc

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import gradients_of
from gradinspect.graph import GradientStats, Graph
from gradinspect.observers.gradients import gradient_meter
from gradinspect.observers.gradients.gradient_meter import GradientMeter, Stats
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import outputs_in


@pytest.fixture(autouse=True)
def _no_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have made hooks."""
    monkeypatch.setattr(gradient_meter, "hooks_were_made", lambda: False)


UNARY = ("tanh", "relu", "double", "plus", "transposed", "nan", "square", "halves", "clone", "less", "cast")
BINARY = ("add", "mul", "where", "stack", "sub", "rsub", "scaled")


def unary(name: str, x: torch.Tensor) -> torch.Tensor:
    """Make one more tensor of shape [2, 2] from one."""
    match name:
        case "double":
            return x * 2
        case "plus":
            return x + torch.ones(2, 1)
        case "less":
            return 1.0 - x
        case "cast":
            return (x + torch.ones(2, 2, dtype=torch.float64)).float()
        case "transposed":
            return x.t()
        case "nan":
            return (x - x.detach()).sqrt()
        case "halves":
            return torch.cat(x.split(1))
        case _:
            return getattr(x, name)()


def binary(name: str, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Make one more tensor of shape [2, 2] from two."""
    if name == "where":
        return torch.where(left.detach() > 0, left, right)
    if name in {"rsub", "scaled"}:
        return torch.rsub(left, right) if name == "rsub" else torch.add(left, right, alpha=0.5)
    return torch.stack([left, right]).sum(0) if name == "stack" else getattr(left, name)(right)


Step = tuple[str, int, int]
programs = st.lists(st.tuples(st.sampled_from(UNARY + BINARY), st.integers(1, 4), st.integers(1, 4)), max_size=14)


def loss_of(steps: list[Step]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Run a program: each step reads tensors so many places back. Return also its leaves."""
    leaves = [torch.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True), torch.ones(2, 2, requires_grad=True)]
    made = [leaf * 1.0 for leaf in leaves]
    for name, left, right in steps:
        one, other = made[-min(left, len(made))], made[-min(right, len(made))]
        made.append(unary(name, one) if name in UNARY else binary(name, one, other))
    return made[-1].sum(), leaves


def measured(steps: list[Step], *, times: bool, only_first: bool = False) -> tuple[Graph, int]:
    """Run a program backward; return what was measured, and how many nodes had a hook."""
    loss, leaves = loss_of(steps)
    outputs = outputs_in(loss)
    meter = GradientMeter(record_graph(outputs, Moment(source="test")), outputs, times=times)
    num_hooked = sum(not one.is_passed for one in meter._meters)
    loss.backward(inputs=leaves[:1] if only_first else None)
    return meter.finish(), num_hooked


def rounded(stats: Stats) -> list[object]:
    """Write what is known of some gradients, but for the last digits, in which the order of a sum shows."""
    return [
        one
        if not isinstance(one, GradientStats)
        else (f"{one.norm:.4g} {one.max_abs:.4g} {one.mean:.3g}", replace(one, norm=0, max_abs=0, mean=0))
        for one in stats
    ]


def facts_of(graph: Graph) -> list[tuple[int, list[object], list[object]]]:
    """List what is known of each node that ran."""
    return [(ran.node, rounded(ran.incoming), rounded(ran.outgoing)) for ran in gradients_of(graph).nodes]


@given(programs)
def test_they_are_measured_as_if_they_had_one(steps: list[Step]) -> None:
    """Every statistic of every node is the same, and the same nodes ran, whatever leads where."""
    every, _ = measured(steps, times=True)
    some, _ = measured(steps, times=False)

    assert facts_of(some) == facts_of(every)


@given(programs)
def test_a_part_that_was_not_asked_for_has_not_run(steps: list[Step]) -> None:
    """With backward(inputs=...) the engine leaves nodes out, with a hook or without."""
    every, _ = measured(steps, times=True, only_first=True)
    some, _ = measured(steps, times=False, only_first=True)

    assert facts_of(some) == facts_of(every)


def test_every_node_has_one_in_a_program_with_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook on a tensor may change what arrives, and a node does not show it."""
    monkeypatch.setattr(gradient_meter, "hooks_were_made", lambda: True)
    graph, num_hooked = measured([("tanh", 1, 1)] * 10, times=False)

    assert num_hooked == len(graph.nodes)


def test_every_second_node_of_a_chain_has_none() -> None:
    """Hooks cost more than small nodes do."""
    graph, num_hooked = measured([("tanh", 1, 1)] * 100, times=False)

    assert len(graph.nodes) == 103
    assert num_hooked == 53


def test_a_sum_that_hands_on_what_it_got_has_none() -> None:
    """One that scales, reduces or casts what reached it has."""
    graph, num_hooked = measured([("double", 1, 1), ("plus", 1, 1)] * 50, times=False)
    _, num_scaling = measured([("double", 1, 1), ("scaled", 1, 2)] * 50, times=False)

    assert len(graph.nodes) == 103
    assert num_hooked == 53
    assert num_scaling > 53


def test_nothing_but_leaves_is_measured_if_nothing_else_is_asked_for() -> None:
    """Inner nodes are followed, so that it is known whether they live, and the leaves are measured as ever."""
    loss, _ = loss_of([("tanh", 1, 1), ("add", 1, 2), ("square", 1, 1)])
    outputs = outputs_in(loss)
    meter = GradientMeter(record_graph(outputs, Moment(source="test")), outputs, times=False, only_leaves=True)
    survivors = meter.survivors()
    loss.backward()
    found = meter.finish()
    every, _ = measured([("tanh", 1, 1), ("add", 1, 2), ("square", 1, 1)], times=True)
    leaves = {number for number, node in enumerate(every.nodes) if node.leaf is not None}

    assert [one for one in facts_of(found) if one[0] in leaves] == [one for one in facts_of(every) if one[0] in leaves]
    assert len(facts_of(found)) < len(facts_of(every))
    assert survivors.are_there()


def test_a_graph_of_which_one_such_node_is_alive_is_alive() -> None:
    """Whatever part a program keeps, some node with a hook is kept with it."""
    for number_kept in range(4):
        x = torch.ones(2, requires_grad=True)
        made = [x]
        for _ in range(4):
            made.append(made[-1].tanh())
        outputs = outputs_in(made[-1].sum())
        meter = GradientMeter(record_graph(outputs, Moment(source="test")), outputs, times=False)
        survivors = meter.survivors()
        torch.autograd.backward([output.value for output in outputs])
        meter.finish()
        kept = made[1 + number_kept]
        del outputs, meter, made
        gc.collect()

        assert survivors.are_there()
        assert kept.grad_fn is not None
        del kept
        gc.collect()
        assert not survivors.are_there()
