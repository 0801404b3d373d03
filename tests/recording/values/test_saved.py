"""What nodes keep, in every state it can be in, read without running anything."""

import gc
import weakref
from typing import Any, cast

import pytest
import torch
from msgspec.structs import replace
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from gradinspect.analyses.summary import summarize
from gradinspect.graph import Graph, SavedValue
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.saved import raw_tensor


def saved_of(graph: Graph, node: str, name: str) -> list[SavedValue]:
    """Return the values of one attribute of all nodes of one class."""
    return [value for n in graph.nodes if n.name == node for value in n.saved if value.name == name]


def test_a_saved_output_an_input_and_a_parameter_are_told_apart() -> None:
    """The origin of a tensor is what it is to the node that keeps it."""

    def look() -> Graph:  # pytest puts locals() into functions that assert, and those are left alone
        layer = nn.Linear(3, 3)
        x = torch.ones(2, 3)
        return capture_graph(layer(x).exp().square())

    graph = look()
    (weight_input,) = saved_of(graph, "AddmmBackward0", "_saved_mat1")
    (result,) = saved_of(graph, "ExpBackward0", "_saved_result")
    (squared,) = saved_of(graph, "PowBackward0", "_saved_self")

    assert (weight_input.origin, weight_input.origin_name) == ("input", "x")
    assert result.origin == "output"
    assert squared.origin == "activation"
    assert squared.tensor is not None
    assert squared.tensor.made_by is not None
    assert graph.nodes[squared.tensor.made_by].name == "ExpBackward0"
    assert result.tensor is not None
    assert result.tensor.storage == squared.tensor.storage


def test_after_backward_everything_is_freed() -> None:
    """Freed is not the same as never saved."""
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).exp().sum()
    y.backward()
    graph = capture_graph(y)

    assert [value.status for value in saved_of(graph, "ExpBackward0", "_saved_result")] == ["freed"]
    assert [value.status for value in saved_of(graph, "MulBackward0", "_saved_other")] == ["freed"]


def test_a_tensor_changed_in_place_says_both_versions() -> None:
    """As the engine would, for every stale tensor and for no other."""
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    z = torch.stack([y, y]).cos() * x.sin()
    y.add_(1)
    y.add_(1)
    graph = capture_graph((z + y).sum())
    (result,) = saved_of(graph, "ExpBackward0", "_saved_result")
    statuses = [value.status for node in graph.nodes for value in node.saved if value.status not in (None, "live")]

    assert result.status == "modified"
    assert result.tensor is not None
    assert (result.tensor.version, result.tensor.expected_version) == (2, 0)
    assert statuses == ["modified"]


class KeepsBoth(torch.autograd.Function):
    """Saves an input and its output, and puts things on ctx."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: float) -> torch.Tensor:
        """Scale."""
        y = x * scale
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        ctx.extra = [torch.ones(5)]
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Scale back."""
        return grad * ctx.scale, None


def test_a_custom_function_shows_what_it_saved_and_its_context() -> None:
    """By the names the user gave."""
    graph = capture_graph(KeepsBoth.apply(torch.ones(2, requires_grad=True) * 1, 2.5))
    values = {(v.name, v.index): v for v in graph.nodes[0].saved}

    assert graph.nodes[0].function == f"{__name__}.KeepsBoth"
    assert [values["saved_tensors", i].origin for i in (0, 1)] == ["activation", "output"]
    assert values["ctx.scale", None].value == 2.5
    assert values["ctx.extra", 0].tensor is not None
    assert values["needs_input_grad", None].value == (True, False)


def test_packed_and_checkpointed_tensors_stay_as_they_are() -> None:
    """No unpack hook runs, no forward runs again, and what the packed object holds is counted."""
    unpacked: list[object] = []
    forwards: list[object] = []
    x = torch.ones(4, requires_grad=True)

    def unpack(packed: Any) -> torch.Tensor:
        unpacked.append(packed)
        return packed[0]

    def block(y: torch.Tensor) -> torch.Tensor:
        forwards.append(y)
        return y.sin().cos()

    with saved_tensors_hooks(lambda tensor: (tensor,), unpack):
        packed = x.exp()
    with save_on_cpu():
        offloaded = packed.tan()
    graph = capture_graph(checkpoint(block, offloaded, use_reentrant=False))
    (result,) = saved_of(graph, "ExpBackward0", "_saved_result")
    (sine,) = saved_of(graph, "SinBackward0", "_saved_self")

    assert (result.status, result.packed_as) == ("packed", "tuple")
    assert result.unpack_hook is not None
    assert result.unpack_hook.endswith("unpack")
    assert [graph.storages[number].num_bytes for number in result.held_storages] == [16]
    assert sine.status == "checkpointed"
    assert unpacked == []
    assert len(forwards) == 1


