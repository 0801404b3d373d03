"""The memory behind tensors."""

from itertools import combinations_with_replacement

import pytest
import torch

from gradinspect.graph import Origin, Storage
from gradinspect.recording.values.storages import (
    StorageTable,
    has_inner_tensors,
    plain_tensors,
    storage_key,
    storage_of,
    storages_within,
)


def key(tensor: torch.Tensor) -> int:
    """Return the key of a tensor that has memory."""
    found = storage_key(tensor)
    assert found is not None

    return found


def test_tensors_that_share_memory_have_one_number() -> None:
    """Numbers count from 0, in order of appearance; bytes are those of the whole memory."""
    base, other = torch.ones(4), torch.ones(3, dtype=torch.float64)
    table = StorageTable({})
    numbers = [table.look_up(tensor, "activation").number for tensor in (base[1:], other, base, other[:1])]

    assert numbers == [0, 1, 0, 1]
    assert table.keys() == (key(base), key(other))
    assert table.records() == (
        Storage(num_bytes=16, device="cpu", origin="activation"),
        Storage(num_bytes=24, device="cpu", origin="activation"),
    )


def test_a_known_storage_has_its_name_and_origin() -> None:
    """Whatever a tensor in it is to the node that keeps it."""
    weight = torch.ones(4)
    table = StorageTable({key(weight): ("parameter", "fc.weight")})
    entry = table.look_up(weight.view(2, 2), "output")
    table.look_up(weight, "activation")

    assert (entry.name, entry.origin) == ("fc.weight", "parameter")


ORIGINS: tuple[Origin | None, ...] = ("parameter", "buffer", "activation", "output", "input", None)


@pytest.mark.parametrize(("first", "second"), [*combinations_with_replacement(range(6), 2)])
def test_of_two_origins_the_more_telling_one_counts(first: int, second: int) -> None:
    """In whichever order they come."""
    for order in ((first, second), (second, first)):
        x, table = torch.ones(1), StorageTable({})
        for place in order:
            table.look_up(x, ORIGINS[place])

        assert table.records()[0].origin == ORIGINS[first]


def test_what_comes_from_outside_a_model() -> None:
    """Its arguments, and what has a name; not what it made for itself."""
    given, named, made = torch.ones(1), torch.ones(1), torch.ones(1)
    table = StorageTable({key(named): ("input", "x")}, frozenset({key(given)}))

    assert [table.is_from_outside(key(tensor)) for tensor in (given, named, made)] == [True, True, False]


@pytest.mark.filterwarnings("ignore:Sparse")
def test_the_tensors_inside_an_object() -> None:
    """Each once, in order, in containers of any kind, and those that a sparse tensor is composed of."""
    x, y, z = torch.ones(1), torch.ones(2), torch.ones(3)
    sparse = torch.tensor([1.0, 0.0, 2.0]).to_sparse()
    rows = torch.eye(2).to_sparse_csr()
    columns = torch.eye(2).to_sparse_csc()
    endless: list[object] = [x, {"a": y, "b": (z, x)}, frozenset({1}), "text", None]
    endless.append(endless)

    assert [tensor.shape for tensor in plain_tensors(endless)] == [(1,), (2,), (3,)]
    assert [tensor.shape for tensor in plain_tensors(sparse)] == [(1, 2), (2,)]
    assert [tensor.shape for tensor in plain_tensors(rows)] == [(3,), (2,), (2,)]
    assert [tensor.shape for tensor in plain_tensors(columns)] == [(3,), (2,), (2,)]
    assert [tensor.shape for tensor in plain_tensors({z})] == [(3,)]
    assert StorageTable({}).numbers_within([sparse, x]) == (0, 1, 2)


def test_a_wrapper_is_composed_of_others() -> None:
    """A plain subclass is not."""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)

    assert has_inner_tensors(nested)
    assert not has_inner_tensors(torch.ones(1))
    assert not has_inner_tensors(torch.nn.Parameter(torch.ones(1)))
    assert (5,) in [tensor.shape for tensor in plain_tensors(nested)]


def test_a_tensor_without_memory_of_its_own() -> None:
    """It has no key, and is passed over in containers."""
    sparse = torch.eye(2).to_sparse()

    assert storage_of(sparse) is None
    assert storage_key(sparse) is None
    assert len(list(storages_within([torch.ones(1), "x"]))) == 1
    with pytest.raises((RuntimeError, NotImplementedError)):
        StorageTable({}).look_up(sparse)


def test_inside_a_transform_the_memory_is_that_of_the_tensor_within() -> None:
    """A tensor that torch.func wraps, at any depth."""
    x = torch.ones(3)
    found: list[int] = []

    def inner(wrapped: torch.Tensor) -> torch.Tensor:
        found.extend(StorageTable({key(x): ("input", "x")}).look_up(wrapped).storage.data_ptr() for _ in range(1))
        return wrapped.sum()

    torch.func.grad(torch.func.grad(lambda one: inner(one) * inner(one)))(torch.tensor(2.0))
    torch.func.vmap(inner)(x.view(1, 3))

    assert found[-1] == x.data_ptr()
    assert len(found) == 3
