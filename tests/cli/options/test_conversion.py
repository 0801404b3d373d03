"""What typer need not convert is what it would have made of it."""

import subprocess
import sys
from typing import Any

import pytest
from verb_words import WORDS

from gradinspect.cli.options import help as help_of_verbs
from gradinspect.cli.verbs import VERBS, VerbGroup

PARSES = """
import sys
from gradinspect.cli.program import app
import typer
group = typer.main.get_command(app)
with group.make_context("gradinspect", ["trace", "run.json"]) as context:
    name, verb, rest = group.resolve_command(context, ["trace", "run.json"])
    verb.make_context(name, rest, parent=context)
print("pydantic" in sys.modules)
"""


def parsed(verb: str, *words: str) -> dict[str, Any]:
    """Return what a verb is called with."""
    command = VerbGroup(name="gradinspect").get_command(None, verb)
    return {name: value or None for name, value in command.make_context(verb, list(words)).params.items()}


@pytest.mark.parametrize("verb", VERBS)
def test_defaults_are_as_typer_converts_them(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty list, which may be None as well, is asked for as one that has nothing."""
    ours = parsed(verb, *WORDS[verb])
    monkeypatch.setattr(help_of_verbs, "without_needless_conversion", lambda params: params)

    assert ours == parsed(verb, *WORDS[verb])


def test_what_is_given_is_converted() -> None:
    """As is what has a range, or a fixed set of words."""
    assert parsed("trace", "run.json", "--depth", "3", "--format", "json")["depth"] == 3
    with pytest.raises(Exception, match="integer"):
        parsed("trace", "run.json", "--depth", "deep")
    with pytest.raises(Exception, match="text"):
        parsed("trace", "run.json", "--format", "none")
    with pytest.raises(Exception, match=r"(?i)missing"):
        parsed("find")


def test_what_converts_is_not_imported() -> None:
    """It takes as long as all of our own modules."""
    done = subprocess.run([sys.executable, "-c", PARSES], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
