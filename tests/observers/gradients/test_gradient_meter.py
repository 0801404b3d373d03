"""Measuring backward: the statistics are those of the gradients, and backward is unchanged."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from memory_programs import PROGRAMS
from runs import gradinspect, python
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle

from gradinspect.analyses.gradients.observed import gradient_notes, gradients_of, norm_of_all, parameter_rows
from gradinspect.graph import Graph, stats_of
from gradinspect.observers.gradients.figures import Measurements
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.observers.gradients.node_meter import NodeMeter
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.names.instances import instances_of
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder


def measured(output: torch.Tensor, **options: Any) -> Graph:
    """Run backward with every node measured."""
    outputs = outputs_in(output)
    meter = GradientMeter(record_graph(outputs, Moment(source="test")), outputs)
    output.backward(**options)
    return meter.finish()


def leaves_of(output: torch.Tensor) -> list[torch.Tensor]:
    """Find the leaves behind a tensor, in the order of a walk."""
    seen = {output.grad_fn: None}
    for node in (order := [output.grad_fn]):
        for after, _ in node.next_functions:
            if after is not None and after not in seen:
                seen[after] = None
                order.append(after)
    return [node.variable for node in order if hasattr(node, "variable")]


class WithoutDoubles(TorchDispatchMode):
    """Refuses float64, as MPS does."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dtype is torch.float64:
            raise TypeError("Cannot convert a tensor to float64 on this device")
        return result


def test_what_a_hook_of_a_tensor_changes_is_measured_before_and_after_it() -> None:
    """A node has made the gradient that the hook gets, and the next one receives what the hook returns."""
    x = torch.ones(4, requires_grad=True)
    with Recorder() as recorder:
        y = x * 2
        y.register_hook(lambda grad: grad * 100)
        loss = (y + 1).sum()
    outputs = outputs_in(loss)
    meter = GradientMeter(record_graph(outputs, Moment(source="test"), recorder), outputs)
    loss.backward()
    gradients = meter.finish().gradients

    assert gradients is not None
    add, product = gradients.nodes[1:3]
    made, received = stats_of(add.outgoing[0]), stats_of(product.incoming[0])
    assert made is not None
    assert received is not None
    assert (made.max_abs, received.max_abs) == (1.0, 100.0)


def test_gradients_are_measured_on_a_device_without_float64() -> None:
    """All numbers are there, and the same as with it."""
    torch.manual_seed(0)
    x, weight = torch.randn(8, 4), torch.randn(4, 3, requires_grad=True)
    plain = measured((x @ weight).relu().sum())
    with WithoutDoubles():
        without = measured((x @ weight).relu().sum())

    assert plain.gradients is not None
    assert without.gradients is not None
    stats = [[(node.incoming, node.outgoing) for node in graph.gradients.nodes] for graph in (plain, without)]  # type: ignore[union-attr]
    assert stats[0] == stats[1]
    assert all(None not in incoming for incoming, _ in stats[1])


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients_are_bit_equal(program: Callable[[], torch.Tensor]) -> None:
    """With and without a meter; and no hook stays."""
    torch.manual_seed(0)
    plain = program()
    plain.backward()
    expected = [leaf.grad for leaf in leaves_of(plain)]
    torch.manual_seed(0)
    output = program()
    measured(output)
    actual = [leaf.grad for leaf in leaves_of(output)]

    assert len(expected) == len(actual) > 0
    for left, right in zip(expected, actual, strict=True):
        assert left is not None
        assert right is not None
        assert torch.equal(left.to_dense(), right.to_dense())


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_numbers_are_those_of_the_gradients(program: Callable[[], torch.Tensor]) -> None:
    """The norm that reaches each leaf is the norm of its `.grad`, of the sum where several were added."""
    torch.manual_seed(0)
    output = program()
    leaves = {id(leaf): leaf for leaf in leaves_of(output)}
    found = measured(output)
    norms = sorted(row.stats.norm for row in parameter_rows(found) if row.stats is not None)
    expected = sorted(float(leaf.grad.to_dense().norm()) for leaf in leaves.values() if leaf.grad is not None)

    assert len(gradients_of(found).nodes) == len(found.nodes)
    assert norms == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_each_number_by_hand() -> None:
    """Norm, largest, mean, zeros; two gradients into one leaf; the ratio to the weight."""
    x = torch.tensor([3.0, -4.0, 0.0, 1.0], requires_grad=True)
    found = measured((x * torch.tensor([1.0, 2.0, 0.0, 0.0]) + x * 0.0).sum())
    (row,) = parameter_rows(found)
    assert row.stats is not None

    assert row.stats.norm == pytest.approx(5**0.5)
    assert (row.stats.max_abs, row.stats.mean) == (2.0, 0.75)
    assert (row.stats.num_zeros, row.stats.shape, row.stats.dtype, row.num_added) == (2, (4,), "float32", 2)
    assert row.ratio == pytest.approx((5 / 26) ** 0.5)


