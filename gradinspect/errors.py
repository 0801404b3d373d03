"""The one error that a user is meant to read."""


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
