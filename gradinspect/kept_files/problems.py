"""What is to be said of files that were not put back: each command looks here at its end, so this imports nothing."""

_found: list[str] = []


def note(*sentences: str) -> None:
    """Add a sentence about each file."""
    _found.extend(sentences)


def problems() -> tuple[str, ...]:
    """Return each sentence once, and forget them."""
    found = tuple(dict.fromkeys(_found))
    _found.clear()
    return found
