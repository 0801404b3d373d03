"""The errors that end a command, and the exit codes."""

FOUND_SOMETHING = 1
USER_CAN_FIX_IT = 2
SCRIPT_FAILED = 3
INTERNAL_ERROR = 4  # a bug of ours, which CI must not read as a finding
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


class MissingValuesError(GradInspectError):
    """The program reads values, which fake tensors do not have."""


class ScriptFailedError(Exception):
    """The user's script failed, or ended with an exit code that is passed on. Its traceback has been printed."""

    def __init__(self, sentence: str, exit_code: int = SCRIPT_FAILED, trace: str = "") -> None:
        """Store what to say after the traceback, "" for nothing, the exit code, and the traceback, if it is known."""
        super().__init__(sentence)
        self.exit_code = exit_code
        self.trace = trace


class InternalError(Exception):
    """A bug of ours in a child process, with the traceback that the child has sent."""

    def __init__(self, sentence: str, trace: str) -> None:
        """Store the last line of the traceback, and all of it."""
        super().__init__(sentence)
        self.trace = trace


def text_of(error: object) -> str:
    """Return the text of an object of the user's program, such as an error; "" if that fails."""
    try:
        return str(error)
    except Exception:
        return ""


def is_address_space_limited() -> bool:
    """Return whether there is a limit, as of `ulimit -v`, at which an allocation fails."""
    try:
        import resource  # noqa: PLC0415  # not on Windows, and rarely needed
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
