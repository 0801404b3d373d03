"""`gradinspect explore`: browse the graph."""

import functools
import os
import sys
from importlib import util
from typing import Annotated

import typer

from gradinspect.analyses.explain.explainer import explainer
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.options.user_source import source_reader
from gradinspect.cli.output.console import can_print_unicode, output_console, working
from gradinspect.cli.output.printing import is_silent
from gradinspect.cli.running import questions
from gradinspect.cli.running.pipeline import report_on
from gradinspect.errors import INTERNAL_ERROR, GradInspectError, ScriptFailedError
from gradinspect.graph import Graph
from gradinspect.request import Request

# ruff: noqa: PLC0415  # what --help need not wait for
FILES_KEPT = 16


@takes_source()
def explore(
    request: Request,
    *,
    gradients: Annotated[bool, typer.Option("--gradients", help="Let backward run, and show its gradients.")] = False,
) -> int:
    """Browse the graph in the terminal, node by node.

    gradinspect explore train.py

    gradinspect explore run.json.gz
    """
    _require_terminal()
    _require_textual()
    recorded: list[Graph] = []
    failure: ScriptFailedError | None = None
    try:
        report_on(request, questions.gradients() if gradients else questions.graph(), recorded.append)
    except ScriptFailedError as error:
        if not recorded:
            raise
        failure = error
    exit_code = 0 if is_silent() else _show(request, recorded[0])
    if failure is not None:
        raise failure
    return exit_code


def _require_terminal() -> None:
    """Check that there is a screen and a keyboard.

    Raises:
        GradInspectError: Input or output is a file or a pipe.
    """
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr)):
        if stream is None or not stream.isatty():
            raise GradInspectError(
                f"'explore' needs an interactive terminal, but {name} is not one.",
                "Use: gradinspect trace, or export -o graph.html.",
            )
    if os.environ.get("TERM") == "dumb":
        raise GradInspectError("'explore' does not work on a 'dumb' terminal.", "Use: gradinspect trace")


def _require_textual() -> None:
    """Check that textual is installed.

    Raises:
        GradInspectError: The package is not installed.
    """
    if util.find_spec("textual") is None:
        raise GradInspectError("'explore' needs the textual package.", "Install it: pip install 'gradinspect[explore]'")


def _show(request: Request, graph: Graph) -> int:
    """Run the explorer until the user quits; its traceback is on the screen if it failed."""
    from gradinspect.explorer.app import Exploration, Explorer

    console = output_console()
    read_source = functools.lru_cache(FILES_KEPT)(source_reader(request))
    exploration = Exploration(graph, explainer(), read_source, can_print_unicode(console))
    with working("Folding the graph"):
        explorer = Explorer(exploration)
    explorer.run(mouse=False)  # leave text selection to the terminal
    return INTERNAL_ERROR if explorer.return_code else 0
