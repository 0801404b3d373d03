"""Finding the live instances of a class."""

from strange_objects import OBJECTS

from gradinspect.recording.names.instances import instances_of


class _Root:
    """A class of the test."""


def test_instances_of_subclasses_are_found() -> None:
    """Of all depths, and also of a class that cannot be hashed or compared."""
    middle = type("Middle", (_Root,), {})
    odd = OBJECTS["Meta"]("Odd", (middle,), {})
    made = [_Root(), middle(), odd()]

    found = instances_of(_Root)

    assert sorted(map(id, found)) == sorted(map(id, made))
    assert [one is made[2] for one in instances_of(odd)] == [True]