def bytes_by_pack_hooks(model: nn.Module, x: torch.Tensor) -> int:
    """Count what a plain run saves, by another way: pack hooks, each storage once, parameters included."""
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        storages[storage._cdata] = storage
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        kept = model(x).square().sum()
    return sum(storage.nbytes() for storage in storages.values()) if kept is not None else 0


def test_the_sum_of_bytes_is_that_of_pack_hooks() -> None:
    """An independent count of the same run comes to the same byte, for several kinds of layers."""
    torch.manual_seed(0)
    image = torch.randn(2, 3, 8, 8)
    sequence = torch.randn(2, 5, 16)
    cases: list[tuple[nn.Module, torch.Tensor]] = [
        (nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4)), sequence),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)), image),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval(), image),
        (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0), sequence),
        (nn.Sequential(nn.LayerNorm(16), nn.GELU(), nn.Softmax(-1)), sequence),
    ]
    ours, theirs = [], []
    for model, x in cases:
        torch.manual_seed(1)
        theirs.append(bytes_by_pack_hooks(model, x))
        torch.manual_seed(1)
        graph = capture_graph(model(x).square().sum())
        numbers = sum(v.tensor.num_bytes for n in graph.nodes for v in n.saved if v.tensor and not v.tensor.info.shape)
        ours.append(
            summarize(graph).held_bytes + summarize(graph).weight_bytes - numbers
        )  # pack hooks are not called for Python numbers

    assert theirs == ours


def test_gradients_are_the_same_bits_with_and_without() -> None:
    """Looking changes nothing, and adds no node."""
    gradients = []
    for look in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten())
        loss = model(torch.randn(2, 3, 6, 6)).square().mean()
        if look:
            before = torch._C._autograd._get_sequence_nr()
            capture_graph(loss)
            assert torch._C._autograd._get_sequence_nr() == before
        loss.backward()
        gradients.append([p.grad for p in model.parameters() if p.grad is not None])

    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_nothing_is_kept_alive() -> None:
    """Once the user lets go, the tensors and the model die, though the record lives on."""

    def look() -> tuple[Graph, list[weakref.ref[Any]]]:
        model = nn.Linear(3, 3)
        y = model(torch.ones(2, 3)).exp()
        return capture_graph(y.sum()), [weakref.ref(model), weakref.ref(y)]

    graph, watched = look()
    gc.collect()

    assert graph.nodes
    assert [one() for one in watched] == [None, None]


def strange_outputs() -> dict[str, torch.Tensor]:
    """Make outputs of the kinds that break inspectors."""
    x = torch.ones(3, requires_grad=True)
    complex_x = torch.ones(3, dtype=torch.complex64, requires_grad=True)
    embedding = nn.Embedding(4, 2, sparse=True)
    sparse = torch.eye(3).to_sparse()
    base = torch.zeros(4)
    base = base * 1
    base[:2] = x[:2]
    (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], requires_grad=True, layout=torch.jagged)
    with torch.inference_mode():
        constant = torch.ones(3)
    return {
        "complex": (complex_x * complex_x.conj()).abs().sum(),
        "embedding": embedding(torch.tensor([1, 2])).sum(),
        "sparse": torch.sparse.mm(sparse, x.unsqueeze(1)).sum(),
        "csr": (sparse.to_sparse_csr() @ x.unsqueeze(1)).sum(),
        "copy slices": base.exp().sum(),
        "double backward": (gradient**2).sum(),
        "zero size": (x[:0] * 2).sum(),
        "bf16": (x.bfloat16() * 2).float().sum(),
        "meta": (torch.ones(2, device="meta", requires_grad=True) * 2).exp(),
        "nested": (nested * 2).sin(),
        "frozen": (x.detach().requires_grad_() * constant.clone()).sum(),
        "subclass": nn.Parameter(torch.ones(2)).as_subclass(Loud).sin(),
    }


