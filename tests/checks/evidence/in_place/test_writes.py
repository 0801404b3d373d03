"""Writes to memory, noted while operators run."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from gradinspect.checks.evidence.in_place import step_writes, writes
from gradinspect.checks.evidence.in_place.writes import SeenWrite, WriteLog
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import storage_key

MASK = torch.tensor([True, False, True])


def seen(write: Callable[[torch.Tensor], object], x: torch.Tensor | None = None) -> list[SeenWrite]:
    """Write to a tensor in some way, and return the writes to its memory that were noted."""
    tensor = torch.ones(3) if x is None else x
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        write(tensor)
    return log.writes.since(storage_key(tensor) or 0, -1)


def increment(x: torch.Tensor) -> None:
    """Write by an augmented assignment."""
    x += 1


def divide(x: torch.Tensor) -> None:
    """Write by another one."""
    x /= 2


def assign(index: Any, value: Any = 0.0) -> Callable[[torch.Tensor], None]:
    """Assign to a part of a tensor."""

    def write(x: torch.Tensor) -> None:
        x[index] = value

    return write


@pytest.mark.parametrize(
    ("write", "op"),
    [
        (lambda x: x.mul_(2), "mul_"),
        (increment, "add_"),
        (divide, "div_"),
        (assign(0), "item assignment"),
        (assign(slice(2)), "item assignment"),
        (assign(MASK), "masked assignment"),
        (assign(torch.tensor([0, 1])), "indexed assignment"),
        (lambda x: functional.relu(x, inplace=True), "relu_"),
        (lambda x: torch.add(torch.ones(3), 1, out=x), "add"),
        (lambda x: x[1:].zero_(), "zero_"),
        (lambda x: x.view(3, 1).t().fill_(2), "fill_"),
        (lambda x: x.apply_(lambda value: value + 1), "apply_"),
    ],
)
def test_an_operator_that_writes_is_named_as_torch_does(write: Callable[[torch.Tensor], object], op: str) -> None:
    """To the tensor itself, a view of it, or an output that is given."""
    assert [one.op for one in seen(write)] == [op]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x + 1,
        lambda x: x.clone().add_(1),
        functional.relu,
        lambda x: torch.ones(3).add_(x),
        lambda x: functional.batch_norm(torch.ones(2, 3), x, torch.ones(3), training=False),
    ],
)
def test_what_only_reads_is_no_write(write: Callable[[torch.Tensor], object]) -> None:
    """Nor are writes to other memory."""
    assert seen(write) == []


def test_statistics_are_written_silently_in_training() -> None:
    """By batch norm, although their version may stay as it is."""
    (one,) = seen(lambda x: functional.batch_norm(torch.ones(2, 3), x, torch.ones(3), training=True))

    assert one.op == "batch_norm"
    assert not one.makes_node


def test_a_write_that_autograd_records_makes_a_node() -> None:
    """Its versions and its time are known."""
    leaf = torch.ones(3, requires_grad=True)
    made = leaf * 2
    first, second = seen(lambda x: (x.mul_(2), x.detach().add_(1)), made)

    assert (first.versions, second.versions) == ((0, 1), (1, 2))
    assert (first.makes_node, second.makes_node) == (True, False)
    assert first.end == first.start + 1 == second.start


def test_writes_after_a_time_and_between_versions() -> None:
    """Those of one memory; by versions only if no other memory fits."""
    x, y = torch.ones(3), torch.ones(3)
    recorder = Recorder()
    log = WriteLog(recorder)

    def note(tensor: torch.Tensor, op: str, start: int, end: int) -> None:
        before = tensor._version
        tensor.add_(1)
        log.note(op, start, end, None, [(tensor, before, None)])

    for number, op in enumerate("abc"):
        note(x, op, 2 * number, 2 * number + 1)
    keys = storage_key(x) or 0, storage_key(y) or 0

    assert [[one.op for one in log.since(keys[0], clock)] for clock in (0, 1, 2, 3, 4, 5)] == [
        ["a", "b", "c"], ["b", "c"], ["b", "c"], ["c"], ["c"], [],
    ]  # fmt: skip
    assert [log.last_end(key) for key in keys] == [5, -1]
    assert [one.op for one in log.between(0, (0, 2))] == ["a", "b"]
    assert [one.op for one in log.between(0, (1, 2))] == ["b"]
    assert [one.op for one in log.between(0, (0, 4))] == []
    last = log.last_by_program(x)
    assert last is not None
    assert (last.op, log.last_by_program(y)) == ("c", None)
    note(y, "d", 9, 10)
    assert log.between(0, (0, 1)) == []  # either of two
    assert [one.op for one in log.between(0, (0, 2))] == ["a", "b"]


def test_the_older_writes_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """When there are too many."""
    monkeypatch.setattr(writes, "MAX_WRITES", 3)
    log, tensors = WriteLog(Recorder()), [torch.ones(1) for _ in range(4)]
    for tensor in tensors:
        log.note("add_", 0, 1, None, [(tensor, 0, None)])

    assert [bool(log.since(storage_key(tensor) or 0, -1)) for tensor in tensors] == [False, False, False, True]
    log.note("add_", 0, 1, None, [(tensors[3], 0, None)] * 2)
    assert len(log.since(storage_key(tensors[3]) or 0, -1)) == 3


def test_what_was_written_to_memory_that_is_gone_is_forgotten() -> None:
    """Its address is given to other memory, which nobody has written to."""
    log = WriteLog(Recorder())

    def written() -> int:
        x = torch.ones(2)
        x.add_(1)
        log.note("add_", 0, 1, None, [(x, 0, None)])
        return storage_key(x) or 0

    gone = [written() for _ in range(20)]
    others = [torch.ones(2) for _ in range(100)]
    again = [one for one in others if storage_key(one) in gone]

    assert again
    assert [log.since(storage_key(one) or 0, -1) for one in again] == [[]] * len(again)
    log.note("mul_", 0, 1, None, [(again[0], 0, None)])
    assert [one.op for one in log.since(storage_key(again[0]) or 0, -1)] == ["mul_"]


def test_an_optimizer_that_steps_is_named() -> None:
    """By the variable that holds it; what is written outside is the program's own."""
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log, torch.no_grad():
        weight.mul_(2)
        optimizer.step()
        weight.mul_(3)
        optimizer.step()
    found = log.writes.since(storage_key(weight) or 0, -1)
    own = log.writes.last_by_program(weight)

    assert [one.optimizer for one in found] == [None, "optimizer", None, "optimizer"]
    assert own is not None
    assert own is found[2]


