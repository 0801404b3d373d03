"""Patches are applied and undone in one manner, in whatever order those who applied them leave."""

import types
from contextlib import ExitStack
from typing import Any

import pytest

from gradinspect.torch_api.patching.patches import Patch, patched, patched_names


def adding(letter: str) -> Any:
    """Make a patch's function: it adds a letter to what the function below it returns."""
    return lambda original: lambda: original() + letter


@pytest.fixture
def module() -> Any:
    """A module with one function."""
    made: Any = types.ModuleType("some_module")
    made.name = lambda: ""
    return made


@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_overlapping_patches_leave_in_any_order(module: Any, first_to_leave: int) -> None:
    """What is left works without the one that has gone, and in the end the original is there."""
    original = module.name
    stacks = [ExitStack(), ExitStack()]
    for stack, letter in zip(stacks, "ab", strict=True):
        stack.enter_context(patched(Patch(module, "name", adding(letter))))
    both = module.name()
    stacks[first_to_leave].close()
    one = module.name()
    named = patched_names()
    stacks[1 - first_to_leave].close()

    assert (both, one) == ("ab", "ba"[first_to_leave])
    assert named == ("some_module.name",)
    assert module.name is original
    assert patched_names() == ()


def test_what_somebody_else_has_put_there_stays(module: Any) -> None:
    """A program that wraps ours keeps its wrapper."""
    with patched(Patch(module, "name", adding("a"))):
        ours = module.name
        module.name = theirs = lambda: ours() + "!"

    assert module.name is theirs
    assert patched_names() == ()


def test_a_name_that_is_not_there_is_left_alone(module: Any) -> None:
    """This torch has nothing to patch."""
    with patched(Patch(module, "other", adding("a"))):
        assert not hasattr(module, "other")


def test_an_error_undoes_them_all(module: Any) -> None:
    """The original is back, whatever has happened."""
    original = module.name
    with pytest.raises(ZeroDivisionError), patched(Patch(module, "name", adding("a"))):
        _ = 1 / 0

    assert module.name is original


def test_an_inherited_name_is_patched_and_inherited_again() -> None:
    """Only where that is asked for; in between, patches may overlap as others do."""

    class Base:
        def name(self) -> str:
            return ""

    class Heir(Base):
        pass

    def added(letter: str) -> Any:
        return lambda original: lambda heir: original(heir) + letter

    stacks = [ExitStack(), ExitStack()]
    for stack, letter in zip(stacks, "ab", strict=True):
        stack.enter_context(patched(Patch(Heir, "name", added(letter), is_inherited=True)))
    both = Heir().name()
    stacks[0].close()
    one = Heir().name()
    stacks[1].close()

    assert (both, one) == ("ab", "b")
    assert "name" not in vars(Heir)
    assert patched_names() == ()