class Loud(torch.Tensor):
    """Counts every torch function that touches it."""

    seen = 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and go on."""
        cls.seen += 1
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_strange_tensors_break_nothing() -> None:
    """Each is recorded, nothing is unreadable, and a subclass does not even notice."""
    for name, output in strange_outputs().items():
        before = Loud.seen
        graph = capture_graph(output)
        unreadable = [v.name for n in graph.nodes for v in n.saved if v.status == "unreadable"]

        assert (name, []) == (name, unreadable)
        assert Loud.seen == before
        assert graph.nodes


def test_inside_a_functorch_transform() -> None:
    """Wrapped tensors have no memory to count, and are recorded all the same."""
    graphs: list[Graph] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        y = x.sin().exp().sum()
        graphs.append(capture_graph(y))
        return y

    torch.func.grad(look)(torch.ones(3))

    assert "ExpBackward0" in {node.name for node in graphs[0].nodes}


def test_a_custom_function_inside_a_functorch_transform_is_not_compiled_code() -> None:
    """The transform makes a Function of its own for each level."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2

    graphs: list[Graph] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        y = Double.apply(x).sum()
        graphs.append(capture_graph(y))
        return cast("torch.Tensor", y)

    torch.func.grad(look)(torch.ones(3))

    assert [node.kind for node in graphs[0].nodes if node.name.startswith("Double")] == ["custom"]


