"""The time of each node, and which operators it ran."""

import json
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from memory_programs import PROGRAMS
from msgspec.structs import replace
from runs import gradinspect
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradinspect.analyses.gradients.timeline import Timeline, outermost_ops
from gradinspect.errors import GradInspectError
from gradinspect.observers.gradients.timing import NodeTimer
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import outputs_in


def timed(output: torch.Tensor, synchronize: Callable[[str], None] | None = None) -> Timeline:
    """Run backward with every node timed."""
    outputs = outputs_in(output)
    timer = NodeTimer(record_graph(outputs, Moment(source="test")), outputs, synchronize)
    output.backward()
    return timer.finish()


def ops_of(timeline: Timeline) -> dict[str, list[str]]:
    """Name the operators that the nodes of each class called."""
    found: dict[str, list[str]] = {}
    for piece in timeline.slices:
        names = [op.name.removeprefix("aten::") for op in outermost_ops(piece)]
        found.setdefault(timeline.graph.nodes[piece.node].name, []).extend(names)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_node_has_its_time(program: Callable[[], torch.Tensor]) -> None:
    """Each once; nodes of one thread follow one another, operators are inside their node."""
    timeline = timed(program())
    slices = timeline.slices

    assert sorted(piece.node for piece in slices) == list(range(len(timeline.graph.nodes)))
    assert all(piece.seconds > 0 for piece in slices)
    for before, after in pairwise(slices):
        assert before.thread != after.thread or before.start_s + before.seconds <= after.start_s
    for piece in slices:
        for op in piece.ops:
            assert piece.start_s <= op.start_s
            assert op.start_s + op.seconds <= piece.start_s + piece.seconds + 1e-9


def test_the_operators_are_those_that_the_formulas_name() -> None:
    """derivatives.yaml: addmm has two products, relu is threshold_backward, conv is convolution_backward."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5), nn.LogSoftmax(1))
    ops = ops_of(timed(model(torch.randn(2, 3, 8, 8, requires_grad=True)).sum()))

    assert ops["AddmmBackward0"].count("mm") == 2
    assert ops["ReluBackward0"] == ["threshold_backward"]
    assert ops["ConvolutionBackward0"] == ["convolution_backward"]
    assert ops["LogSoftmaxBackward0"] == ["_log_softmax_backward_data"]
    assert ops["SumBackward0"] == ["expand"]


class Slow(torch.autograd.Function):
    """Takes its time backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Pass it on."""
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Pass it on, late."""
        time.sleep(0.05)
        return gradient * 1


def test_time_is_that_of_a_clock() -> None:
    """A node that sleeps is as long as its sleep, and the others are not."""
    timeline = timed((Slow.apply(torch.ones(3, requires_grad=True)) * 2).sum())
    times = {timeline.graph.nodes[piece.node].name: piece.seconds for piece in timeline.slices}

    assert 0.05 <= times["SlowBackward"] < 0.2
    assert times["MulBackward0"] < 0.05


def on_devices(output: torch.Tensor, devices: Sequence[str], synchronize: Callable[[str], None]) -> Timeline:
    """Run backward of a graph whose nodes are said to be on these devices, in turns."""
    outputs = outputs_in(output)
    record = record_graph(outputs, Moment(source="test"))
    nodes = tuple(
        replace(node, forward_outputs=tuple(info and replace(info, device=devices[number % len(devices)])
                                            for info in node.forward_outputs))
        for number, node in enumerate(record.nodes)
    )  # fmt: skip
    timer = NodeTimer(replace(record, nodes=nodes), outputs, synchronize)
    output.backward()
    return timer.finish()


def test_the_devices_of_the_graph_are_waited_for() -> None:
    """What they still do after a node counts as the node's: NOTE [Devices run behind]."""
    waited: list[str] = []

    def wait(device: str) -> None:
        waited.append(device)
        time.sleep(0.01)

    timeline = on_devices((torch.ones(3, requires_grad=True) * 2).sum(), ("sim:0", "sim:1", "cpu"), wait)

    assert (timeline.synchronized, timeline.unsynchronized) == (("sim:0", "sim:1"), ())
    assert all(0.02 <= piece.seconds < 0.1 for piece in timeline.slices)
    assert set(waited) == {"sim:0", "sim:1"}