def complex_program() -> torch.Tensor:
    """Make a complex gradient."""
    return torch.view_as_real(nn.Linear(2, 2, dtype=torch.complex64)(torch.ones(1, 2).cfloat())).sum()


def half_program() -> torch.Tensor:
    """Make a half gradient."""
    return nn.Linear(2, 2, dtype=torch.bfloat16)(torch.ones(1, 2).bfloat16()).sum()


def empty_program() -> torch.Tensor:
    """Make an empty gradient."""
    return (torch.ones(0, 3, requires_grad=True) * 2).sum()


def undefined_program() -> torch.Tensor:
    """Make an undefined gradient."""
    return torch.ones(3, 2, requires_grad=True).unbind()[1].sum()


def nested_program() -> torch.Tensor:
    """Make a nested gradient."""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], requires_grad=True)
    return nested.to_padded_tensor(0).sum()


STRANGE = (complex_program, half_program, empty_program, undefined_program, nested_program)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("program", STRANGE)
def test_strange_gradients_break_nothing(program: Callable[[], torch.Tensor]) -> None:
    """Measured where they can be, left out where not."""
    found = measured(program())

    assert len(gradients_of(found).nodes) == len(found.nodes)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_no_node_is_added_under_create_graph() -> None:
    """The graph of the gradient is as large as without a meter."""
    sizes = []
    for watches in (False, True):
        x = torch.ones(3, requires_grad=True)
        y = (x**3).sum()
        if watches:
            measured(y, create_graph=True)
        else:
            y.backward(create_graph=True)
        assert x.grad is not None
        sizes.append(len(leaves_of(x.grad)))
        before = torch._C._autograd._get_sequence_nr()
        _ = x.grad * 1
        sizes.append(torch._C._autograd._get_sequence_nr() - before)

    assert sizes[:2] == sizes[2:]


BROKEN = {
    "non-finite": ("y = torch.sqrt(x - x.detach())", "SqrtBackward0", "y = torch.sqrt"),
    "killed": ("y = (x * 3).round()", "RoundBackward0", "y = (x * 3).round()"),
    "loss": ("y = torch.log(x * 0 - 1)", None, None),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_went_wrong_is_found_with_its_line(kind: str, tmp_path: Path) -> None:
    """In a script, through the command."""
    line, node, code = BROKEN[kind]
    (tmp_path / "broken.py").write_text(
        "import torch\nfrom torch import nn\ntorch.manual_seed(0)\nlayer = nn.Linear(4, 4)\n"
        f"x = layer(torch.randn(2, 4))\n{line}\ny.sum().backward()\nprint('not reached')\n"
    )
    done = gradinspect("grads", "broken.py", "--format", "json", cwd=tmp_path)
    found = {finding["kind"]: finding for finding in json.loads(done.stdout)["findings"]}

    assert (done.returncode, done.stderr) == (0, "")
    assert kind in found
    if node is not None and code is not None:
        assert node in found[kind]["text"]
        assert f"broken.py:6  {code}" in found[kind]["text"]
        assert set(found[kind]["parameters"]) == {"weight", "bias"}


def test_a_chain_that_vanishes_is_named() -> None:
    """Twelve sigmoids; a chain of identities is not."""
    torch.manual_seed(0)
    from gradinspect.recording.recorder import Recorder

    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Sigmoid()) for _ in range(12)))
    with Recorder() as recorder:
        output = model(torch.randn(16, 8)).sum()
    outputs = outputs_in(output)
    meter = GradientMeter(record_graph(outputs, Moment(source="test"), recorder), outputs)
    output.backward()
    kinds = [finding.kind for finding in gradient_notes(meter.finish())]

    assert "vanishing" in kinds
    assert "killed" not in kinds