def test_memory_that_data_gives_away_is_compared() -> None:
    """The write has what was there before it; other memory has none."""
    (shared,) = seen(lambda x: x.data.mul_(2))
    (plain,) = seen(lambda x: x.mul_(2))

    assert shared.content is not None
    assert plain.content is None


def test_a_log_that_begins_inside_a_step_does_no_harm() -> None:
    """It sees the end of a step of which it has not seen the beginning."""
    log = WriteLog(Recorder())

    class Late(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            log.__enter__()

    weight = torch.nn.Parameter(torch.ones(2))
    try:
        Late([weight], lr=0.1).step()
        log.note("add_", 0, 1, None, [(weight, 0, None)])
    finally:
        log.__exit__()

    assert [one.optimizer for one in log.since(storage_key(weight) or 0, -1)] == [None]


def test_only_memory_that_data_gives_away_is_read_before_a_write() -> None:
    """And what is known to be written silently, but only its part; nothing while no node could have saved it."""
    log, shared, other = WriteLog(Recorder()), torch.ones(2), torch.ones(2)
    torch.ones(1, requires_grad=True).exp()
    assert log.contents([shared, other], is_silent=False) == {}
    log.detached(shared)
    tensors = [other, shared, torch.eye(2).to_sparse()]

    assert list(log.contents(tensors, is_silent=False)) == [id(shared)]
    assert [len(data) for data in log.contents([shared], 1, is_silent=False).values()] == [4]
    assert list(log.contents(tensors, is_silent=True)) == [id(other), id(shared)]


def test_one_call_copies_no_more_than_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be let go at once is not copied."""
    monkeypatch.setattr(writes, "MAX_KEPT", 16)
    log, tensors = WriteLog(Recorder()), [torch.ones(2) for _ in range(3)]
    torch.ones(1, requires_grad=True).exp()

    assert list(log.contents(tensors, is_silent=True)) == [id(one) for one in tensors[:2]]


def test_what_has_no_ordinary_memory_is_not_noted() -> None:
    """Sparse tensors, and those of inference mode; the others of the same call are."""
    log, plain = WriteLog(Recorder()), torch.ones(2)
    with torch.inference_mode():
        inference = torch.ones(2)
    log.note("add_", 0, 1, None, [(torch.eye(2).to_sparse(), 0, None), (inference, 0, None), (plain, 0, None)])

    assert [one.op for one in log.since(storage_key(plain) or 0, -1)] == ["add_"]
    assert log.last_by_program(inference) is None


def test_an_optimizer_whose_name_cannot_be_found_has_that_of_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of the program may raise when they are compared; while torch compiles nothing is looked for."""

    def fail(_optimizer: object) -> str:
        raise ValueError

    monkeypatch.setattr(step_writes, "name_of_optimizer", fail)
    log, weight = WriteLog(Recorder()), torch.nn.Parameter(torch.ones(2))

    class Noting(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            log.note("add_", 0, 1, None, [(weight, 0, None)])

    with log:
        optimizer = Noting([weight], lr=0.1)
        for is_compiling in (False, True):
            monkeypatch.setattr(torch.compiler, "is_compiling", lambda value=is_compiling: value)
            optimizer.step()

    assert [one.optimizer for one in log.since(storage_key(weight) or 0, -1)] == ["Noting", None]


def test_the_latest_write_of_the_program() -> None:
    """Up to the version that the tensor has; a write by an optimizer is none."""
    log, x = WriteLog(Recorder()), torch.ones(2)
    for op in ("add_", "mul_"):
        before = x._version
        x.add_(1)
        log.note(op, 0, 1, None, [(x, before, None)])
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])

    def write(*_step: object) -> None:
        x.add_(1)
        log.note("sub_", 0, 1, None, [(x, 2, None)])

    optimizer.register_step_pre_hook(write)
    with log:
        optimizer.step()
    last = log.last_by_program(x)

    assert last is not None
    assert last.op == "mul_"
    assert [one.optimizer for one in log.since(storage_key(x) or 0, -1)] == [None, None, "optimizer"]