def test_a_program_on_the_cpu_waits_for_no_device() -> None:
    """Not even where there is one: asking would make a context there."""
    timeline = on_devices((torch.ones(3, requires_grad=True) * 2).sum(), ("cpu", "meta"), pytest.fail)

    assert (timeline.synchronized, timeline.unsynchronized) == ((), ())


def test_a_device_that_cannot_be_waited_for_is_named() -> None:
    """It is asked once; backward goes on."""
    asked: list[str] = []

    def refuse(device: str) -> None:
        asked.append(device)
        raise RuntimeError("It has no streams.")

    timeline = on_devices((torch.ones(3, requires_grad=True) * 2).sum(), ("other:0",), refuse)

    assert (timeline.synchronized, timeline.unsynchronized, asked) == ((), ("other:0",), ["other:0"])


def test_nodes_inside_a_node_are_not_taken_for_it() -> None:
    """A reentrant checkpoint runs a graph of its own inside one node."""
    layer = nn.Linear(3, 3)
    x = torch.ones(2, 3, requires_grad=True)
    timeline = timed(checkpoint(layer, x, use_reentrant=True).sum())

    assert sorted(piece.node for piece in timeline.slices) == list(range(len(timeline.graph.nodes)))
    assert "addmm" in {op.name.removeprefix("aten::") for piece in timeline.slices for op in piece.ops}


def test_the_gradients_do_not_notice() -> None:
    """Bit-equal, with no hook left."""
    grads = []
    for watches in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
        loss = model(torch.randn(4, 8)).square().sum()
        if watches:
            timed(loss)
        else:
            loss.backward()
        grads.append([parameter.grad for parameter in model.parameters()])

    assert all(torch.equal(left, right) for left, right in zip(*grads, strict=True))


def test_a_profiler_of_the_program_is_one_sentence() -> None:
    """There can be only one; the program's goes on."""
    loss = (torch.ones(3, requires_grad=True) * 2).sum()
    outputs = outputs_in(loss)
    graph = record_graph(outputs, Moment(source="test"))
    with torch.autograd.profiler.profile(), pytest.raises(GradInspectError, match="its own profiler"):
        NodeTimer(graph, outputs)


def test_the_trace_of_a_script(tmp_path: Path) -> None:
    """Nodes with module, line and shape, operators inside them, times in microseconds; stdout says the slowest."""
    (tmp_path / "train.py").write_text(
        "import torch\nm = torch.nn.Sequential(torch.nn.Linear(4, 2))\n"
        "loss = m(torch.ones(3, 4)).sum()\nloss.backward()\nprint('not reached')\n"
    )
    done = gradinspect("grads", "train.py", "--timeline", "run.json", cwd=tmp_path)
    again = gradinspect("grads", "train.py", "--timeline", "run.json", cwd=tmp_path)
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    nodes = {event["name"]: event for event in events if event.get("cat") == "node"}

    assert (done.returncode, done.stderr) == (0, "Wrote run.json\n")
    assert "5 nodes ran in" in done.stdout
    assert again.stderr == "gradinspect: The file 'run.json' exists. Use --force to overwrite it.\n"
    assert nodes["AddmmBackward0"]["args"] == {
        "node": 1, "module": "0", "source": "train.py:3", "code": "loss = m(torch.ones(3, 4)).sum()",
        "forward_outputs": "f32[3, 2]",
    }  # fmt: skip
    assert nodes["AddmmBackward0"]["dur"] < 1e6
    assert {event["ph"] for event in events} == {"M", "X"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train.py", "--timeline", "a.svg"], "The format of 'a.svg' is unknown. Supported extensions: .json."),
        (["train.py", "--timeline", "a.json", "--steps", "2"], "'--timeline a.json' only times the nodes"),
        (["train.py", "--timeline", "a.json"], "'train.py' never calls backward in this process"),
        (["train.py", "--timeline", "a.json", "--fake"], "'grads' has no option '--fake'"),
        (["plain.json", "--timeline", "a.json"], "'plain.json' is a capture of one moment: it can't be timed."),
    ],
)
def test_what_cannot_be_timed_is_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    """Exit code 2, and no file."""
    (tmp_path / "train.py").write_text("import torch\ny = torch.ones(2, requires_grad=True) * 2\n")
    if arguments[0] == "plain.json":
        gradinspect("export", "train.py", "-o", "plain.json", cwd=tmp_path)
    done = gradinspect("grads", *arguments, cwd=tmp_path)

    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "a.json").exists()
