"""Which frames are the user's."""

from pathlib import Path

from gradinspect.recording.frames import RUNNERS


def test_the_files_that_run_a_program_are_there() -> None:
    """Frames outside of them are ours: a file that was moved would let ours pass for the user's."""
    missing = [file for file in RUNNERS if not Path(file).is_file()]

    assert missing == []
