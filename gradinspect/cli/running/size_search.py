"""Search for the largest batch, sequence or image with which a program's steps fit.

NOTE [What is searched for]
The program is not changed, so it must be known where its size comes from: `{batch}` in the place of a number in
--input, in the script's arguments, or in an expression; or a name that the script sets to a whole number, as
`batch_size = 16` outside functions, or `DataLoader(data, batch_size=16)`. `world-size` is not a name in the program,
but the number of ranks, of which the first one is run without the others; a `{world-size}` gets the number, too.
"""

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from gradinspect.analyses.memory.step import StepMemory, needed_bytes
from gradinspect.analyses.planning.boundary import SizeRow
from gradinspect.analyses.planning.rank_numbers import RANKS_WITHOUT_LIMIT, WORLD_SIZE, RankSearch
from gradinspect.analyses.planning.size_pairs import PairSearch, PairTable
from gradinspect.analyses.planning.sizes import SIZES_WITHOUT_LIMIT, SizeSearch, SizeTable
from gradinspect.cli.options.fake_jobs import fake_job
from gradinspect.cli.output.printing import print_message
from gradinspect.cli.running.forked_runs import ForkedRuns
from gradinspect.cli.running.sign_of_life import sign_of_life
from gradinspect.cli.running.values_first import StepRuns
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.request import Request
from gradinspect.runner.programs.numbers_in_source import numbers_in
from gradinspect.source import STDIN, Expression, Script
from gradinspect.units import escape_control, format_beside, parse_whole


def search_size(request: Request, name: str, limit: int | None, num_steps: int) -> SizeTable:
    """Run the program with one size after the other, or as a rank of more and more.

    Raises:
        GradInspectError: It is not known what the name stands for, or no size can be run.
    """
    _check_can_be_searched(request, name)
    runs = _SizedRuns(request, num_steps, limit)
    by_ranks = name == WORLD_SIZE
    sizes = RANKS_WITHOUT_LIMIT if by_ranks else SIZES_WITHOUT_LIMIT
    rows: tuple[SizeRow, ...]
    best, step = None, 1
    with sign_of_life(f"sizes of {escape_control(request.label)}"):
        if limit is None:
            rows = tuple(runs.measure({name: size}, size) for size in sizes)
        else:
            search = (RankSearch if by_ranks else SizeSearch)(limit, lambda size: runs.measure({name: size}, size))
            rows, best = search.run()
            step = search.tried.step
    runs.check_any(rows[-1].failure)
    changes_nothing = not by_ranks and len({row.peak_bytes for row in rows if not row.failure}) == 1 < len(rows)
    if changes_nothing and best == rows[-1].size:
        raise GradInspectError(
            f"'{name}' changes nothing: from {rows[0].size} to {best} the peak is the same.", _MARK.format(_mark(name))
        )
    sent = runs.shown(max(rows, key=lambda row: (not row.failure, row.size)).size) if by_ranks else None
    memory = runs.shown(best) or runs.last
    return SizeTable(
        source=request.label,
        name=name,
        limit=limit,
        rows=rows,
        largest=None if by_ranks else best,
        smallest=best if by_ranks else None,
        not_counted=memory.not_counted,
        notes=(
            *([_NOT_SHARED] if sent is not None and not sent.collectives else []),
            *([f"The peak is the same with each {name}. {_MARK.format(_mark(name))}"] if changes_nothing else []),
            *([f"Other {name}s were not run: the program fails with some of them."] if step > 1 else []),
            *runs.notes(memory),
        ),
    )


_MARK = "Write {} for its number in --input or in the script's arguments, if it is set elsewhere."
_NOT_SHARED = "The program sends nothing to other ranks: nothing is shared among them, so more ranks change nothing."


def search_pair(request: Request, names: tuple[str, str], limit: int | None, num_steps: int) -> PairTable:
    """Run the program with one pair of sizes after the other.

    Raises:
        GradInspectError: It is not known what a name stands for, or no pair can be run.
    """
    first, second = names if names[1] != WORLD_SIZE else names[::-1]
    for name in (first, second):
        _check_can_be_searched(request, name)
    runs = _SizedRuns(request, num_steps, limit)
    search = PairSearch((first, second), limit, lambda one, other: runs.measure({first: one, second: other}, other))
    with sign_of_life(f"sizes of {escape_control(request.label)}"):
        rows = search.run()
    runs.check_any(rows[-1].rows[-1].failure)
    return PairTable(
        source=request.label,
        names=(first, second),
        limit=limit,
        rows=rows,
        not_counted=runs.last.not_counted,
        notes=runs.notes(runs.last),
    )


class _SizedRuns:
    """Runs one program with other numbers, and says what each has shown."""

    def __init__(self, request: Request, num_steps: int, limit: int | None) -> None:
        """Start with none."""
        self._request = request
        self._limit = limit
        self._steps = StepRuns(ForkedRuns(request), num_steps)
        self._found: dict[str, StepMemory] = {}
        self._sizes: dict[int, str] = {}  # names of what was found, by the size that is searched for

    def measure(self, numbers: Mapping[str, int], size: int) -> SizeRow:
        """Run one; `size` is the number that the row is about."""
        named = ", ".join(f"{name} {number}" for name, number in numbers.items())
        row = self._measured(numbers, named, size)
        print_message(f"{named}: {row.failure or _peak_and_verdict(row, self._limit)}")
        return row

    def _measured(self, numbers: Mapping[str, int], named: str, size: int) -> SizeRow:
        request = self._request
        for name, number in numbers.items():
            request = with_size(request, name, number)
        try:
            memory = self._steps.memory(request)
        except (GradInspectError, ScriptFailedError) as error:
            return SizeRow(size=size, failure=str(error))
        self._found[named] = memory
        self._sizes[size] = named
        return SizeRow(size=size, peak_bytes=needed_bytes(memory))

    def check_any(self, failure: str) -> None:
        """Check that something could be run.

        Raises:
            GradInspectError: Nothing could, for this reason.
        """
        if not self._found:
            raise GradInspectError(f"No size could be run; the last one: {failure}", "Try it without --search.")

    @property
    def last(self) -> StepMemory:
        """The largest that was run."""
        return self._found[self._sizes[max(self._sizes)]]

    def shown(self, size: int | None) -> StepMemory | None:
        """Return the run of one size; None if there is none."""
        return self._found[self._sizes[size]] if size in self._sizes else None

    def notes(self, memory: StepMemory) -> tuple[str, ...]:
        """Say of a run what to know; where values come from that were read: with each size, from steps of that size."""
        named = next(name for name, one in self._found.items() if one is memory)
        values = memory.values_from
        return (*([f"With {named}, {values[0].lower()}{values[1:]}"] if values else []), *memory.notes)


