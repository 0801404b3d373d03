"""Search for the largest batch, sequence or image with which a program's steps fit.

NOTE [What is searched for]
The program is not changed, so it must be known where its size comes from: `{batch}` in the place of a number in
--input, in the script's arguments, or in an expression; or a name that the script sets to a whole number, as
`batch_size = 16` outside functions, or `DataLoader(data, batch_size=16)`.
"""

import difflib
from dataclasses import replace
from typing import NamedTuple

from gradinspect.analyses.memory.step import StepMemory, needed_bytes
from gradinspect.analyses.planning.sizes import SIZES_WITHOUT_LIMIT, SizeRow, SizeSearch, SizeTable
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
    """Run the program with one size after the other.

    Raises:
        GradInspectError: It is not known what the name stands for, or no size can be run.
    """
    check_size_is_known(request, name)
    runs = ForkedRuns(request)
    steps = StepRuns(runs, num_steps)
    found: dict[int, StepMemory] = {}

    def measure(size: int) -> SizeRow:
        row = measured(size)
        print_message(_progress(name, row, limit))
        return row

    def measured(size: int) -> SizeRow:
        try:
            memory = steps.memory(with_size(request, name, size))
        except (GradInspectError, ScriptFailedError) as error:
            return SizeRow(size=size, failure=str(error))
        found[size] = memory
        return SizeRow(size=size, peak_bytes=needed_bytes(memory))

    with sign_of_life(f"sizes of {escape_control(request.label)}"):
        if limit is None:
            rows, largest = tuple(map(measure, SIZES_WITHOUT_LIMIT)), None
        else:
            rows, largest = SizeSearch(limit, measure).run()
    if not found:
        raise GradInspectError(
            f"With '{name}' from 1 to {rows[-1].size}: {rows[-1].failure}", "Try it without --search."
        )
    shown = largest if largest in found else max(found)
    memory = found[shown]
    return SizeTable(
        source=request.label,
        name=name,
        limit=limit,
        rows=rows,
        largest=largest,
        not_counted=memory.not_counted,
        notes=(*_values_note(name, shown, memory.values_from), *memory.notes),
    )


def _values_note(name: str, size: int, values_from: str) -> tuple[str, ...]:
    """Say where values come from that were read: with each size, from steps of that size."""
    return (f"With {name} {size}, {values_from[0].lower()}{values_from[1:]}",) if values_from else ()


def _progress(name: str, row: SizeRow, limit: int | None) -> str:
    """Say what one size has shown: `batch_size 64: 662.0 KiB, fits`."""
    if row.failure:
        return f"{name} {row.size}: {row.failure}"
    verdict = "" if limit is None else ", fits" if row.peak_bytes <= limit else ", does not fit"
    return f"{name} {row.size}: {format_beside(row.peak_bytes, limit)}{verdict}"


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
    if isinstance(source, Script) and not _is_marked(request, name):
        source = replace(source, numbers=((name, size),))
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
    values = sorted(set(numbers.get(name, ())))
    if len(values) > 1:
        raise GradInspectError(
            f"'{request.label}' sets '{name}' to {' and '.join(map(str, values))}.",
            f"Write {_mark(name)} in its arguments.",
        )
    if not values:
        near = difflib.get_close_matches(name, numbers, n=1, cutoff=0.4)
        hint = f"Did you mean --search {near[0]}?" if near else _HOW.format(name=name, mark=_mark(name))
        raise GradInspectError(f"'{request.label}' does not say what '{name}' is.", hint)


_HOW = "Write {mark} for its number in --input or in the script's arguments, or set {name} to a number in the script."


def numbers_of(request: Request) -> dict[str, list[int]]:
    """Return the numbers that a script gives to names."""
    if not isinstance(request.source, Script) or request.source.path == STDIN or request.source.path.suffix != ".py":
        return {}
    try:
        return numbers_in(request.source.path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
