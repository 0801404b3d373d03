"""The error class for users, and the exit codes."""

FOUND_SOMETHING = 1
USER_CAN_FIX_IT = 2
SCRIPT_FAILED = 3
INTERRUPTED = 130


class GradInspectError(Exception):
    """An error that the user can fix.

    Args:
        message: One sentence, with the wrong value in quotes.
        hint: What to do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        """Store both parts, so that a caller can prepend context."""
        super().__init__(f"{message} {hint}".rstrip())
        self.message = message
        self.hint = hint


def text_of(error: object) -> str:
    """Return the text of an object of the user's program, such as an error; "" if that fails."""
    try:
        return str(error)
    except Exception:
        return ""
