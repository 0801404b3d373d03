"""Updates that are computed of parameters and gradients, and that nothing reads."""

from gradinspect.checks.evidence.values.dropped_updates import DroppedUpdate, dropped_updates
from gradinspect.checks.facts.value_flow import Call, Read

GRADIENT = Call("torch.Tensor.grad.__get__", (), 1, "gradient")
WEIGHT = Read(leaf=0, is_live=True)


def rounds(update: str = "torch.Tensor.sub", *, is_read: bool = False, is_write: bool = False) -> list[Call]:
    """Make two iterations: of a gradient, half of it, and the difference of that and the weight."""
    calls: list[Call] = []
    for _ in range(2):
        calls.extend((
            GRADIENT,
            Call("torch.Tensor.mul", (Read(len(calls)),), 2),
            Call(update, (WEIGHT, Read(len(calls) + 1)), 3, is_write=is_write),
        ))  # fmt: skip
        if is_read:
            calls.append(Call("torch.Tensor.norm", (Read(len(calls) - 1),), 4))
    return calls


def test_an_update_that_nothing_reads() -> None:
    """Each time, on the same line."""
    assert list(dropped_updates(rounds())) == [DroppedUpdate(3, 0, 2)]


def test_an_update_that_is_read_or_written_in_place() -> None:
    """A result that is read is used; what is written is the parameter itself."""
    assert list(dropped_updates(rounds(is_read=True))) == []
    assert list(dropped_updates(rounds(is_write=True))) == []


def test_one_time_is_no_habit() -> None:
    """What the last iteration made may yet be read."""
    assert list(dropped_updates(rounds()[:3])) == []


def test_a_leaf_without_its_graph_is_the_leaf() -> None:
    """`p.data - lr * p.grad` is an update of p."""
    calls: list[Call] = []
    for _ in range(2):
        start = len(calls)
        calls.extend((
            GRADIENT,
            Call("torch.Tensor.data.__get__", (WEIGHT,), 3, "data"),
            Call("torch.Tensor.sub", (Read(start + 1), Read(start)), 3),
        ))  # fmt: skip

    assert list(dropped_updates(calls)) == [DroppedUpdate(3, 0, 2)]
