"""Where a Sequential is cut into segments."""

import msgspec

from gradinspect.analyses.planning.changes import ModuleUse, SequencePart
from gradinspect.analyses.planning.segments import sequences_of


def sequence(*saved: int, writing: tuple[int, ...] = ()) -> ModuleUse:
    """Make a Sequential of modules that save so much, of which some write to their input."""
    parts = tuple(SequencePart(saved_bytes=num_bytes, writes_input=n in writing) for n, num_bytes in enumerate(saved))
    return ModuleUse(root=0, path="net", class_name="Sequential", saved_bytes=sum(saved), has_parts=True, parts=parts)


def test_segments_hold_about_the_same() -> None:
    """The first modules of a network on images hold most, so their segments are short."""
    (found,) = sequences_of([sequence(40, 40, 10, 10, 10, 10, 10, 10, 10, 10)])

    assert found.in_segments(2).starts == (0, 2)
    assert found.in_segments(4).starts == (0, 1, 2, 6)
    assert found.in_segments(100).starts == tuple(range(10))


def test_no_segment_begins_with_a_module_that_writes_to_its_input() -> None:
    """It would be computed again from what it has written."""
    (found,) = sequences_of([sequence(10, 10, 10, 10, writing=(1, 2))])

    assert found.most_segments == 2
    assert found.in_segments(4).starts == (0, 3)
    assert sequences_of([sequence(10, 10, writing=(1,))]) == ()


def test_what_cannot_run_again_is_not_cut() -> None:
    """A part of it may be in any segment."""
    whole = sequence(10, 10, 10)

    assert sequences_of([msgspec.structs.replace(whole, unrepeatable="changes 'calls' of Block")]) == ()


def test_only_sequentials_that_hold_much_are_cut() -> None:
    """Each number of segments that is tried is a run."""
    model = ModuleUse(root=0, path="", class_name="Net", saved_bytes=1000, has_parts=True)

    assert sequences_of([model, sequence(30, 30)]) == ()
    assert len(sequences_of([model, sequence(300, 300)])) == 1
