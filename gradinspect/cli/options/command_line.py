"""The words of a command line: which of them are for the script, and what is wrong with those that are ours."""

import difflib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from gradinspect.cli.verbs import OVERVIEW, VERBS, verbs_with
from gradinspect.source import looks_like_source

MAX_VERBS: Final = 4  # named one by one


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split at the first `--`: our arguments before it, the script's after it."""
    words = list(arguments)
    if "--" not in words:
        return words, ()
    position = words.index("--")
    return words[:position], tuple(words[position + 1 :])


def with_verb(words: list[str]) -> list[str]:
    """Ask for the overview of a program that is named without a verb: `train.py`, `-m pkg`, `model.py:Net()`."""
    first = words[0] if words else ""
    if first in VERBS or first in {"--help", "--version"}:
        return words
    if first == "-m" or looks_like_source(first):
        return [OVERVIEW, *words]
    return words


def unknown_option(error: Any, words: Sequence[str], help_of: str) -> str:  # noqa: ANN401  # the parser's own class
    """Say that a verb has no such option, which may be meant for the script."""
    name = str(error.option_name)
    similar = difflib.get_close_matches(name, error.possibilities or (), n=1, cutoff=0.7)
    closest = f" Closest match: {similar[0]}." if similar else ""
    position = next((at for at, word in enumerate(words) if word.partition("=")[0] == name), len(words))
    is_overview = words[0] == OVERVIEW  # which is seldom named
    line = " ".join(["gradinspect", *words[is_overview:position], "--", *words[position:]])
    meant = "" if words[0] == "explain" else f"{_verbs_that_have(name, words)} Options of the script follow --: {line}."
    asked = "The overview" if is_overview else f"'{words[0]}'"
    return f"{asked} has no option '{name}'.{closest}{meant} See: {help_of}"


def _verbs_that_have(option: str, words: Sequence[str]) -> str:
    """Name the verbs that have an option, and write the command with the first of them."""
    found = verbs_with(option)
    if not found:
        return ""
    first, *others = found
    rest = (
        f", and so have {', '.join(others)}" if len(others) < MAX_VERBS else f", and so have {len(others)} other verbs"
    )
    line = " ".join(["gradinspect", first, *words[1:], *found[first]])
    return f" '{first}' has it{rest if others else ''}: {line}."


def usage_sentence(error: Any, words: Sequence[str]) -> str:  # noqa: ANN401  # the parser's own classes
    """Describe a command line error, adding what the parser does not say: the value given, or what to give."""
    sentence = str(error.format_message()).replace("Value error, ", "")
    param = getattr(error, "param", None)
    meaning = str(getattr(param, "help", None) or "").rstrip(".")
    if hasattr(error, "param_type") and meaning:  # it is missing
        return f"{sentence.rstrip('.')}: {meaning}."
    names = getattr(param, "opts", ())
    for name, value in pairwise(words):
        if name in names:
            sentence = sentence.replace(f"'{name}'", f"'{name} {value}'", 1)
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."
