"""Saved attributes that are not tensors."""

import pytest
import torch
from strange_objects import OBJECTS

from gradinspect.graph import SavedValue
from gradinspect.recording.values.scalar_attributes import kind_of, plain_scalar, saved_value


class Secret:
    """Must not be asked for its text."""

    def __str__(self) -> str:
        """Fail."""
        raise AssertionError

    __repr__ = __str__


@pytest.mark.parametrize(
    ("value", "kind", "plain"),
    [
        (None, "none", None),
        (True, "bool", True),
        (3, "int", 3),
        (-(2**63), "int", -(2**63)),
        (2**63 - 1, "int", 2**63 - 1),
        (2**64 - 1, "int", -1),  # torch returns -1 as an unsigned number
        (2**63, "int", -(2**63)),
        (2**64, "int", str(2**64)),
        (2**64 + 5, "int", str(2**64 + 5)),
        (-(2**63) - 1, "int", str(-(2**63) - 1)),
        (0.5, "float", 0.5),
        (float("inf"), "float", "inf"),
        (float("nan"), "float", "nan"),
        (1 + 2j, "complex", "(1+2j)"),
        ("mean", "str", "mean"),
        (torch.float32, "dtype", "float32"),
        (torch.strided, "layout", "strided"),
        (torch.channels_last, "memory_format", "channels_last"),
        (torch.device("cpu"), "device", "cpu"),
        (Secret(), "object", f"{__name__}.Secret"),
        ({"a": 1}, "object", "builtins.dict"),
    ],
)
def test_a_value_is_recorded_as_its_kind(value: object, kind: str, plain: object) -> None:
    """What a record cannot hold becomes its text, an object of another class the name of that class."""
    recorded = saved_value("_saved_x", value, 2)

    assert (kind_of(value), plain_scalar(value)) == (kind, plain)
    assert type(plain_scalar(value)) is type(plain)
    assert recorded == SavedValue(name="_saved_x", index=2, kind=kind, value=plain)  # type: ignore[arg-type]


def test_a_subclass_of_a_number_or_text_is_only_that() -> None:
    """A record compares and saves what it holds."""

    class Size(int):
        pass

    class Rate(float):
        pass

    class Name(str):
        __slots__ = ()

    assert [type(plain_scalar(value)) for value in (Size(3), Rate(0.5), Name("x"))] == [int, float, str]


def test_lists_and_tuples_are_tuples_of_plain_values() -> None:
    """Those in them are their text."""
    assert saved_value("s", [1, (2, "x"), 2**64 - 1]) == SavedValue(name="s", kind="tuple", value=(1, "(2, x)", -1))
    assert saved_value("s", ()) == SavedValue(name="s", kind="tuple", value=())


@pytest.mark.parametrize(
    ("name", "content", "kind", "plain"),
    [
        ("Bad", (), "object", "builtins.Bad"),
        ("Number", (3,), "int", 3),
        ("Key", ("k",), "str", "k"),
        ("BadDict", ({"k": 1},), "object", "builtins.BadDict"),
    ],
)
def test_no_code_of_an_object_runs(name: str, content: tuple[object, ...], kind: str, plain: object) -> None:
    """What its class says of its number, text or class is not asked for."""
    value = OBJECTS[name](*content)

    assert (kind_of(value), plain_scalar(value)) == (kind, plain)


def test_a_list_that_cannot_be_iterated_is_read_as_a_list() -> None:
    """Its elements are those of the list that it is."""
    items = OBJECTS["BadList"]([1, OBJECTS["BadList"]([2])])

    assert saved_value("s", items).value == (1, "(2)")


def test_an_integer_longer_than_python_writes_has_its_size() -> None:
    """Python refuses to write more than 4,300 digits, and programs may lower that."""
    assert plain_scalar(10**5000) == "an integer of 16610 bits"
    assert plain_scalar([-(10**5000), 2**70]) == "(an integer of 16610 bits, 1180591620717411303424)"
