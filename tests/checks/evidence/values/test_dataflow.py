"""Which calls are noted, and what of torch that rests on."""

import copy
import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, DetachCause, Read
from gradinspect.recording.recorder import Recorder

Made = Callable[[torch.Tensor], object]


@pytest.fixture
def flow() -> Iterator[Dataflow]:
    """Note the calls of a test."""
    with Recorder() as recorder:
        noted = Dataflow(recorder)
        with TorchCallLog(recorder, noted):
            yield noted
        noted.close()


def without_grad(w: torch.Tensor) -> torch.Tensor:
    """Compute under no_grad."""
    with torch.no_grad():
        return w.exp()


CUTS: list[tuple[Made, str, DetachCause]] = [
    (lambda w: w.detach(), "detach", "detach"),
    (lambda w: (w * 1).detach_(), "detach_", "detach"),
    (lambda w: w.data, "data", "data"),
    (lambda w: torch.tensor([w[0], w[1]]), "__getitem__", None),  # type: ignore[list-item]
    (lambda w: w.new_tensor(w), "new_tensor", "copy"),
    (lambda w: w.argmax(), "argmax", "integer"),
    (lambda w: w > 0, "gt", "integer"),
    (lambda w: w.long(), "long", "integer"),
    (without_grad, "exp", "grad_off"),
    (lambda w: w.sum().item(), "item", "python"),
    (lambda w: w.tolist(), "tolist", "python"),
    (lambda w: torch.Tensor([w[0]]), "__float__", "python"),
    (lambda w: w.detach().numpy(), "numpy", "python"),
    (lambda w: torch.autograd.grad((w * w).sum(), w), "grad", "gradient"),
]