def test_the_script_goes_on_bit_equal(tmp_path: Path) -> None:
    """With --continue it prints what it prints under plain python."""
    (tmp_path / "train.py").write_text(
        "import torch\ntorch.manual_seed(0)\nm = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), "
        "torch.nn.Linear(8, 1))\no = torch.optim.Adam(m.parameters())\n"
        "for _ in range(3):\n    loss = m(torch.randn(8, 4)).square().mean()\n    o.zero_grad()\n    loss.backward()\n"
        "    o.step()\nprint([p.detach().sum().item().hex() for p in m.parameters()])\n"
    )
    plain = python(tmp_path / "train.py")
    done = gradinspect("grads", "train.py", "--backward", "2", "--continue", cwd=tmp_path)

    assert done.stdout.startswith(plain.stdout + "backward #2  train.py:8  loss.backward()\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.py"], "'none.py' never calls backward in this process, so there are no gradients to observe."),
        (["none.py", "--fake"], "'grads' has no option '--fake'."),
        (
            ["none.json"],
            "'none.json' was captured without gradients. Give a program to run, or export it again with --gradients.",
        ),
    ],
)
def test_what_has_no_gradients_is_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    """Exit code 2."""
    (tmp_path / "none.py").write_text("import torch\ny = torch.ones(2, requires_grad=True) * 2\n")
    gradinspect("export", "none.py", "-o", "none.json", cwd=tmp_path)
    done = gradinspect("grads", *arguments, cwd=tmp_path)

    assert done.returncode == 2
    assert sentence in done.stderr


def test_autograd_grad_takes_gradients_before_the_leaves(tmp_path: Path) -> None:
    """They are measured where they leave; leaves that were not requested are not reported."""
    (tmp_path / "inner.py").write_text(
        "import torch\nw, b = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)\n"
        "loss = (w * torch.arange(3.0) + b).sum()\n(g,) = torch.autograd.grad(loss, [w])\n"
    )
    figures = json.loads(gradinspect("grads", "inner.py", "--format", "json", cwd=tmp_path).stdout)
    norms = {row["name"]: row["stats"] and row["stats"]["norm"] for row in figures["parameters"]}

    assert figures["findings"] == []
    assert norms["w"] == pytest.approx(5**0.5)


