"""The one error that a user is meant to read, and the statuses that a run ends with."""

FOUND_SOMETHING = 1
USER_CAN_FIX_IT = 2
SCRIPT_FAILED = 3
INTERRUPTED = 130


class GradInspectError(Exception):
    """Something the user can fix.

    Args:
        message: One sentence with the wrong value in quotes.
        hint: What to do about it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep both parts, so that a caller can add context in front."""
        super().__init__(f"{message} {hint}".rstrip())
        self.message = message
        self.hint = hint


def text_of(error: object) -> str:
    """Return what an object of the user's program, mostly an error, says of itself; "" where asking it fails."""
    try:
        return str(error)
    except Exception:
        return ""