@pytest.mark.parametrize(("make", "name", "cause"), CUTS, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_call_that_loses_the_graph_says_how(flow: Dataflow, make: Made, name: str, cause: DetachCause | None) -> None:
    """By its name, its dtype, or the grad mode."""
    made = make(torch.ones(3, requires_grad=True))

    assert made is not None
    assert flow.calls[-1 - (name == "__getitem__")].name == name
    assert flow.calls[-1 - (name == "__getitem__")].cause == cause
    assert flow.has_integers == (cause == "integer")


def test_what_keeps_the_graph_has_no_manner(flow: Dataflow) -> None:
    """Operators, in place too; attributes that are no values are not noted at all."""
    w = torch.ones(3, requires_grad=True)
    y = torch.zeros(3)
    y[0] = w[0]
    y += w
    assert y.shape == w.shape

    assert [call.name for call in flow.calls] == ["ones", "zeros", "__getitem__", "__setitem__", "add_"]
    assert {call.cause for call in flow.calls} == {None}
    assert [call.is_write for call in flow.calls] == [False, False, False, True, True]


def test_a_result_is_read_as_the_call_that_made_it(flow: Dataflow) -> None:
    """A leaf is a leaf, each with its own number; what came from elsewhere is from outside."""
    w, v, x = torch.ones(3, requires_grad=True), nn.Parameter(torch.ones(3)), torch.Tensor([1.0, 1.0, 1.0])
    y = w * x
    z = y + v
    first, second = flow.calls[-2].reads, flow.calls[-1].reads

    assert [(read.leaf != NO_LEAF, read.is_live) for read in first] == [(True, True), (False, False)]
    assert first[1].call == OUTSIDE
    assert second[0] == flow.read(y) == Read(len(flow.calls) - 2, NO_LEAF, is_live=True)
    assert second[1].leaf not in (first[0].leaf, NO_LEAF)
    assert flow.read(z).leads_back


def test_what_comes_from_numpy_is_known_where_it_is_read(flow: Dataflow) -> None:
    """torch.from_numpy is no torch function, so its call is recorded once, before the first that reads its result."""
    x = torch.from_numpy(torch.ones(3).numpy() * 2)
    for _ in range(2):
        x.exp()

    assert [call.name for call in flow.calls][-3:] == ["from_numpy", "exp", "exp"]
    assert [call.reads[0].call for call in flow.calls[-2:]] == [len(flow.calls) - 3] * 2


def test_each_result_of_a_broadcast_comes_from_one_argument(flow: Dataflow) -> None:
    """What is computed from the deviation of a distribution does not depend on its mean."""
    mean, deviation = (torch.ones(shape, requires_grad=True) for shape in ((2, 1), (3,)))
    first, second = torch.broadcast_tensors(mean * 1, deviation.exp())
    made = [flow.calls[flow.read(one).call] for one in (first, second)]

    assert [flow.calls[one.reads[0].call].name.strip("_") for one in made] == ["mul", "exp"]
    assert [len(one.reads) for one in made] == [1, 1]


def test_a_write_through_another_view_is_seen(flow: Dataflow) -> None:
    """Into the same memory: a view, .data, a parameter that is given another .data."""
    w = torch.ones(2, requires_grad=True)
    y = torch.zeros(4)
    y[:2].copy_(w)
    reader = y.sum()
    parameter = nn.Parameter(torch.zeros(2))
    parameter.data = w * 2
    second = parameter.sum()
    calls = flow.calls
    written, assigned = ([calls[read.call] for read in flow.calls[place].reads] for place in (-5, -1))

    assert reader.requires_grad
    assert second.requires_grad
    assert "copy_" in [call.name for call in written]
    assert [call.name for call in assigned] == ["data"]
    assert assigned[0].is_write


def test_a_tensor_is_read_as_it_was_before_it_was_written(flow: Dataflow) -> None:
    """A constant to which something learned is added was a constant until then."""
    w = torch.ones(3, requires_grad=True)
    constant = w.detach()
    constant += w
    before, added = flow.calls[-1].reads
    result = w * 2
    result.detach_()

    assert (flow.calls[before.call].name, before.is_live, added.is_live) == ("detach", False, True)
    assert (flow.calls[-1].name, flow.calls[-1].cause) == ("detach_", "detach")
    assert flow.read(constant).leads_back


def test_the_same_memory_in_a_new_object_is_known(flow: Dataflow) -> None:
    """A parameter made of a result, after the result itself is gone."""
    h = torch.ones(3, requires_grad=True).exp()
    number = flow.read(h).call
    h = nn.Parameter(h)
    read = flow.read(h)

    assert read.call == number
    assert read.leaf != NO_LEAF
    assert not read.leads_back


def test_grad_mode_is_known_with_the_line_that_switched_it(flow: Dataflow) -> None:
    """The scope around each call; none where they are enabled."""
    w = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        w.exp()
        with torch.no_grad():
            w.exp()
    w.exp()
    outer, inner, after = range(len(flow.calls) - 3, len(flow.calls))

    assert [flow.calls[number].is_off for number in (outer, inner, after)] == [True, True, False]
    assert flow.switched_off_at(outer) is not None
    assert flow.switched_off_at(inner) not in (None, flow.switched_off_at(outer))
    assert flow.switched_off_at(after) is None


def test_a_custom_function_is_no_scope_of_the_program(flow: Dataflow) -> None:
    """Grad mode is off inside its forward, and its result requires grad afterwards."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    y = Double.apply(torch.ones(3, requires_grad=True))

    assert flow.calls[-1].cause == "function"
    assert flow.read(y) == Read(len(flow.calls) - 1, NO_LEAF, is_live=True)


def test_nothing_is_kept_alive(flow: Dataflow) -> None:
    """Neither tensors nor their memory."""
    x = torch.ones(1000, requires_grad=True)
    y = (x * 2).exp()
    objects = [weakref.ref(x), weakref.ref(y)]
    storage = torch.multiprocessing.reductions.StorageWeakRef(y.untyped_storage())
    assert len(flow.calls) == 3
    del x, y
    gc.collect()

    assert [one() for one in objects] == [None] * 2
    assert storage.expired()


def test_a_missing_grad_is_told(flow: Dataflow) -> None:
    """Of leaves and results; one that is there is a gradient without a graph."""
    missing: list[torch.Tensor] = []
    flow.on_missing_grad = lambda tensor, _read, _frame: missing.append(tensor)
    w = torch.ones(3, requires_grad=True)
    assert w.grad is None
    w.sum().backward()
    gradient = w.grad
    assert gradient is not None

    assert [id(one) for one in missing] == [id(w)]
    assert flow.calls[flow.read(gradient).call].cause == "gradient"


def test_a_loop_over_many_tensors_does_not_mix_addresses(flow: Dataflow) -> None:
    """An address that is used again is another tensor."""
    w = torch.ones(3, requires_grad=True)
    for _ in range(200):
        y = w.exp()
        assert flow.read(y).call == len(flow.calls) - 1
        del y
        fresh = torch.from_numpy(torch.zeros(3).numpy().copy())
        assert flow.read(fresh).call == OUTSIDE


def test_grad_mode_that_no_scope_switches_has_the_line_of_the_call(flow: Dataflow) -> None:
    """Also for calls that write, or whose results leave torch; not before it, nor when it is on again."""
    w = torch.ones(3, requires_grad=True)
    numbers, x = [len(flow.calls)], torch.zeros(3)
    w.tolist()
    torch.set_grad_enabled(False)
    for call in (w.tolist, lambda: x.add_(w), w.exp):
        numbers.append(len(flow.calls))
        call()
    torch.set_grad_enabled(False)
    numbers.append(len(flow.calls))
    w.tolist()
    torch.set_grad_enabled(True)
    numbers.append(len(flow.calls))
    w.tolist()
    before, *off, after = map(flow.switched_off_at, numbers)

    assert (before, after) == (None, None)
    assert None not in off
    assert len(set(off)) == 1
    assert [flow.calls[number].is_off for number in numbers[1:-1]] == [True] * 4
    assert [flow.checkpointed_at(number) for number in numbers[1:-1]] == off


def test_only_tensors_that_require_grad_miss_one(flow: Dataflow) -> None:
    """And only if somebody wants to know."""
    told: list[torch.Tensor] = []
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    assert w.grad is None
    number = len(flow.calls)
    flow.on_missing_grad = lambda tensor, _read, _frame: told.append(tensor)
    assert x.grad is None
    assert told == []
    assert w.grad is None

    assert [id(one) for one in told] == [id(w)]
    assert len(flow.calls) == number


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_a_gradient_with_a_graph_is_no_call(flow: Dataflow) -> None:
    """Its own node has made it; without one it may still be, if backward was called to make graphs."""
    w = torch.ones(3, requires_grad=True)
    (w * w * w).sum().backward(create_graph=True)
    flow.has_grad_with_graph = True
    number = len(flow.calls)
    gradient = w.grad
    assert gradient is not None
    assert gradient.requires_grad
    assert len(flow.calls) == number
    w.grad = None
    w.sum().backward()
    constant = w.grad

    assert constant is not None
    assert flow.calls[flow.read(constant).call].cause == "unknown"


@pytest.mark.parametrize(
    ("call", "cause", "wrt"),
    [
        (lambda w, v: torch.autograd.grad((w * v).sum(), w), "gradient", 1),
        (lambda w, v: torch.autograd.grad(outputs=(w * v).sum(), inputs=(w, v)), "gradient", 2),
        (lambda w, v: torch.autograd.grad(w.sum(), [w], None, None, True), "unknown", 1),
        (lambda w, v: torch.autograd.grad(w.sum(), w, create_graph=True), "unknown", 1),
        (lambda w, v: torch.autograd.grad((w * v).sum(), w, create_graph=True), None, 1),
    ],
)
def test_gradients_are_read_of_outputs_with_respect_to_inputs(
    flow: Dataflow, call: Made, cause: DetachCause | None, wrt: int
) -> None:
    """However they are passed; with create_graph, one without a graph is a constant."""
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    result = call(w, v)  # type: ignore[call-arg]
    found = flow.calls[-1]

    assert result is not None
    assert (found.name, found.cause, len(found.reads), len(found.wrt)) == ("grad", cause, 1, wrt)
    assert flow.calls[found.reads[0].call].name == "sum"
    assert all(read.leaf != NO_LEAF for read in found.wrt)


def test_a_result_that_is_given_is_written(flow: Dataflow) -> None:
    """With out=; what returns its input has made nothing."""
    into, x = torch.zeros(3), torch.ones(3, requires_grad=True)
    number = len(flow.calls)
    y = x.contiguous()
    assert y is x
    assert len(flow.calls) == number
    with torch.no_grad():
        torch.mul(x, 2, out=into)

    assert flow.read(into).call == number == len(flow.calls) - 1
    assert flow.calls[number].cause == "grad_off"


def test_each_read_counts_once(flow: Dataflow) -> None:
    """Of several inputs of one call."""
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    both = [torch.mul(w, w), torch.stack([w, x, w, x]), torch.add(w, x), torch.cat([x, x])]

    assert [len(flow.calls[flow.read(one).call].reads) for one in both] == [1, 2, 2, 1]


@pytest.mark.parametrize("make", [lambda w: w.new_tensor(0.0), lambda w: w.new([1.0])])
def test_what_gives_only_its_type_is_not_read(flow: Dataflow, make: Made) -> None:
    """A number in a new tensor of the same type has no value of the old one."""
    assert isinstance(make(torch.ones(3, requires_grad=True)), torch.Tensor)
    assert (flow.calls[-1].reads, flow.calls[-1].cause) == ((), None)


def test_values_and_indices_come_from_one_call(flow: Dataflow) -> None:
    """The indices have no gradient, the values have."""
    values, indices = torch.ones(3, requires_grad=True).max(dim=0)
    call = flow.calls[-1]

    assert (call.name, call.cause) == ("max", "integer")
    assert flow.read(values) == Read(len(flow.calls) - 1, NO_LEAF, is_live=True)
    assert flow.read(indices) == Read(len(flow.calls) - 1, NO_LEAF, is_live=False)
    assert flow.has_integers


def test_a_parameter_that_is_frozen_or_made_to_learn(flow: Dataflow) -> None:
    """With the line; one that requires grad again is not frozen."""
    w, made = nn.Parameter(torch.ones(3)), torch.ones(3).exp()
    w.requires_grad_(False)
    assert set(flow.frozen) == {id(w)}
    w.requires_grad_(True)
    assert flow.frozen == {}
    assert flow.forced == {}
    made.requires_grad_()

    assert list(flow.forced) == [flow.read(made).leaf]
    assert None not in flow.forced.values()


def test_nothing_is_noted_in_a_pause_or_when_it_is_full(flow: Dataflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is exact; half of it is told before."""
    x = torch.ones(3)
    flow.num_pauses = 1
    x.exp()
    flow.num_pauses = 0
    assert len(flow.calls) == 1
    monkeypatch.setattr("gradinspect.checks.evidence.values.dataflow.MAX_CALLS", 7)
    w = torch.ones(3, requires_grad=True)
    halves, fulls = [], []
    for _ in range(6):
        w.exp()
        halves.append(flow.is_half_full)
        fulls.append(flow.is_full)

    assert halves == [False, True, True, True, True, True]
    assert fulls == [False, False, False, False, True, True]
    assert len(flow.calls) == 7


def test_calls_before_a_leaf_is_read_do_not_fill_it(flow: Dataflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older ones are forgotten, however many there are; from then on all are recorded."""
    monkeypatch.setattr("gradinspect.checks.evidence.values.dataflow.MAX_CALLS", 10)
    monkeypatch.setattr(flow, "_limit", 4)
    monkeypatch.setattr("gradinspect.checks.evidence.values.dataflow.MOST_PREPARING", 4)
    first = torch.ones(3)
    last = first
    for _ in range(30):
        last = last.exp()
    w = torch.ones(3, requires_grad=True)
    prepared = len(flow.calls)
    product = last * w
    (product * first).sum()

    assert prepared == 32
    assert not flow.is_full
    assert all(not call.op for call in flow.calls[: prepared - 4])
    assert flow.read(last) == Read(prepared - 2)
    assert flow.read(first) == Read(OUTSIDE)
    assert [call.name for call in flow.calls[prepared:]] == ["mul", "mul", "sum"]
    assert [read.call for read in flow.calls[prepared].reads] == [prepared - 2, prepared - 1]
    for _ in range(20):
        w.exp()
    assert flow.is_full


def test_a_write_into_what_is_learned_elsewhere_changes_what_is_read(flow: Dataflow) -> None:
    """First the write to the memory by another call, then what made the tensor; its own write is read alone."""
    w, y = torch.ones(2, requires_grad=True), torch.zeros(4)
    part = y[:2]
    made = len(flow.calls) - 1
    y.add_(1)
    part.exp()
    first = [read.call for read in flow.calls[-1].reads]
    part.copy_(w)
    copied = len(flow.calls) - 1
    part.exp()
    own = [read.call for read in flow.calls[-1].reads]
    y.exp()
    whole = [read.call for read in flow.calls[-1].reads]

    assert first == [made + 1, made]
    assert own == [copied]
    assert whole == [copied, made + 1]
    assert [read.call for read in flow.calls[copied].reads[:1]] == [made]
    assert flow.calls[copied].reads[1].leaf != NO_LEAF


def test_only_filling_says_where_a_value_comes_from_that_was_not_known(flow: Dataflow) -> None:
    """Other calls without another tensor leave something of what was there."""
    x = torch.Tensor([1.0])
    number = len(flow.calls)
    x.mul_(2)
    assert len(flow.calls) == number
    x.zero_()

    assert [call.name for call in flow.calls[number:]] == ["zero_"]
    assert flow.read(torch.autograd.Variable(x)).call == number


def test_what_comes_from_numpy_is_known_whatever_reads_it(flow: Dataflow) -> None:
    """A call that writes it elsewhere, or takes its numbers out of torch."""
    into = torch.zeros(3)
    for read in (into.copy_, torch.Tensor.tolist):
        x = torch.from_numpy(torch.ones(3).numpy() * 2)
        read(x)
        names = [call.name for call in flow.calls][-2:]

        assert names == ["from_numpy", "copy_" if read == into.copy_ else "tolist"]
        assert flow.read(x).call == len(flow.calls) - 2


class Own(torch.Tensor):
    """A tensor of the program's own kind."""


def test_results_of_other_kinds_of_tensors_are_no_leaves(flow: Dataflow) -> None:
    """Only what no operator made is one."""
    w = torch.ones(3).as_subclass(Own).requires_grad_()
    y = w * 2

    assert flow.read(w).leaf != NO_LEAF
    assert flow.read(y).leaf == NO_LEAF
    assert type(y) is Own


def test_weights_that_are_loaded_or_copied_have_lost_their_graph(flow: Dataflow) -> None:
    """By torch's own functions, which the program calls."""
    model, w = nn.Linear(3, 1, bias=False), torch.ones(1, 3, requires_grad=True)
    model.load_state_dict({"weight": w * 2})
    loaded = [call.cause for call in flow.calls if call.name == "copy_"]
    number = len(flow.calls)
    copied = copy.deepcopy(w)
    causes = {call.cause for call in flow.calls[number:]} - {None}

    assert loaded == ["loaded"]
    assert copied.requires_grad
    assert causes <= {"deepcopy"}


def test_memory_is_known_for_as_long_as_it_is_there(flow: Dataflow) -> None:
    """Its key is then given to other memory, and what was noted would be taken for that."""
    kept = torch.ones(3).exp()
    shown = kept.view(3, 1)
    memory = flow._memory_of(kept)
    del kept

    assert memory is not None
    assert flow.calls[memory.made].name == "exp"
    assert flow._memory_of(shown) is memory
    del shown
    assert memory.storage() is None


def test_no_memory_is_known_after_closing(flow: Dataflow) -> None:
    """The record of calls stays."""
    kept = torch.ones(3).exp()
    flow.close()

    assert kept is not None
    assert not flow._memory
    assert flow.calls


def test_each_write_to_the_same_memory_is_read(flow: Dataflow) -> None:
    """Also by a tensor that was read before, after an earlier write."""
    y = torch.zeros(4)
    part = y[:2]
    read = []
    for write in (y.add_, y.mul_):
        write(2)
        part.exp()
        read.append([flow.calls[one.call].name for one in flow.calls[-1].reads])

    assert read == [["add_", "__getitem__"], ["mul_", "__getitem__"]]