def test_without_the_catalogue_a_graph_is_recorded_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose sources cannot be read costs the argument names, and says so."""

    def fail() -> None:
        raise KeyError("derivatives")

    monkeypatch.setattr("gradinspect.recording.capture.load_catalog", fail)
    graph = capture_graph(torch.ones(2, requires_grad=True).exp())

    assert [node.kind for node in graph.nodes] == ["generated", "accumulate_grad"]
    assert graph.arguments == {}
    assert "derivatives" in graph.warnings[0]


def test_zero_and_minus_zero_are_different_values() -> None:
    """Equal keys of a table, and yet not the same number."""
    x = torch.ones(2, requires_grad=True)
    graph = capture_graph((nn.functional.leaky_relu(x, 0.0) + nn.functional.leaky_relu(x, -0.0)).sum())
    slopes = saved_of(graph, "LeakyReluBackward0", "_saved_negative_slope")

    assert sorted(str(slope.value) for slope in slopes) == ["-0.0", "0.0"]


def test_values_that_are_equal_and_of_different_types_are_different() -> None:
    """A power of 2 and of 2.0, and of True; each alone, and beside another value."""
    x = torch.ones(2, requires_grad=True)
    graph = capture_graph((x.pow(2) + x.pow(2.0) + x.pow(True)).sum())
    exponents = saved_of(graph, "PowBackward0", "_saved_exponent")
    sums = capture_graph((torch.add(x, x, alpha=1) + torch.add(x, x, alpha=1.0)).sum())
    weights = saved_of(sums, "AddBackward0", "_saved_alpha")

    assert sorted(repr(one.value) for one in exponents) == ["2", "2.0", "True"]
    assert sorted(repr(one.value) for one in weights) == ["1", "1", "1.0"]


def test_a_saved_view_is_followed_to_its_maker_unless_its_base_was_written_to() -> None:
    """Then torch would make a node to answer, so it is not asked."""
    base = torch.ones(4, requires_grad=True) * 3

    def squared(view: torch.Tensor) -> torch.Tensor:  # whose name is gone when the graph is recorded
        return view * view

    y = squared(base[:2]).sum()
    graph = capture_graph(y)
    before, _ = saved_of(graph, "MulBackward0", "_saved_self")
    base.mul_(2)
    after, _ = saved_of(capture_graph(y), "MulBackward0", "_saved_self")

    assert before.tensor is not None
    assert before.tensor.made_by is not None
    assert graph.nodes[before.tensor.made_by].name == "SliceBackward0"
    assert after.tensor is not None
    assert (before.origin, after.origin) == ("activation", "activation")
    assert (after.status, after.tensor.made_by) == ("modified", None)


class KeepsAnotherToo(torch.autograd.Function):
    """Saves a tensor that is neither input nor output, and its output."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Double."""
        y = x * 2
        ctx.save_for_backward(other, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Double."""
        return grad * 2, None


def test_of_a_saved_list_only_what_was_written_is_modified() -> None:
    """The list's error speaks of its first stale tensor; an output has an error of its own, which says nothing."""
    other = torch.ones(2)
    y = KeepsAnotherToo.apply(torch.ones(2, requires_grad=True), other)
    other.add_(1)
    saved = saved_of(capture_graph(y.sum()), "KeepsAnotherTooBackward", "saved_tensors")

    assert [value.status for value in saved] == ["modified", "live"]


def test_a_storage_with_a_name_keeps_its_origin() -> None:
    """Whatever a view of it is to the node that keeps it."""
    x = torch.ones(4, requires_grad=True)
    view = x.view(2, 2)
    graph = capture_graph((view * view).sum() + (x * x).sum())

    assert [(storage.name, storage.origin) for storage in graph.storages] == [("x", "input")]


def test_a_storage_without_a_name_has_the_most_telling_origin() -> None:
    """What one node keeps as its output, and another as an activation, is an activation."""
    x = torch.ones(3, requires_grad=True)

    def squared(y: torch.Tensor) -> torch.Tensor:  # whose name is gone when the graph is recorded
        return y * y

    graph = capture_graph(squared(x.exp()).sum())

    assert [(storage.name, storage.origin) for storage in graph.storages] == [(None, "activation"), ("x", "input")]


@pytest.fixture
def without_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a torch that does not let us read a saved tensor without running its hook."""
    for module in ("recording.values.saved", "torch_api.saved"):
        monkeypatch.setattr(f"gradinspect.{module}.can_read_raw", lambda: False)


@pytest.mark.usefixtures("without_raw")
def test_where_no_hook_can_be_a_tensor_is_read_as_the_engine_does() -> None:
    """What the recorder has seen being made without hooks; everything else is unreadable, as a hook might run."""
    x = torch.ones(2, requires_grad=True)
    before = x.exp()
    with Recorder() as recorder:
        y = before.exp()
        with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
            hooked = y.exp()
        z = KeepsBoth.apply(hooked, 2.0)
    graph = capture_graph(z, recorder=recorder)
    statuses = [value.status for value in saved_of(graph, "ExpBackward0", "_saved_result")]
    of_list = [value.status for value in saved_of(graph, "KeepsBothBackward", "saved_tensors")]

    assert statuses == ["unreadable", "live", "unreadable"]
    assert of_list == ["live", "live"]
    assert [value.status for value in saved_of(capture_graph(y), "ExpBackward0", "_saved_result")] == ["unreadable"] * 2


@pytest.mark.usefixtures("without_raw")
def test_what_the_engine_refuses_is_recorded_as_its_error_says() -> None:
    """Both versions and the shape of what was written to, or that it was freed; a value that is none is none."""
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    with Recorder() as recorder:
        y = x.exp()
        y.add_(1)
        loss = torch.nn.functional.linear(y.detach(), x).sum() + y.sum()
        gone = x.sin().sum()
    gone.backward()
    (stale,) = saved_of(capture_graph(loss, recorder=recorder), "ExpBackward0", "_saved_result")
    (freed,) = saved_of(capture_graph(gone, recorder=recorder), "SinBackward0", "_saved_self")

    assert (stale.status, freed.status) == ("modified", "freed")
    assert stale.tensor is not None
    assert (stale.tensor.version, stale.tensor.expected_version) == (1, 0)
    assert (stale.tensor.info.shape, stale.tensor.info.dtype, stale.tensor.num_bytes) == ((2, 3), "float64", 48)


def test_a_recorded_tensor_is_fetched_again_from_its_node() -> None:
    """The same memory, of an element of a list too; nothing where it was freed or is behind hooks."""
    y = KeepsBoth.apply(torch.ones(2, requires_grad=True) * 1, 2.5)
    with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        hooked = y.exp()
    values = {value.index: value for value in saved_of(capture_graph(y), "KeepsBothBackward", "saved_tensors")}
    (packed,) = saved_of(capture_graph(hooked), "ExpBackward0", "_saved_result")
    fetched = raw_tensor(y.grad_fn, values[1])

    assert fetched is not None
    assert fetched.data_ptr() == y.data_ptr()
    assert raw_tensor(hooked.grad_fn, packed) is None
    assert raw_tensor(hooked.grad_fn, replace(packed, status="live")) is None
    assert raw_tensor(y.grad_fn, replace(values[1], status="freed")) is None
    assert raw_tensor(y.grad_fn, replace(values[1], index=7)) is None


def test_a_view_has_its_strides_and_offset() -> None:
    """A contiguous tensor has none."""
    x = torch.arange(6.0).view(2, 3).requires_grad_()

    def squared(y: torch.Tensor) -> torch.Tensor:  # whose name is gone when the graph is recorded
        return y * y

    graph = capture_graph((squared(x.t()[1:]).sum(), squared(x).sum()))
    tensors = {value.tensor.strides: value.tensor for value in saved_of(graph, "MulBackward0", "_saved_self")
               if value.tensor is not None}  # fmt: skip

    assert tensors.keys() == {None, (1, 3)}
    assert (tensors[1, 3].storage_offset, tensors[1, 3].num_bytes, tensors[None].storage_offset) == (1, 16, 0)


def test_what_a_model_makes_for_itself_is_no_input() -> None:
    """A mask that it draws is an activation; its argument, what has a name, and a leaf outside of models are inputs."""

    class Masks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.full((2,), 2.0) * x.detach()

    def run(recorder: Recorder) -> Graph:
        given = torch.ones(2, requires_grad=True)
        with recorder:
            made = Masks()(given)
            outside = made * torch.full((2,), 3.0)
        return capture_graph(outside, recorder=recorder)

    graph = run(Recorder())
    origins = [value.origin for value in saved_of(graph, "MulBackward0", "_saved_other") if value.status == "live"]

    assert origins == ["input", "input", "activation"]


class Stores(torch.autograd.Function):
    """Stores tensors and numbers on its context."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Double."""
        ctx.first, ctx.factor = torch.ones(3), 2.0
        ctx.parts, ctx.table = [torch.ones(1), 3, torch.ones(2)], {"a": torch.ones(4)}
        ctx.sparse = torch.eye(2).to_sparse()
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Double."""
        return grad * 2


def test_all_that_is_stored_on_a_context_is_recorded() -> None:
    """Also after a tensor; those in containers have their place, and a sparse one the memory that it is made of."""
    graph = capture_graph(Stores.apply(torch.ones(2, requires_grad=True)))
    values = [value for value in graph.nodes[0].saved if value.name.startswith("ctx.")]
    shapes = [(one.name, one.index, one.tensor.info.shape) for one in values if one.tensor is not None]
    held = {one.name: len(one.held_storages) for one in values if one.kind == "tensor"}

    assert shapes == [
        ("ctx.first", None, (3,)), ("ctx.parts", 0, (1,)), ("ctx.parts", 1, (2,)), ("ctx.table", 0, (4,)),
        ("ctx.sparse", None, (2, 2)),
    ]  # fmt: skip
    assert {one.name for one in values} == {"ctx.first", "ctx.factor", "ctx.parts", "ctx.table", "ctx.sparse"}
    assert held == {"ctx.first": 0, "ctx.parts": 0, "ctx.table": 0, "ctx.sparse": 2}
    assert {one.origin for one in values if one.kind == "tensor"} == {"input"}
    assert {one.status for one in values if one.kind == "tensor"} == {"live"}


class StoresInput(torch.autograd.Function):
    """Stores its input, and a result, on its context."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Double."""
        ctx.given, ctx.made = x, x * 3
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Double."""
        return grad * 2


def test_a_tensor_on_a_context_has_the_name_of_its_memory() -> None:
    """That of a parameter, with its kind, or of a variable; what forward has made has none."""
    model, x = nn.Linear(2, 2, bias=False), torch.ones(2, requires_grad=True)
    graph = capture_graph((StoresInput.apply(model.weight) + StoresInput.apply(x)).sum(), model=model)
    origins = {(one.name, one.origin, one.origin_name) for node in graph.nodes for one in node.saved if one.tensor}

    assert origins == {
        ("ctx.given", "parameter", "weight"), ("ctx.given", "input", "x"), ("ctx.made", "input", None),
    }  # fmt: skip


def test_equal_numbers_of_other_types_are_told_apart() -> None:
    """Nodes of one class share what is recorded of equal attributes, 2 and 2.0 are not."""
    x = torch.ones(3, 3, requires_grad=True)
    graph = capture_graph(torch.addmm(x, x, x, beta=2, alpha=2) + torch.addmm(x, x, x, beta=2.0, alpha=2.0))

    assert {(value.kind, str(value.value)) for value in saved_of(graph, "AddmmBackward0", "_saved_alpha")} == {
        ("int", "2"), ("float", "2.0"),
    }  # fmt: skip