def _peak_and_verdict(row: SizeRow, limit: int | None) -> str:
    """Say what one size needs: `662.0 KiB, fits`."""
    verdict = "" if limit is None else ", fits" if row.peak_bytes <= limit else ", does not fit"
    return f"{format_beside(row.peak_bytes, limit)}{verdict}"


class WholeSize(NamedTuple):
    """What a program calls the size of its batch, and how large it is."""

    name: str
    number: int


def whole_size(request: Request, text: str) -> WholeSize:
    """Read `batch_size`, which the script sets to a number, or `batch=64`, which stands for `{batch}`.

    Raises:
        GradInspectError: It is not known what the name stands for, or how large it is.
    """
    name, _, number = text.partition("=")
    check_size_is_known(request, name)
    if _is_marked(request, name):
        size = parse_whole(number)
        if not size:
            raise GradInspectError(f"'--split {text}' does not say how large '{name}' is.", f"Write --split {name}=64.")
        return WholeSize(name, size)
    if number:
        raise GradInspectError(f"'--split {text}': the script itself sets '{name}'.", f"Write --split {name}.")
    return WholeSize(name, numbers_of(request)[name][0])


def with_size(request: Request, name: str, size: int) -> Request:
    """Put a size wherever it is named. NOTE [What is searched for]."""
    source, mark = request.source, _mark(name)
    if name == WORLD_SIZE:
        request = replace(request, job=fake_job(size, None), fake=True)
    if isinstance(source, Script) and name != WORLD_SIZE and not _is_marked(request, name):
        source = replace(source, numbers=(*source.numbers, (name, size)))
    elif isinstance(source, Expression):
        source = replace(source, text=source.text.replace(mark, str(size)))
    return replace(
        request,
        source=source,
        inputs=tuple(spec.with_size(name, size) for spec in request.inputs),
        arguments=tuple(argument.replace(mark, str(size)) for argument in request.arguments),
    )


def _mark(name: str) -> str:
    return f"{{{name}}}"


def _is_marked(request: Request, name: str) -> bool:
    text = request.source.text if isinstance(request.source, Expression) else ""
    return (
        any(name in spec.size_names for spec in request.inputs)
        or any(_mark(name) in argument for argument in request.arguments)
        or _mark(name) in text
    )


def check_size_is_known(request: Request, name: str) -> None:
    """Check that it is known what a name stands for.

    Raises:
        GradInspectError: It is not, or it stands for several numbers.
    """
    if _is_marked(request, name):
        return
    numbers = numbers_of(request)
    given = next((word for word in request.arguments if _option_name(word) == name), None) if name in numbers else None
    if given is not None:
        raise GradInspectError(
            f"'{given}' in the script's arguments gives '{name}' its number, whatever the script has.",
            f"Write {given.partition('=')[0]} {_mark(name)} there.",
        )
    values = sorted(set(numbers.get(name, ())))
    if len(values) > 1:
        raise GradInspectError(
            f"'{request.label}' sets '{name}' to {' and '.join(map(str, values))}.",
            f"Write {_mark(name)} in its arguments.",
        )
    if not values:
        near = difflib.get_close_matches(name, numbers, n=1, cutoff=0.4)
        near = near or difflib.get_close_matches(name, [WORLD_SIZE], cutoff=0.8)
        hint = f"Did you mean --search {near[0]}?" if near else _HOW.format(name=name, mark=_mark(name))
        raise GradInspectError(f"'{request.label}' does not say what '{name}' is.", hint)


def _option_name(word: str) -> str:
    """Return the name that argparse gives an option: `batch_size` of `--batch-size=8`; empty: it is none."""
    return word.partition("=")[0].removeprefix("--").replace("-", "_") if word.startswith("--") else ""


def _check_can_be_searched(request: Request, name: str) -> None:
    """Check that it is known what a name stands for, and that the number of ranks may be chosen.

    Raises:
        GradInspectError: It is not, or the number was given, or this process is a rank of a real job.
    """
    if name != WORLD_SIZE:
        check_size_is_known(request, name)
        return
    if request.job is not None:
        raise GradInspectError(
            f"'--search {WORLD_SIZE}' and '--world-size {request.job.world_size}' both say how many ranks there are.",
            "Remove one.",
        )
    fake_job(1, None)


_HOW = "Write {mark} for its number in --input or in the script's arguments, or set {name} to a number in the script."


def numbers_of(request: Request) -> dict[str, list[int]]:
    """Return the numbers that a script gives to names."""
    if not isinstance(request.source, Script) or request.source.path == STDIN or request.source.path.suffix != ".py":
        return {}
    try:
        return numbers_in(request.source.path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
