"""Fake tensors find what they have run before by a key of our own, which has all that a result depends on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import pytest
import torch
from torch._subclasses import fake_tensor

from gradinspect.torch_api.fakes import fake_tensor_mode, known_number

ALIKE: dict[str, Callable[[], Any]] = {  # all of 2 x 3 elements but for the first few
    "plain": lambda: torch.zeros(2, 3),
    "shape": lambda: torch.zeros(3, 2),
    "dimensions": lambda: torch.zeros(1, 2, 3),
    "dtype": lambda: torch.zeros(2, 3, dtype=torch.int64),
    "complex": lambda: torch.zeros(2, 3, dtype=torch.complex64),
    "conjugate": lambda: torch.zeros(2, 3, dtype=torch.complex64).conj(),
    "negative": lambda: torch.zeros(2, 3, dtype=torch.complex64).conj().imag,
    "imaginary": lambda: torch.zeros(2, 3, dtype=torch.complex64).imag,
    "strides": lambda: torch.zeros(3, 2).t(),
    "device": lambda: torch.zeros(2, 3, device="meta"),
    "offset": lambda: torch.zeros(12)[6:].view(2, 3),
    "storage": lambda: torch.zeros(12)[:6].view(2, 3),
    "leaf": lambda: torch.zeros(2, 3, requires_grad=True),
    "whole number": lambda: 1,
    "number": lambda: 1.0,
    "truth": lambda: True,
    "list": lambda: [1],
    "tuple": lambda: (1,),
    "nothing": lambda: None,
    "empty": list,
}


def key_of(mode: Any, *args: object) -> tuple[object, ...]:
    """Return the key of arguments."""
    key: list[object] = []
    mode._prep_args_for_hash(key, args, None, [])
    return tuple(key)


@contextmanager
def refused_metadata() -> Iterator[None]:
    """Refuse the slow way."""

    def refuse(_tensor: object) -> None:
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake_tensor, "extract_tensor_metadata", refuse)
        yield


def test_keys_differ_where_anything_does() -> None:
    """A result is taken from before only if nothing that it depends on differs; of equal arguments it is."""
    mode = fake_tensor_mode()
    with mode:
        keys = {name: key_of(mode, make()) for name, make in ALIKE.items()}
        again = {name: key_of(mode, make()) for name, make in ALIKE.items()}

    assert keys == again
    assert [pair for pair in combinations(keys, 2) if keys[pair[0]] == keys[pair[1]]] == []


def test_numbers_of_arguments_count() -> None:
    """A list of one tensor, and one more, are no two tensors."""
    mode = fake_tensor_mode()
    with mode:
        x = torch.zeros(2)
        keys = {key_of(mode, *args) for args in ([x, x], [[x], x], [x, [x]], [[x, x]], [[[x], x]])}

    assert len(keys) == 5


def test_plain_tensors_do_not_go_the_slow_way() -> None:
    """What has run before is found without torch's own description of each tensor."""
    mode = fake_tensor_mode()
    with mode:
        x, weight = torch.zeros(2, 3), torch.zeros(4, 3)
        first = torch.cat([torch.nn.functional.linear(x, weight), x * 2.0], 1)
        before = mode.cache_info().hits
        with refused_metadata():
            second = torch.cat([torch.nn.functional.linear(x, weight), x * 2.0], 1)

    assert (first.shape, first.dtype, first.device) == (second.shape, second.dtype, second.device)
    assert mode.cache_info().hits >= before + 3


@pytest.mark.parametrize("name", ["plain", "strides", "conjugate", "offset", "dtype", "device", "leaf"])
def test_results_are_those_of_torch(name: str) -> None:
    """Each of several arguments of one operator gets the result that torch's own mode gives it."""

    def looks(mode: Any) -> list[tuple[object, ...]]:
        with mode:
            made = [[(one := ALIKE[each]()) + 1, one.contiguous(), one.T, one[:, 1:]] for each in ("plain", name) * 2]
        return [(x.shape, x.stride(), x.dtype, x.device, x.storage_offset(), x.is_conj()) for row in made for x in row]

    assert looks(fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)) == looks(fake_tensor_mode())


def test_a_known_number_is_read_without_torch() -> None:
    """The counter of an optimizer's steps is known, until something is written that is not."""
    read = torch.ops.aten._local_scalar_dense.default
    with fake_tensor_mode():
        counter = torch.tensor(0.0)
        counter += 2
        unknown = torch.zeros(()) + 1
        found = [known_number(read, (one,)) for one in (counter, torch.tensor(data=False), unknown)]
        other = known_number(torch.ops.aten.neg.default, (counter,))
        counter.copy_(unknown)
        later = known_number(read, (counter,))

    assert found == [2.0, False, None]
    assert (other, later) == (None, None)
