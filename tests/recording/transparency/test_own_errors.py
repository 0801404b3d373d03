"""What could not be looked at is counted and said."""

from gradinspect.recording.transparency.own_errors import OwnErrors


def test_the_first_error_is_named_and_all_are_counted() -> None:
    """Later ones are of the same kind, or follow from it."""
    errors = OwnErrors()
    for error in (KeyError("a"), ValueError("b")):
        errors.note(error)
    (note,) = errors.notes()

    assert errors.hid_anything
    assert note.startswith("Not looked at: 2 calls (first: ")
    assert note.endswith("KeyError).")


def test_what_is_beyond_a_limit_is_counted_by_its_kind() -> None:
    """Anew each time where it is looked for anew; nothing was hidden before."""
    errors = OwnErrors()
    assert not errors.hid_anything
    for number in (2, 5, 3):
        errors.leave_out("tensor whose memory is large", "larger than 1.0 MiB", number)
        errors.pass_over("write to memory", "too many", number)

    assert list(errors.notes()) == [
        "Not checked: 5 tensors whose memory is large, larger than 1.0 MiB.",
        "Not checked: 10 writes to memory, too many.",
    ]
