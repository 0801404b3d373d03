"""Which results are dropped: by the instruction after the call, for tensors that backward reaches."""

import textwrap
from dis import get_instructions
from itertools import pairwise
from types import FunctionType

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.dropped_results import drops_result, is_pure
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.nodes import sequence_nr

NONE: frozenset[int] = frozenset()


def names_dropped(body: str) -> list[str]:
    """Run statements on a tensor `x` with a graph, and list the functions whose results were dropped."""
    space: dict[str, object] = {"torch": torch, "F": nn.functional, "net": nn.Linear(2, 2)}
    exec(compile(f"def run(x):\n{textwrap.indent(body, '    ')}\n", "/nowhere/program.py", "exec"), space)  # noqa: S102
    run = space["run"]
    assert isinstance(run, FunctionType)
    x = torch.ones(2, 2, requires_grad=True) * 2
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        run(x)
    node = x.grad_fn
    return [one.name for one in log.dropped.reached(frozenset((sequence_nr(node),)), NONE)]


def test_a_statement_drops_its_result() -> None:
    """A method, a function written in C, and one written in Python, with keywords or without."""
    assert names_dropped("x.detach()") == ["detach"]
    assert names_dropped("torch.clamp(x, min=0.5)") == ["clamp"]
    assert names_dropped("F.relu(x)\nF.dropout(x, p=0.1)\nreturn x") == ["relu", "dropout"]


def test_a_result_that_is_used_is_not_dropped() -> None:
    """Assigned, returned, a part of an expression, or changed in place."""
    assert names_dropped("y = x.detach()\n_ = x.relu()\nreturn x.tanh()") == []
    assert names_dropped("print(x.abs(), end='')\n[x.neg()]\nx.exp().sum()") == []
    assert names_dropped("x.relu_()\nF.leaky_relu(x, 0.1, True)") == []


def test_only_tensors_that_backward_reaches_count() -> None:
    """What else is computed may be a warm-up."""
    assert names_dropped("y = net(x)\ny.detach()") == []
    assert names_dropped("torch.ones(2).add(1)") == []


def test_a_leaf_is_known_by_itself() -> None:
    """No node has made it."""
    leaf = torch.ones(2, requires_grad=True)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        leaf.detach()

    assert [one.name for one in log.dropped.reached(NONE, frozenset((id(leaf),)))] == ["detach"]
    assert list(log.dropped.reached(NONE, frozenset((id(leaf),)))) == []


def test_functions_with_an_effect_are_not_pure() -> None:
    """Those that write, and those whose result is a number."""
    assert is_pure("torch.Tensor.detach")
    assert not any(map(is_pure, ("torch.Tensor.detach_", "torch.Tensor.__add__", "torch.Tensor.backward", "torch.sum")))


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("x.double()\nx.unsqueeze(0)\nnet(x)", ["double", "unsqueeze"]),
        ("x.to(torch.float64)\nx + 1\nx.clamp(0, 1)\nnet(x)", ["to", "clamp"]),
        ("x.to(torch.float32)\nx.squeeze(0)\nx.cpu()\nx.relu()\nnet(x)", []),  # no change, a wait, perhaps a benchmark
        ("x.double()\nnet(x + 1)", []),  # another tensor is read
        ("y = x.double()\nx.clamp_(0, 1)\nnet(x)", []),
        ("x.double()", []),
    ],
)
def test_data_that_is_cast_for_nothing(body: str, names: list[str]) -> None:
    """An operator that makes a graph then reads it as it was."""
    space: dict[str, object] = {"torch": torch, "net": nn.Linear(2, 2)}
    exec(compile(f"def run(x):\n{textwrap.indent(body, '    ')}\n", "/nowhere/program.py", "exec"), space)  # noqa: S102
    run = space["run"]
    assert isinstance(run, FunctionType)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        run(torch.ones(2, 2))
    found = list(log.dropped.reached(NONE, NONE))

    assert [one.name for one in found] == names
    assert all(one.is_data for one in found)


@pytest.mark.parametrize("function", [textwrap.wrap, textwrap.TextWrapper._wrap_chunks, nn.Module.apply])
def test_the_instruction_after_a_call_is_that_of_dis(function: FunctionType) -> None:
    """It is found without what lies before and behind: a function may have a hundred thousand instructions."""
    code = function.__code__
    instructions = list(get_instructions(code))
    following = {one.offset: after for one, after in pairwise(instructions)}
    calls = [one.offset for one in instructions if one.opname.startswith("CALL") and one.offset in following]

    dropped = [offset for offset in calls if drops_result(code, offset)]

    assert dropped == [offset for offset in calls if following[offset].opname == "POP_TOP"]
    assert not drops_result(code, instructions[-1].offset)
