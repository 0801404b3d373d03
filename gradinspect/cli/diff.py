"""`gradinspect diff`: what changed between two graphs, and which of many are equal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

import typer

from gradinspect.analyses.diff.comparison import diff_graphs, have_common_modules
from gradinspect.analyses.diff.gates import Gate, failure, parse_gate
from gradinspect.analyses.diff.groups import Grouper, are_ranks
from gradinspect.analyses.diff.records import Aspect, GraphDiff
from gradinspect.analyses.diff.values import Tolerance
from gradinspect.analyses.summary import describe_capture, passed_over
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import takes_run_words
from gradinspect.cli.options.sources import Source, Wanted, content_of, parse_line, parse_one, read_source
from gradinspect.cli.options.user_source import path_namer
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.diff_files import DiffFile, parse_diff_targets, write_diff_targets
from gradinspect.cli.output.printing import print_message, print_text
from gradinspect.cli.running.compiled_runs import check_is_comparable, compare_compiled
from gradinspect.errors import FOUND_SOMETHING, GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.data.diff import (
    render_groups_json,
    render_step_github,
    render_step_json,
    render_step_markdown,
)
from gradinspect.renderers.data.json import plain, render_json
from gradinspect.renderers.diff_words import CallDiff, Side, StepDiff
from gradinspect.renderers.terminal.compiled_diff import MAX_ROWS as COMPILED_ROWS
from gradinspect.renderers.terminal.compiled_diff import CompiledDiffPage
from gradinspect.renderers.terminal.diff import MAX_ROWS, DiffPage
from gradinspect.request import Request
from gradinspect.source import STDIN, CaptureFile, Script
from gradinspect.storage import without_own_device

Format = Literal["text", "json", "markdown", "github"]


@takes_run_words
def diff(  # noqa: PLR0913, PLR0917  # the options of a comparison
    run_words: list[str],
    context: typer.Context,
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="A B [C ...]", help="Capture files, or SOURCEs to run.")
    ] = None,
    both: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="'A' 'B'", help="Two command lines to compare: 'train.py -- --amp' 'train.py'."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="Not a difference: bytes, device, lines, order, values.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Exit 1 only if this holds: 'bytes>5%', lost-gradient, ..."),
    ] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Run programs to the end of backward, compare values.")
    ] = False,
    rtol: Annotated[
        float | None,
        typer.Option(min=0, metavar="X", help="Values may differ by X of their norm. Default: by rounding."),
    ] = None,
    atol: Annotated[float, typer.Option(min=0, metavar="X", help="Values may also differ by X.", hidden=True)] = 0.0,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Compare one program, compiled, with itself in eager.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="All rows.")] = False,
    output_format: Annotated[
        Format,
        typer.Option("--format", metavar="KIND", help="Print text, json, markdown or github.", rich_help_panel=OUTPUT),
    ] = "text",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o", metavar="FILE", help="Also show the changes: .html .svg .png .pdf .dot", rich_help_panel=OUTPUT
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.", rich_help_panel=OUTPUT)] = False,
) -> int:
    """Show what changed between two graphs. Exits 1 if anything did.

    gradinspect diff train.py other.py

    gradinspect diff golden.json.gz train.py --ignore lines --fail-on 'bytes>5%'

    gradinspect diff --both 'train.py -- --amp' 'train.py'

    gradinspect diff --compiled train.py
    """
    if compiled:
        without = {
            "--both": both, "--ignore": ignore, "--fail-on": fail_on, "--values": values, "--rtol": rtol is not None,
            "--atol": atol, "-o": output,
        }  # fmt: skip
        program = _one_program(sources or (), run_words, tuple(context.obj or ()), without)
        return _of_compiled(program, output_format, full=full)
    ignored = parse_aspects(ignore or ())
    gates = [parse_gate(text) for text in fail_on or ()]
    targets = parse_diff_targets(output or [], force=force)
    given = _parse_sources(sources or (), both, run_words, tuple(context.obj or ()))
    compared = _Compared(ignored, gates, values, rtol, atol)
    report = _Report(given, compared, output_format, full=full)
    if len(given) > 2:
        if targets:
            raise GradInspectError(
                f"'-o {targets[0].path}' shows two graphs, and {len(given)} were given.", "Give two."
            )
        return report.of_many()
    return report.of_two(lambda compared: write_diff_targets(compared, targets, force=force))


def _one_program(
    sources: Sequence[str], run_words: Sequence[str], arguments: tuple[str, ...], without: Mapping[str, object]
) -> Request:
    """Read the program that is compared with itself.

    Raises:
        GradInspectError: It is not one program, or another option has no effect.
    """
    if len(sources) != 1:
        raise GradInspectError(
            f"'--compiled' compares one program with itself, and {len(sources) or 'none'} "
            f"{'were' if len(sources) > 1 else 'was'} given.",
            "Try: gradinspect diff --compiled train.py",
        )
    request = parse_one(sources[0], [sources[0], *run_words], arguments).request
    check_is_comparable(request, without)
    return request


def _of_compiled(program: Request, output_format: Format, *, full: bool) -> int:
    """Compare a program with itself in eager, and return the exit code.

    Raises:
        GradInspectError: The format is for two sources.
    """
    if output_format not in {"text", "json"}:
        raise GradInspectError(
            f"'--format {output_format}' is for two sources, and '--compiled' has one.", "Use --format json."
        )
    found = compare_compiled(program)
    if output_format == "json":
        print_text(render_json(plain(found)))
    else:
        print_lines(terminal_page(CompiledDiffPage).lines(found, max_rows=None if full else COMPILED_ROWS))
    return 0 if found.is_same else FOUND_SOMETHING


def _parse_sources(
    sources: Sequence[str], both: tuple[str, str] | None, run_words: Sequence[str], arguments: tuple[str, ...]
) -> list[Source]:
    """Read what is compared.

    Raises:
        GradInspectError: There are fewer than two, or an option is about running programs and there is none.
    """
    if both is not None:
        if sources or arguments or run_words:
            extra = (*sources, *run_words, *arguments)[0]
            raise GradInspectError(
                f"'{extra}' and '--both' cannot be combined.", "Write all of it inside the quotes: 'train.py -- --amp'."
            )
        return _of_one_stdin([parse_line(line) for line in both])
    if len(sources) < 2:
        given = f"only '{sources[0]}'" if sources else "none"
        raise GradInspectError(
            f"Two sources are compared, and {given} was given.", "Try: gradinspect diff before.json after.json"
        )
    programs = [name for name in sources if not name.endswith((".json", ".json.gz"))]
    if not programs and (run_words or arguments):
        option = (*run_words, "--")[0]
        raise GradInspectError(
            f"'{option}' is about running a program, and all sources are capture files.", "Remove this option."
        )
    return _of_one_stdin([
        parse_one(name, [name, *run_words] if name in programs else [name], arguments if name in programs else ())
        for name in sources
    ])  # fmt: skip


def _of_one_stdin(sources: list[Source]) -> list[Source]:
    """Check that standard input is read by one source at most.

    Raises:
        GradInspectError: It is read by two.
    """
    if sum(source.request.source == Script(STDIN) for source in sources) > 1:
        raise GradInspectError("'-' can be read only once, and two sources are '-'.", "Give a file for one of them.")
    return sources


def parse_aspects(words: Sequence[str]) -> frozenset[Aspect]:
    """Read what does not count as a difference: `bytes,lines`, or one after the other.

    Raises:
        GradInspectError: There is no such kind of difference.
    """
    known: dict[str, Aspect] = {name: name for name in get_args(Aspect)}
    names = [name.strip() for word in words for name in word.split(",") if name.strip()]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise GradInspectError(f"'--ignore {unknown}' is not a kind of difference.", f"Available: {', '.join(known)}.")
    return frozenset(known[name] for name in names)


class _Compared(NamedTuple):
    """What counts as a difference."""

    ignored: frozenset[Aspect]
    gates: Sequence[Gate]
    has_values: bool
    rtol: float | None
    atol: float

    def diff(self, before: Graph, after: Graph) -> GraphDiff:
        """Compare two graphs."""
        return diff_graphs(before, after, self.ignored, Tolerance(self.atol, self.rtol))


class _Report:
    """Reads the sources, compares them, and prints the result."""

    def __init__(
        self,
        sources: Sequence[Source],
        compared: _Compared,
        output_format: Format,
        *,
        full: bool,
    ) -> None:
        self.sources = sources
        self.compared = compared
        self.format = output_format
        self.full = full

    def of_two(self, write: Callable[[DiffFile], None]) -> int:
        """Compare two, and return the exit code."""
        before, after = (self._read(source, self._wanted) for source in self.sources)
        calls = [self._call(pair) for pair in zip(before, after, strict=False)]
        step = StepDiff(calls, [*self._unmatched(0, before[len(calls) :]), *self._unmatched(1, after[len(calls) :])])
        shown = step.most_telling
        try:
            self._print_step(step)
            if step.is_same and self._wanted != "calls" and not all(map(_is_file, self.sources)):
                print_message("Only this call was compared.")
        finally:  # also if the reader of standard output has left
            write(DiffFile(before[shown], after[shown], *calls[shown]))
        return self._exit_code(step.failures, is_same=step.is_same)

    def _unmatched(self, side: int, graphs: Sequence[Graph]) -> Iterator[str]:
        for graph in graphs:
            call = describe_capture(graph).replace("  ", " ")
            yield f"Only {'AB'[side]} has a call like {call}"

    @property
    def _wanted(self) -> Wanted:
        """What is recorded of a program: all calls of a step, unless one was named, or is all that can be compared."""
        requests = [source.request for source in self.sources]
        if self.compared.has_values:
            return "values"
        is_step = all(one.names_no_call and not one.creates_graph and one.root is None for one in requests)
        return "calls" if is_step and not any(map(_is_file, self.sources)) else "graph"

    def _call(self, graphs: Sequence[Graph]) -> CallDiff:
        labels = [source.label for source in self.sources]
        check_comparable(graphs, labels)
        self._check_values(graphs)
        found = self.compared.diff(graphs[0], graphs[1])
        sides = [Side(label, describe_capture(graph)) for label, graph in zip(labels, graphs, strict=True)]
        return CallDiff(found, sides, self._failures(found))

    @property
    def _are_ranks(self) -> bool:
        return are_ranks([source.label for source in self.sources])

    def _read(self, source: Source, wanted: Wanted = "graph") -> list[Graph]:
        graphs = read_source(source, wanted)
        for sentence in dict.fromkeys(sentence for graph in graphs for sentence in passed_over(graph)):
            print_message(f"{source.label}: {sentence}")
        return [without_own_device(graph) if self._are_ranks else graph for graph in graphs]

    def _check_values(self, graphs: Sequence[Graph]) -> None:
        """Check that values can be compared if that is requested, or say that they are not.

        Raises:
            GradInspectError: A capture has none.
        """
        lacking = [source.label for source, graph in zip(self.sources, graphs, strict=True) if not graph.values]
        is_asked = self.compared.has_values or self.compared.rtol is not None
        if lacking and is_asked:
            raise GradInspectError(
                f"'{lacking[0]}' was captured without values.", "Export it again with --values, or run the program."
            )
        if len(lacking) == 1:
            print_message(f"Values are not compared: '{lacking[0]}' was captured without --values.")

    def _failures(self, found: GraphDiff) -> list[str]:
        return [sentence for gate in self.compared.gates if (sentence := failure(gate, found)) is not None]

    def _exit_code(self, failures: Sequence[str], *, is_same: bool) -> int:
        differs = bool(failures) if self.compared.gates else not is_same
        return FOUND_SOMETHING if differs else 0

    def _print_step(self, step: StepDiff) -> None:
        match self.format:
            case "text":
                page = terminal_page(DiffPage)
                print_lines(page.step(step, max_rows=None if self.full else MAX_ROWS))
            case "json":
                print_text(render_step_json(step))
            case "markdown":
                print_text(render_step_markdown(step))
            case "github":
                print_text(render_step_github(step, path_namer(self.sources[1].request)))

    def of_many(self) -> int:
        """Group many, and return the exit code."""
        if self.format not in {"text", "json"}:
            raise GradInspectError(
                f"'--format {self.format}' is for two sources, and {len(self.sources)} were given.",
                "Give two, or --format json.",
            )
        grouper = Grouper(self.compared.diff)
        kinds: dict[bytes, bytes] = {}  # of files that have been read: equal ones are read once
        are_ranks = self._are_ranks
        for source in self.sources:
            content = content_of(source, are_ranks=are_ranks)
            if content in kinds:
                grouper.add_equal(kinds[content])
            else:
                kinds[content] = grouper.add(self._read(source)[0])
        groups = grouper.groups()
        labels = [source.label for source in self.sources]
        for group in groups[1:]:
            check_comparable((groups[0].graph, group.graph), [labels[g.members[0]] for g in (groups[0], group)])
        found = [group.diff for group in groups if group.diff is not None]
        failures = list(dict.fromkeys(sentence for diff in found for sentence in self._failures(diff)))
        if self.format == "json":
            print_text(render_groups_json(groups, labels, failures))
        else:
            page = terminal_page(DiffPage)
            print_lines(page.groups(groups, labels, failures, max_rows=None if self.full else MAX_ROWS))
        return self._exit_code(failures, is_same=all(diff.is_empty for diff in found))


def _is_file(source: Source) -> bool:
    return isinstance(source.request.source, CaptureFile)


def check_comparable(graphs: Sequence[Graph], labels: Sequence[str]) -> None:
    """Check that two graphs are of the same program, as far as modules show it.

    Raises:
        GradInspectError: Both have modules, and not one in common.
    """
    if not have_common_modules(graphs[0], graphs[1]):
        raise GradInspectError(
            f"'{labels[0]}' and '{labels[1]}' have no module in common.", "Are they captures of the same model?"
        )
