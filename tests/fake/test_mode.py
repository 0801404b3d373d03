"""Fake tensors give the graph and the bytes of a real run; what needs values is said in one sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from memory_programs import PROGRAMS
from runs import gradinspect
from torch import nn

from gradinspect.analyses.memory.held import Memory, measure_memory
from gradinspect.fake import kernels as fake_kernels
from gradinspect.fake.mode import FAKE_TYPES, WARNING, FakeRun
from gradinspect.graph import Graph
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.values.tensors import PLAIN_TYPES


def recorded(program: Callable[[], torch.Tensor], *, fake: bool) -> Graph:
    """Run a program, and record its graph."""
    moment = Moment(source="test", plain_types=FAKE_TYPES)
    if not fake:
        return record_graph(outputs_in(program()), moment)
    with FakeRun(None):
        return record_graph(outputs_in(program()), moment)


def figures(memory: Memory) -> list[tuple[object, ...]]:
    """List what a memory report says of each storage."""
    return [(held.num_bytes, held.held_as, held.shown_bytes, held.savers, held.info) for held in memory.storages]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_fake_and_real_agree(program: Callable[[], torch.Tensor]) -> None:
    """Node by node and byte by byte."""
    real, fake = recorded(program, fake=False), recorded(program, fake=True)

    def shape(graph: Graph) -> list[tuple[object, ...]]:
        return [(node.name, node.next_edges, node.forward_outputs) for node in graph.nodes]

    assert shape(real) == shape(fake)
    assert figures(measure_memory(real)) == figures(measure_memory(fake))


GROUPED = {  # shapes of the factors, and whether groups are rows or columns of a whole
    "rows": ((10, 8), (2, 5, 8), True),
    "columns": ((2, 6, 8), (10, 8), True),
    "sums": ((5, 16), (3, 16), True),
    "apart": ((2, 6, 8), (2, 5, 8), False),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", GROUPED.values(), ids=GROUPED)
def test_a_grouped_product_is_that_of_the_kernel(
    case: tuple[tuple[int, ...], tuple[int, ...], bool], dtype: torch.dtype
) -> None:
    """Torch's shape function takes no float32, and pads no rows."""
    left, right, is_whole = case

    def product() -> tuple[torch.Size, tuple[int, ...], torch.dtype, int]:
        ends = torch.tensor([4, 10], dtype=torch.int32) if is_whole else None
        factors = torch.ones(left, dtype=dtype), torch.ones(right, dtype=dtype).mT
        result = torch._grouped_mm(*factors, offs=ends)
        return result.shape, result.stride(), result.dtype, result.untyped_storage().nbytes()

    with FakeRun(None):
        fake = product()
    assert fake == product()


def test_a_layer_too_large_to_ask_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its workspace is missing from the bytes, and the report says so."""
    monkeypatch.setattr(fake_kernels, "MAX_TRIAL_BYTES", 0)
    with FakeRun(None) as run:
        PROGRAMS["lstm"]()

    assert run.warnings == (WARNING, fake_kernels.UNKNOWN_WORKSPACE)


TRAIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(4, 1)
data = TensorDataset(torch.randn(16, 4), torch.randn(16, 1))
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    loss = (model(x) - y).square().mean()
    loss.backward()
"""


