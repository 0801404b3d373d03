"""`--values`: what each node made and received, without a change to the program."""

from pathlib import Path

import pytest
import torch
from runs import gradinspect

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.graph import Graph
from gradinspect.storage import read_graph

PROGRAM = """\
import sys, torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
if "weight" in sys.argv:
    net[2].weight.data[1, 3] += 1e-3
x = torch.randn(4, 6)
if "noise" in sys.argv:
    x = x * (1 + 1e-7 * torch.randn(4, 6, generator=torch.Generator().manual_seed(3)))
out = net(x)
if "nan" in sys.argv:
    out = out * float("nan")
loss = out.square().mean()
seen = {}
out.register_hook(lambda grad: seen.update(grad=grad.clone()))
loss.backward()
if "show" in sys.argv:
    torch.save((out.detach(), seen["grad"], net[0].weight.grad), "seen.pt")
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)


def recorded(*arguments: str, name: str = "run.json") -> Graph:
    """Export the program's graph with its values."""
    words = ("export", "train.py", "--values", "--force", "-o", name, *(["--continue"] if "show" in arguments else []))
    done = gradinspect(*words, "--", *arguments)
    assert done.returncode == 0, done.stderr
    return read_graph(name)


def test_values_are_those_that_the_program_sees() -> None:
    """Its own tensor, the gradient that its own hook gets, and what ends in `.grad`."""
    graph = recorded("show")
    out, grad, weight_grad = torch.load("seen.pt")
    values = {values.node: values for values in graph.values}
    addmm = next(number for number, node in enumerate(graph.nodes) if node.name == "AddmmBackward0")
    weight = next(n for n, node in enumerate(graph.nodes) if node.leaf is not None and node.leaf.name == "0.weight")
    pairs = [
        (values[addmm].outputs[0], out),
        (values[addmm].incoming[0], grad),
        (values[weight].incoming[0], weight_grad),
    ]

    for found, tensor in pairs:
        assert found is not None
        assert found.norm == pytest.approx(float(tensor.double().norm()))
        assert (found.low, found.high) == (float(tensor.min()), float(tensor.max()))


def test_two_runs_have_the_same_values() -> None:
    """So that captures with values can be compared at all."""
    first, second = recorded(), recorded()
    diff = diff_graphs(first, second)

    assert Path("run.json").read_bytes()
    assert first.values == second.values
    assert diff.is_empty
    assert diff.values is not None
    assert diff.values.num_compared > 20


def test_a_weight_that_differs_names_its_node() -> None:
    """One element by 1e-3: the parameter, the first node that used it, its line."""
    values = diff_graphs(recorded(), recorded("weight")).values

    assert values is not None
    assert [found.name for found in values.parameters] == ["2.weight"]
    assert values.parameters[0].distance.absolute == pytest.approx(1e-3, rel=0.5)
    assert values.first_forward is not None
    assert (values.first_forward.name, values.first_forward.module) == ("AddmmBackward0", "2")
    assert values.first_forward.line == "train.py:10"
    assert values.first_backward is not None


def test_rounding_is_told_apart() -> None:
    """A change in the last place of the input is counted, and is no difference."""
    before, after = recorded(), recorded("noise")
    values = diff_graphs(before, after).values

    assert values is not None
    assert values.is_empty
    assert values.num_rounded > 5
    assert 0 < values.largest_rounded < 3e-5


def test_values_that_are_not_numbers() -> None:
    """They survive a capture file, and are named first."""
    values = diff_graphs(recorded(), recorded("nan")).values

    assert values is not None
    assert values.first_backward is not None
    assert values.first_backward.distance.relative == float("inf")


def test_what_cannot_be_fingerprinted() -> None:
    """A capture has no values to look at, and gradients take a run of their own."""
    recorded()
    for words in (
        ["run.json", "--values"],
        ["train.py", "--values", "--gradients"],
        ["train.py", "--values", "--fake"],
    ):
        done = gradinspect("export", *words, "-o", "other.json")

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("gradinspect: '")
        assert done.stderr.count("\n") == 1
