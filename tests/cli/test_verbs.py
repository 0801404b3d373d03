"""The list of verbs, and what is imported for one."""

import pkgutil
import subprocess
import sys
from typing import Any

import pytest
import typer

from gradinspect import cli
from gradinspect.cli.program import app, main
from gradinspect.cli.verbs import VERBS

GROUP: Any = typer.main.get_command(app)


@pytest.mark.parametrize("name", VERBS)
def test_the_list_of_verbs_says_what_each_says_of_itself(name: str) -> None:
    """Its sentence is written where it can be read without importing the verb, and is that of the verb."""
    assert GROUP.get_command(None, name).help.startswith(VERBS[name].help)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--help"], []),
        (["tarce"], []),
        (["--version"], []),
        (["find", "--help"], ["find"]),
    ],
)
def test_only_the_verb_that_is_asked_for_is_imported(words: list[str], expected: list[str]) -> None:
    """Thirteen verbs import most of the package, and rich, for which neither the list of verbs nor an error waits."""
    program = (
        f"import sys; from gradinspect.cli import main; main({words!r})\n"
        f"print([verb for verb in {list(VERBS)} if f'gradinspect.cli.{{verb}}' in sys.modules], 'rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == f"{expected} {bool(expected)}"


def test_the_list_has_all_verbs() -> None:
    """Each module of the command line is one, but the program and the list."""
    assert {*VERBS, "program", "verbs"} == {
        module.name for module in pkgutil.iter_modules(cli.__path__) if not module.ispkg
    }


@pytest.mark.parametrize(
    ("word", "expected"),
    [("tarce", "No such command 'tarce'. Did you mean 'trace'?"), ("backward", "No such command 'backward'.")],
)
def test_a_verb_that_is_none(word: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A similar one is named."""
    assert main([word]) == 2
    assert capsys.readouterr().err == f"gradinspect: {expected} Try: gradinspect --help\n"
