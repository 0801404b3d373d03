"""torch's stack of function modes, as a program sees it while a mode of ours is on it."""

from collections.abc import Iterator
from types import FunctionType

import pytest
import torch
from torch.overrides import TorchFunctionMode

from gradinspect.checks.evidence.recomputation import _Forwarding
from gradinspect.torch_api.modes import num_function_modes
from gradinspect.torch_api.patching.patches import patched
from gradinspect.torch_api.patching.unlisted import unlisted_modes


def _look() -> tuple[int, object]:
    return length(), at(1)  # type: ignore[name-defined]  # noqa: F821  # of the module that it becomes part of


class Theirs(TorchFunctionMode):
    """A mode of the program."""


@pytest.fixture
def theirs() -> Iterator[Theirs]:
    """Push a mode of the program between two of ours."""
    mode = Theirs()
    with patched(*unlisted_modes()), _Forwarding(), mode, _Forwarding():
        yield mode


def test_a_program_finds_its_own_modes(theirs: Theirs) -> None:
    """Their number, the list, the places and the top agree."""
    assert torch._C._len_torch_function_stack() == 1
    assert torch.overrides._get_current_function_mode_stack() == [theirs]
    assert torch._C._get_function_stack_at(0) is theirs
    assert torch.overrides._get_current_function_mode() is theirs
    assert torch._C._is_torch_function_mode_enabled()


def test_torch_itself_sees_all_modes(theirs: Theirs) -> None:
    """What takes modes off by their places finds each."""
    names = {"length": torch._C._len_torch_function_stack, "at": torch._C._get_function_stack_at}
    look = FunctionType(_look.__code__, {**names, "__name__": "torch.somewhere"})

    assert look() == (3, theirs)
    assert num_function_modes() == 3


def test_a_program_without_modes_finds_none() -> None:
    """Only ours is there."""
    with patched(*unlisted_modes()), _Forwarding():
        assert torch._C._len_torch_function_stack() == 0
        assert torch.overrides._get_current_function_mode_stack() == []
        assert torch.overrides._get_current_function_mode() is None
        assert not torch._C._is_torch_function_mode_enabled()


def test_the_functions_are_equal_to_those_of_torch() -> None:
    """torch.compile finds what a program calls by looking it up."""
    names = ("_len_torch_function_stack", "_get_function_stack_at", "_is_torch_function_mode_enabled")
    known = {getattr(torch._C, name): name for name in names}
    with patched(*unlisted_modes()):
        assert [known[getattr(torch._C, name)] for name in names] == list(names)

    assert {getattr(torch._C, name): name for name in names} == known