@pytest.mark.slow
def test_a_training_script_with_a_loader(tmp_path: Path) -> None:
    """The loader draws its numbers, the model sees fake batches."""
    (tmp_path / "train.py").write_text(TRAIN)
    done = gradinspect("memory", "train.py", "--fake", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == [
        "backward #1  train.py:8  loss.backward()",
        f"warning: {WARNING}",
    ]


def test_a_module_is_converted(tmp_path: Path) -> None:
    """To another dtype and to a device; the optimizer made before keeps its parameters."""
    with FakeRun(None):
        layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        optimizer = torch.optim.SGD(layer.parameters())
        weight = layer[0].weight
        layer.to("cpu").to(torch.bfloat16).double().bfloat16()
        layer(torch.randn(8, 4, dtype=torch.bfloat16)).sum().backward()

        assert layer[0].weight is weight is optimizer.param_groups[0]["params"][0]
        assert (weight.dtype, weight.untyped_storage().nbytes(), layer[1].running_mean.dtype) == (
            torch.bfloat16, 32, torch.bfloat16,
        )  # fmt: skip
        assert weight.grad is not None
        assert weight.grad.dtype is torch.bfloat16


def test_drawing_and_checking_values_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A truncated normal, a distribution, a random sampler."""
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)  # torch.compile sets it to False
    with FakeRun(None):
        torch.nn.init.trunc_normal_(torch.empty(4, 4), std=0.02)
        chosen = torch.distributions.Categorical(torch.ones(3).softmax(0)).sample()
        assert id(type(chosen)) in FAKE_TYPES - PLAIN_TYPES
    assert torch.nn.init.trunc_normal_(torch.empty(100), std=0.02).abs().sum() > 0
    with pytest.raises(ValueError, match="Expected parameter probs"):
        torch.distributions.Categorical(torch.tensor([-1.0, 2.0]))


@pytest.mark.parametrize(
    "line",
    ["print(loss.item())", "y = y[y > 0]", "assert loss > 0", "numbers = x.detach().numpy()", "values = x.tolist()"],
)
def test_what_needs_values_is_named_with_its_line(line: str, tmp_path: Path) -> None:
    """One sentence, no traceback, exit 2."""
    (tmp_path / "train.py").write_text(TRAIN.replace("    loss.backward()", f"    {line}\n    loss.backward()"))
    done = gradinspect("memory", "train.py", "--fake", cwd=tmp_path)
    what = "makes a tensor whose size depends on values" if "[y > 0]" in line else "reads values"

    assert done.returncode == 2
    assert done.stderr == (
        f"gradinspect: '{line}' (train.py:8) {what}, which fake tensors do not have. "
        "Move it after the backward call, or run without --fake.\n"
    )


def test_what_sends_tensors_is_named_with_its_line() -> None:
    """DistributedDataParallel compares the parameters of all processes as it is made."""
    done = gradinspect("memory", Path(__file__).parent.parent.parent / "samples" / "ddp.py", "--fake")

    assert done.returncode == 2
    assert "(ddp.py:16) needs the data of tensors, as communication between processes does" in done.stderr
    assert done.stderr.endswith("Run one rank alone, with --world-size, or run without --fake; fit has --real.\n")


def test_nested_tensors_are_named_as_what_cannot_be_fake(tmp_path: Path) -> None:
    """Torch asserts that there is something that has counted their lengths."""
    line = "rows = torch.nested.as_nested_tensor([torch.randn(n, 4) for n in (2, 3)], layout=torch.jagged)"
    tail = "torch.nn.Linear(4, 4)(rows).values().sum().backward()"
    (tmp_path / "train.py").write_text(f"import torch\n{line}\n{tail}\n")
    done = gradinspect("fit", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "(train.py:2) needs a nested tensor, whose rows have lengths that fake tensors do not know" in done.stderr
    assert "Traceback" not in done.stderr


SHARDED = """
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(4, 4)
fully_shard(model)
model(torch.randn(2, 4)).sum().backward()
dist.destroy_process_group()
"""


def test_what_torch_reads_to_agree_with_other_ranks_is_said_to_be_sent(tmp_path: Path) -> None:
    """`fully_shard` reads what the ranks of a mesh have sent: no number to answer with, but a rank to be."""
    (tmp_path / "train.py").write_text(SHARDED)
    refused = gradinspect("fit", "train.py", cwd=tmp_path)
    alone = gradinspect("fit", "train.py", "--world-size", "1", cwd=tmp_path)

    assert refused.returncode == 2
    assert "'fully_shard(model)' (train.py:7) needs the data of tensors, as communication" in refused.stderr
    assert "--hint" not in refused.stderr
    assert alone.returncode == 0, alone.stderr


def test_the_programs_own_error_stays_its_own(tmp_path: Path) -> None:
    """With its traceback, and exit 3."""
    (tmp_path / "train.py").write_text(TRAIN.replace("    loss.backward()", "    raise ValueError('mine')"))
    done = gradinspect("memory", "train.py", "--fake", cwd=tmp_path)

    assert done.returncode == 3
    assert "ValueError: mine" in done.stderr
    assert "gradinspect/" not in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="this build has what the test says it lacks")
@pytest.mark.parametrize("line", ["model.cuda()", "x = torch.ones(2, device='cuda')", "model.to('cuda:0')"])
def test_a_device_that_this_build_lacks_is_refused(line: str, tmp_path: Path) -> None:
    """Before the first autograd op, which would end the process."""
    (tmp_path / "train.py").write_text(TRAIN.replace("for x, y", f"{line}\nfor x, y"))
    inside = gradinspect("memory", "train.py", "--fake", cwd=tmp_path)
    without = "build of PyTorch has no" if torch.version.cuda is None else "machine has no"
    option = gradinspect("memory", "train.py", "--fake", "--device", "cuda", cwd=tmp_path)

    for done in (inside, option):
        assert done.returncode == 2
        assert f"this {without} CUDA" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_script_chooses_its_devices_itself(tmp_path: Path) -> None:
    """Unless its tensors are fake; and an unknown device is said."""
    (tmp_path / "train.py").write_text(TRAIN)

    assert gradinspect("trace", "train.py", "--device", "cuda", cwd=tmp_path).stderr == (
        "gradinspect: '--device cuda' moves a callable, and 'train.py' is run as a whole. Name the callable: "
        "'train.py:Net()', or make the tensors with --fake.\n"
    )
    unknown = gradinspect("trace", "train.py", "--fake", "--device", "gpu", cwd=tmp_path)
    assert "Unknown device 'gpu'." in unknown.stderr


def test_memory_of_fake_tensors_can_be_shared() -> None:
    """A tensor, and a module with a buffer and tied weights, come back as they are, and a meta tensor is refused."""
    with FakeRun(None):
        tensor = torch.zeros(3)
        assert tensor.share_memory_() is tensor
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4))
        model[2].weight = model[0].weight
        before = [id(held) for held in (*model.parameters(), *model.buffers())]
        assert model.share_memory() is model
        assert [id(held) for held in (*model.parameters(), *model.buffers())] == before
        assert model[2].weight is model[0].weight
        model(torch.randn(2, 4)).sum().backward()
        assert model[0].weight.grad.shape == (4, 4)
        with pytest.raises(RuntimeError, match="only available on CPU"):
            torch.empty(3, device="meta").share_memory_()


def test_real_tensors_are_shared_in_a_fake_run() -> None:
    """What was made before the fake run is really moved into shared memory."""
    real = torch.zeros(3)
    with FakeRun(None):
        real.share_memory_()
    assert real.is_shared()


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["layer = torch.nn.LazyLinear(3)", "torch.randn(3).as_subclass(Own)", "torch.Tensor._make_subclass(Own, x)"],
)
def test_a_tensor_of_a_class_of_its_own_is_named(line: str, tmp_path: Path) -> None:
    """Instead of an error of torch's own about fake tensors; the sentence says what measures it."""
    (tmp_path / "train.py").write_text(
        f"import torch\nclass Own(torch.Tensor): pass\nx = torch.randn(3)\n{line}\n"
        "torch.ones(3, requires_grad=True).sum().backward()\n"
    )
    done = gradinspect("fit", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.endswith(
        "(train.py:4) needs a tensor of a class of its own, as lazy layers do, which cannot be made of a fake one. "
        "Run without --fake; fit has --real.\n"
    )
    assert "Traceback" not in done.stderr