def test_a_loss_inside_a_transform_is_left_alone() -> None:
    """Tensors that torch.func wraps have no readable values."""
    seen = []

    def loss(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        value = (x @ weight).tanh().sum()
        outputs = outputs_in(value)
        meter = GradientMeter(record_graph(outputs, Moment(source="test")), outputs)
        seen.append(meter.finish())
        return value

    torch.func.vmap(torch.func.grad(loss), (None, 0))(torch.randn(4), torch.randn(3, 8, 4))

    assert len(seen) == 1
    assert gradients_of(seen[0]).loss is None


def test_batched_gradients_break_nothing(tmp_path: Path) -> None:
    """Batched gradients have no statistics, and the script gets the same gradients."""
    script = tmp_path / "batched.py"
    script.write_text(
        "import torch\nx = torch.randn(3, requires_grad=True)\n"
        "print(torch.autograd.grad(x * 2, x, torch.eye(3), is_grads_batched=True)[0].sum().item())\n"
    )
    watched = gradinspect("grads", script, "--continue")
    checked = gradinspect("check", script, "--continue")

    assert (watched.returncode, watched.stderr) == (0, "")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout == (
        "6.0\nGradients at 1 node were not measured: a batched gradient cannot be read, in 1\n  call.\n"
        "No problems found in 1 backward call of batched.py\n"
    )


def test_a_capture_file_keeps_what_flowed_back(tmp_path: Path) -> None:
    """The report is that of the program, character for character; two runs give the same bytes."""
    (tmp_path / "train.py").write_text(
        "import torch\ntorch.manual_seed(0)\nlayer = torch.nn.Linear(4, 4)\n"
        "y = layer(torch.randn(2, 4)).sqrt()\ny.sum().backward()\n"
    )
    for name in ("a.json", "b.json"):
        done = gradinspect("export", "train.py", "--gradients", "-o", name, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, f"Wrote {name}\n")
    of_program = gradinspect("grads", "train.py", cwd=tmp_path)
    of_file = gradinspect("grads", "a.json", cwd=tmp_path)

    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert "nan" in of_program.stdout
    assert (of_program.stdout, 0) == (of_file.stdout, of_file.returncode)


def test_a_picture_of_what_flowed_back(tmp_path: Path) -> None:
    """`--color-by grad` lets backward run by itself; a capture without gradients is one sentence."""
    (tmp_path / "train.py").write_text(
        "import torch\nw = torch.ones(4, requires_grad=True)\n(w * 3).sum().backward()\nprint(w.grad.norm())\n"
    )
    done = gradinspect("export", "train.py", "--color-by", "grad", "-o", "a.svg", "-o", "a.json", cwd=tmp_path)
    again = gradinspect("export", "a.json", "--color-by", "grad", "-o", "b.svg", cwd=tmp_path)
    gradinspect("export", "train.py", "-o", "plain.json", cwd=tmp_path)
    refused = gradinspect("export", "plain.json", "--color-by", "grad", "-o", "c.svg", cwd=tmp_path)

    assert (done.returncode, again.returncode, refused.returncode) == (0, 0, 2)
    assert "norm 6.0e+00" in (tmp_path / "a.svg").read_text().replace("\xa0", " ").replace("&#160;", " ")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "'plain.json' was captured without gradients. Give a program to run" in refused.stderr
    assert not (tmp_path / "c.svg").exists()


def test_a_gradient_that_is_passed_on_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition passes on the tensor that it got, so the next node's numbers are those of the addition."""
    measured: list[torch.Tensor] = []
    measure = Measurements.measure

    def counting(self: Measurements, gradients: Sequence[torch.Tensor | None]) -> Any:
        measured.extend(gradient for gradient in gradients if gradient is not None)
        return measure(self, gradients)

    monkeypatch.setattr(Measurements, "measure", counting)
    x = torch.randn(4, requires_grad=True)
    graphs = []
    for times in (True, False):
        measured.clear()
        outputs = outputs_in((x.exp() + torch.ones(4)).tanh().sum())
        meter = GradientMeter(record_graph(outputs, Moment(source="test")), outputs, times=times)
        torch.autograd.backward([output.value for output in outputs])
        graphs.append(gradients_of(meter.finish()).nodes)
        if times:
            assert len(measured) == 5  # loss, tanh, add, exp, leaf

    assert len(measured) == 4
    assert [(ran.incoming, ran.outgoing) for ran in graphs[0]] == [(ran.incoming, ran.outgoing) for ran in graphs[1]]


def test_a_gradient_that_code_has_written_into_is_not_taken_for_passed_on() -> None:
    """A custom backward may return the tensor that it got, with other values."""

    class Doubling(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(_ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
            return gradients[0].mul_(2)

    x = torch.randn(4, requires_grad=True)
    outputs = outputs_in(Doubling.apply(x.exp() * 3).tanh().sum())
    meter = GradientMeter(record_graph(outputs, Moment(source="test")), outputs, times=False)
    torch.autograd.backward([output.value for output in outputs])
    graph = meter.finish()
    (doubling,) = [number for number, node in enumerate(graph.nodes) if node.kind == "custom"]
    (ran,) = [ran for ran in gradients_of(graph).nodes if ran.node == doubling]

    assert norm_of_all(ran.outgoing) == pytest.approx(2 * (norm_of_all(ran.incoming) or 0.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e25])
def test_small_gradients_measured_together_have_their_own_norms(dtype: torch.dtype, size: float) -> None:
    """Also where squares of one leave the range of its dtype, and those of the others do not."""
    measurements = Measurements()
    tensors = [torch.full((4,), factor * size, dtype=dtype) for factor in (1.0, 0.0, -2.0)]
    tensors.append(torch.tensor([1.0, float("nan"), 0.0, 0.0], dtype=dtype))
    figures = measurements.measure(tensors)
    measurements.fetch()
    stats = [stats_of(one.stats) for one in figures if one is not None]

    assert [one.norm for one in stats[:3] if one] == pytest.approx([2 * size, 0.0, 4 * size], rel=1e-5, abs=0)
    assert [one.max_abs for one in stats[:3] if one] == pytest.approx([size, 0.0, 2 * size], rel=1e-5, abs=0)
    assert [(one.num_zeros, one.num_nonfinite) for one in stats if one] == [(0, 0), (4, 0), (0, 0), (2, 1)]


def test_no_handle_of_torch_is_kept_for_a_hook() -> None:
    """A node takes one hook at most, without a handle and without a bound method; all are gone when it is finished."""
    x = torch.ones(2, requires_grad=True)
    loss = x.tanh().exp().sin().sum()
    nodes = [loss.grad_fn]
    for node in nodes:
        nodes += [after for after, _ in node.next_functions if hasattr(after, "next_functions")]
    outputs = outputs_in(loss)
    graph = record_graph(outputs, Moment(source="test"))
    handles = len(instances_of(RemovableHandle))
    meter = GradientMeter(graph, outputs, times=False)

    assert len(instances_of(RemovableHandle)) == handles
    assert {type(hook) for node in nodes[:-1] for hook in hooks_of(node)} == {NodeMeter}
    meter.close()
    assert not any(map(hooks_of, nodes))


def hooks_of(node: object) -> list[object]:
    """List the hooks after a node."""
    found: list[object] = []

    def probe(_outgoing: object, _incoming: object) -> None:
        """Do nothing."""

    handle = node.register_hook(probe)  # type: ignore[attr-defined]  # a node of torch
    found += [hook for hook in handle.hooks_dict_ref().values() if hook is not probe]
    handle.remove()
    return found
