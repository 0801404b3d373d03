"""`gradinspect explain`: what does this node compute?"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from gradinspect.analyses.explain.custom_functions import CustomFunction, read_custom_function
from gradinspect.analyses.explain.explanation import (
    Explanation,
    all_names,
    explain_class,
    explain_node,
    find_classes,
    search,
)
from gradinspect.catalog import Catalog, load_catalog
from gradinspect.checks.findings import check_codes
from gradinspect.checks.registry import codes, rule_of
from gradinspect.checks.rule import Rule
from gradinspect.cli.options.shared import TextOrJson
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.printing import print_text
from gradinspect.errors import GradInspectError
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.terminal.explanation import ExplanationPage
from gradinspect.renderers.terminal.findings import FindingsPage
from gradinspect.storage import read_graph
from gradinspect.units import parse_whole

_CODE = re.compile(r"GI\d+", re.IGNORECASE)  # of a rule, or what several begin with


def explain(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="mul, MulBackward0, run.json#17, script.py:MyFunction, GI101."),
    ] = None,
    *,
    list_all: Annotated[bool, typer.Option("--list", help="List every class, one per line.")] = False,
    search: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="List classes with this in a name or formula."),
    ] = None,
    output_format: TextOrJson = "text",
) -> None:
    """Explain what a node computes and saves, and where its source is.

    gradinspect explain MulBackward0 torch.addcdiv

    gradinspect explain train.py:MyFunction

    gradinspect explain GI102
    """
    given = [*(["NAME"] if names else []), *(["--list"] if list_all else []), *(["--search"] if search else [])]
    if len(given) != 1:
        what = "nothing" if not given else " and ".join(given)
        raise GradInspectError(f"Exactly one of NAME, --list or --search is needed; got {what}.", "Give one of them.")
    if not names:
        print_lines(_list(load_catalog(), search))
        return
    found = [part for name in names for part in _explained(name)]
    if output_format == "json":
        print_text(render_json(found))
    else:
        print_lines(_page(found))


def _list(catalog: Catalog, pattern: str | None) -> Iterator[Text]:
    chosen = all_names(catalog) if pattern is None else search(pattern, catalog)
    if not chosen:
        raise GradInspectError(f"No class has '{pattern}' in its name, signature or formulas.", "Try a shorter text.")
    page = terminal_page(ExplanationPage)
    entries = catalog.entries
    return page.names([(name, entries[name].signature if name in entries else "written by hand") for name in chosen])


def _explained(name: str) -> Iterator[Explanation | CustomFunction | Rule]:
    """Find what a name means: a finding, a node of a capture, a class of a script, a class or an operator of torch.

    Only the last two need torch, whose formulas are read for them.
    """
    if _CODE.fullmatch(name):
        (code,) = check_codes([name], codes())
        yield from (rule_of(one) for one in codes() if one.startswith(code))
        return
    file, separator, number = name.rpartition("#")
    if separator:
        yield from _explained_node(Path(file), number)
        return
    file, separator, class_name = name.rpartition(":")
    if separator and file.endswith(".py"):
        yield read_custom_function(Path(file), class_name)
        return
    catalog = load_catalog()
    for found in find_classes(name, catalog):
        yield explain_class(found, catalog)


def _explained_node(path: Path, number: str) -> Iterator[Explanation]:
    graph = read_graph(path)
    wanted = parse_whole(number)
    if wanted is None or wanted >= len(graph.nodes):
        last = len(graph.nodes) - 1
        raise GradInspectError(f"There is no node '#{number}' in '{path}'.", f"It has #0 to #{last}.")
    yield explain_node(graph, wanted, load_catalog())


def _page(found: Sequence[Explanation | CustomFunction | Rule]) -> Iterator[Text]:
    page = terminal_page(ExplanationPage)
    for index, part in enumerate(found):
        if index:
            yield Text()
        if isinstance(part, Rule):
            yield from FindingsPage(width=page.width, unicode=page.unicode).rule(part)
        else:
            yield from page.explanation(part) if isinstance(part, Explanation) else page.custom(part)
