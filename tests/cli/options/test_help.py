"""The help of a verb: grouped, short, and complete when asked."""

from typing import Any

import pytest
import typer

from gradinspect.cli.program import app, main
from gradinspect.cli.verbs import VERBS

MAX_LINES = 40
GROUP: Any = typer.main.get_command(app)


def help_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints, which must be a success."""
    assert main(words) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_fits_a_screen(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """At most forty lines of 80 columns, no type of an option, an example with the user's own script."""
    printed = help_of([verb, "--help"], capsys)

    assert len(printed.splitlines()) <= MAX_LINES
    assert max(map(len, printed.splitlines())) <= 80
    assert "<" not in printed
    assert ">=" not in printed
    assert f"gradinspect {verb} train.py" in printed
    assert "samples/" not in printed


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_all_options_are_listed_when_asked(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help says how many it leaves out; --help-all leaves out none, and each has its own text."""
    short, whole = help_of([verb, "--help"], capsys), help_of([verb, "--help-all"], capsys)
    options = [param for param in GROUP.get_command(None, verb).params if param.param_type_name == "option"]
    rare = [param for param in options if param.hidden]

    assert all(f"  {param.opts[0]} " in whole and param.help for param in options)
    assert not any(f"  {param.opts[0]} " in short for param in rare)
    assert (f"{len(rare)} more option" in short) == bool(rare)
    assert "more option" not in whole


@pytest.mark.parametrize("option", ["--top", "--module", "--where", "--sort"])
def test_every_table_is_cut_by_the_same_options(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In the same words, on the first page of the help."""
    lines = [
        next(line for line in help_of([verb, "--help"], capsys).splitlines() if line.startswith(f"  {option} "))
        for verb in ("saved", "memory", "grads", "fit")
    ]

    assert len({" ".join(line.split()) for line in lines}) == 1


def test_a_help_is_this(capsys: pytest.CaptureFixture[str]) -> None:
    """The groups, in the order in which people need them."""
    assert (
        help_of(["fit", "--help"], capsys)
        == """\
Usage: gradinspect fit SOURCE [OPTIONS] [-- ARGUMENTS OF THE SCRIPT]

  Find the peak of memory of whole training steps.

  gradinspect fit train.py
  gradinspect fit train.py --limit 24GiB --by line
  gradinspect fit train.py -o step.html -o step.json.gz

  SOURCE             script.py, notebook.ipynb, pkg.mod:expression, or a
                     capture file.

What to show
  --limit SIZE       Available memory, such as 24GiB; exits 1 above it.
  --steps N          Training steps to watch. [default: 2]
  --search NAME      Find the largest {NAME} that fits, or pairs a,b, or
                     world-size.
  --by KIND          By module, line, storage, phase or kind. [default:
                     module]
  --real             Run with values, and measure the allocator.
  --device NAME      Count in the blocks of this device: cuda. With --real:
                     run a callable there.
  --top N            Only the first N rows, the largest.
  --module PATTERN   Only what is in these modules: 'h.*.attn'.
  --where CONDITION  Only rows such as 'bytes>1MiB and class~Conv*'.
  --sort FIELD       Order of the rows: graph, bytes, name, ...

Output
  -o FILE            Also write a file, repeatable: .html .svg .json .json.gz
  --force            Overwrite files.
  --format KIND      Print text or json. [default: text]

Run the program
  -m MODULE          Run a module, as python -m does.
  --input SHAPE      Input of a callable: 2x3x8x8, mask=2x9:bool.
  --continue         Let the script finish after the capture.
  --hint NUMBER      Answer what reads a value, such as 'if loss > 3'.

5 more options: gradinspect fit --help-all
"""
    )


def test_no_verb_is_cut_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    """What a verb is for stands on one line."""
    assert "..." not in help_of([], capsys).split("Commands:")[1]
