"""The verbs of the command line, each of which is imported when it is asked for.

Together they import most of the package, so the list of verbs, and what each is for, is here.
"""

import importlib
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

from gradinspect.cli.options.conversion import without_needless_conversion


class Verb(NamedTuple):
    """What is known of a verb before its module is imported."""

    help: str  # how its docstring begins
    earlier: tuple[tuple[str, str], ...] = ()  # options as they were called once, and as they are


OVERVIEW: Final = "overview"  # of a program that is named without a verb
VERBS: Final = {
    OVERVIEW: Verb("Show the headlines of one run: graph, memory, problems, gradients, peak."),
    "trace": Verb("Show the autograd graph of a program at its first backward call."),
    "find": Verb("List the nodes that meet a condition."),
    "saved": Verb("Show what each node saves (_saved_*)."),
    "memory": Verb("Show what holds memory for backward, each storage counted once."),
    "fit": Verb("Find the peak of memory of whole training steps."),
    "plan": Verb("Find what to checkpoint so that training steps fit into memory."),
    "export": Verb("Write the graph to files; the suffix determines the format.", (("colour-by", "color-by"),)),
    "explore": Verb("Browse the graph in the terminal, node by node."),
    # as it is called in pyproject.toml, and in other linters
    "check": Verb("Report problems in backward: which lines, why, what to do.", (("only", "select"),)),
    "grads": Verb("Show the gradient at each module, parameter and node."),
    "step": Verb("Step through backward node by node: gradients, values, formulas."),
    "diff": Verb("Show what changed between two graphs."),
    "explain": Verb("Explain what a node computes and saves, and where its source is."),
}


class VerbGroup(TyperGroup):
    """All verbs, of which the help imports none."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401  # what typer passes
        """List the verbs, among which typer looks for what a misspelled one means."""
        super().__init__(**settings)
        self.commands = dict.fromkeys(VERBS)  # type: ignore[assignment]  # None: not imported yet

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002  # click's classes, which typer bundles
        """Import a verb."""
        if cmd_name in VERBS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _command(cmd_name, dict(VERBS[cmd_name].earlier))
        return self.commands.get(cmd_name)

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # as above
        """Return the options ahead of a verb."""
        return without_needless_conversion(super().get_params(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002  # as above
        """List what the verbs are for."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in VERBS.items()])


def verbs_with(option: str) -> dict[str, list[str]]:
    """Return the verbs that have an option, each with what else must be given: `{"plan": ["--fit SIZE"]}`."""
    names = (name for name in VERBS if name != OVERVIEW)
    params = {name: _command(name, {}).params for name in names}
    return {
        name: [f"{param.opts[0]} {param.metavar}" for param in found if _is_needed(param) and option not in param.opts]
        for name, found in params.items()
        if any(option in param.opts for param in found)
    }


def _is_needed(param: Any) -> bool:  # noqa: ANN401  # as above
    return bool(param.param_type_name == "option" and param.required)


def _command(name: str, earlier: dict[str, str]) -> Any:  # noqa: ANN401  # as above
    """Import a verb, which is the function named like its module."""
    from gradinspect.cli.options.help import VerbCommand  # noqa: PLC0415  # what the help of all need not wait for

    verb = getattr(importlib.import_module(f"gradinspect.cli.{name}"), name)
    settings = {"token_normalize_func": lambda word: earlier.get(word, word)}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(cls=VerbCommand, context_settings=settings)(verb)
    return typer.main.get_command(app)
