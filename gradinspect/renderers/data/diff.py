"""What differs between two graphs, as JSON, as Markdown for a comment, and as annotations in a GitHub pull request."""

from collections.abc import Callable, Iterator, Sequence

from gradinspect.analyses.diff.groups import Group
from gradinspect.analyses.diff.records import ChangedRow, GraphDiff, Pair
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.renderers.data.findings.findings import escape_message, escape_property
from gradinspect.renderers.data.json import plain, render_json
from gradinspect.renderers.data.markdown import code, render_markdown
from gradinspect.renderers.diff_words import (
    LEAF_WORDS,
    MODULE_WORDS,
    SIGNS,
    ChangedLine,
    Side,
    StepDiff,
    apart_from_lines,
    change_of,
    class_words,
    described,
    first_values,
    model_of,
    names_of_leaves,
    place_of,
    step_summary,
    summary,
    value_summary,
)
from gradinspect.units import format_bytes, format_change, format_count, format_tensor

MAX_ROWS = 50  # in a comment


def render_step_json(step: StepDiff) -> str:
    """Write everything of the first call that differs, with the nodes of each row; and all calls, if there are more."""
    calls = [
        {
            "before": call.sides[0]._asdict(),
            "after": call.sides[1]._asdict(),
            "is_same": call.diff.is_empty,
            "failed": tuple(call.failures),
            **dict(_fields(call.diff)),
        }
        for call in step.calls
    ]
    several = {"calls": calls, "unmatched": tuple(step.unmatched)} if len(calls) > 1 or step.unmatched else {}
    whole = {"is_same": step.is_same, "failed": tuple(step.failures)}
    return render_json({**calls[step.most_telling], **whole, **several})


def render_groups_json(groups: Sequence[Group], labels: Sequence[str], failures: Sequence[str]) -> str:
    """Write which captures are equal, and what differs between the first group and each other one."""
    written = [
        {
            "members": [labels[member] for member in group.members],
            "diff": None if group.diff is None else dict(_fields(group.diff)),
        }
        for group in groups
    ]
    return render_json({"is_same": len(groups) == 1, "failed": tuple(failures), "groups": written})


def _fields(diff: GraphDiff) -> Iterator[tuple[str, object]]:
    for name in diff.__struct_fields__:
        value = getattr(diff, name)
        if isinstance(value, Pair):
            yield name, {"before": value.before, "after": value.after, "change": value.change}
        else:
            yield name, plain(value)


def render_step_markdown(step: StepDiff) -> str:
    """Write a comment on each call that differs, or on the first."""
    telling = [call for call in step.calls if not call.diff.is_empty or call.failures] or step.calls[:1]
    parts = [render_diff_markdown(*call) for call in telling]
    if len(step.calls) > 1 or step.unmatched:
        parts += [f"{code(sentence)}\n" for sentence in step.unmatched]
        parts.append(f"{step_summary(step)}.\n")
    return "\n".join(parts)


def render_diff_markdown(diff: GraphDiff, sides: Sequence[Side], failures: Sequence[str]) -> str:
    """Write a comment: the sum, the figures, a table of the changes, and what failed."""
    title = f"### Autograd graph: {code(sides[0].label)} → {code(sides[1].label)}\n\n"
    parts = [title, f"{summary(diff)}.\n"]
    parts += [f"\n**Failed** {code(sentence)}\n" for sentence in failures]
    if diff.is_empty:
        return "".join(parts)
    parts += ["\n", render_markdown(("", "before", "after", "change"), _figures(diff))]
    if classes := class_words(diff):
        parts.append(f"\nClasses: {code(classes)}\n")
    rows, lines = apart_from_lines(diff.rows)
    if rows:
        headers = ("module", "change", "what", "bytes held", "line")
        parts += ["\n", render_markdown(headers, (_cells(diff, row) for row in rows[:MAX_ROWS]))]
    if len(rows) > MAX_ROWS:
        parts.append(f"\n{len(rows) - MAX_ROWS:,} more rows.\n")
    listed = [*_line_items(lines), *_leaf_items(diff), *_module_items(diff), *_value_items(diff)]
    return "".join([*parts, *(["\n"] if listed else []), *listed])


def _figures(diff: GraphDiff) -> Iterator[tuple[str, ...]]:
    for name, pair in (("nodes", diff.nodes), ("edges", diff.edges), ("leaves", diff.leaves)):
        yield name, f"{pair.before:,}", f"{pair.after:,}", f"{pair.change:+,}" if pair.change else ""
    held = diff.held_bytes
    change = format_change(held.change) if held.change else ""
    yield "bytes held", format_bytes(held.before), format_bytes(held.after), change


def _cells(diff: GraphDiff, row: ChangedRow) -> tuple[str, ...]:
    times = f" ×{row.count:,}" if row.count > 1 else ""
    details = "; ".join(described(diff, row, 4))
    info = code(format_tensor(row.info)) if row.info is not None and row.kind != "changed" else ""
    what = " ".join(filter(None, (f"{code(row.what)}{times}", info, code(details))))
    held = format_change(row.held_bytes) if row.held_bytes else ""
    return code(place_of(diff, row)), SIGNS[row.kind], what, held, code(row.line)


def _line_items(lines: Sequence[ChangedLine]) -> Iterator[str]:
    for line in lines[:MAX_ROWS]:
        nodes = format_count(len(line.nodes), "node")
        yield f"- line {code(line.place)}, {nodes}: {code(line.before or '(none)')} → {code(line.after or '(none)')}\n"
    if len(lines) > MAX_ROWS:
        yield f"- {format_count(len(lines) - MAX_ROWS, 'more line')}\n"


def _leaf_items(diff: GraphDiff) -> Iterator[str]:
    for kind, words in LEAF_WORDS.items():
        for name, same in names_of_leaves(diff, [change for change in diff.leaf_changes if change.kind == kind]):
            yield f"- {words}: {code(name)}{f' ×{len(same):,}' if len(same) > 1 else ''}\n"


def _module_items(diff: GraphDiff) -> Iterator[str]:
    for change in diff.module_changes:
        sides = zip((change.before, change.after), diff.model_names, strict=True)
        names = " → ".join(dict.fromkeys(code(shown_path(name, model)) for name, model in sides if name))
        yield f"- module {MODULE_WORDS.get(change.kind, change.kind)} {names} {code(change.class_name)}\n"


def _value_items(diff: GraphDiff) -> Iterator[str]:
    values = diff.values
    if values is None or values.is_empty:
        return
    for direction, where, distance in first_values(values, diff.model_names[1]):
        yield f"- first value that differs in {direction}: {' '.join(map(code, where))} {distance}\n"
    yield f"- {value_summary(values)}\n"


def render_step_github(step: StepDiff, path_of: Callable[[str], str]) -> str:
    """Write the annotations of each call, and a warning for each call that only one program makes.

    Args:
        step: What was compared.
        path_of: Maps a file name in B's record to its path in the repository.
    """
    lines = [f"::warning title=gradinspect diff::{escape_message(sentence)}\n" for sentence in step.unmatched]
    return "".join([*(render_diff_github(call.diff, call.failures, path_of) for call in step.calls), *lines])


def render_diff_github(diff: GraphDiff, failures: Sequence[str], path_of: Callable[[str], str]) -> str:
    """Write one annotation per row and leaf, and one error per condition that failed.

    Args:
        diff: What differs.
        failures: Why the gates fail.
        path_of: Maps a file name in B's record to its path in the repository.
    """
    lines = [f"::error title=gradinspect diff::{escape_message(sentence)}" for sentence in failures]
    rows, changed = apart_from_lines(diff.rows)
    lines += [_annotation(diff, row, path_of) for row in rows]
    lines += [_line_annotation(line, path_of) for line in changed]
    lines += [
        f"::warning title=gradinspect diff::{escape_message(f'{LEAF_WORDS[change.kind]}: {name}')}"
        for change in diff.leaf_changes
        for name in (shown_path(change.name, model_of(diff, change)),)
    ]
    return "".join(f"{line}\n" for line in lines)


def _line_annotation(line: ChangedLine, path_of: Callable[[str], str]) -> str:
    text = f"line of {format_count(len(line.nodes), 'node')}: {change_of(line)}"
    return f"::notice{_where(line.place, path_of)}title=gradinspect diff::{escape_message(text)}"


def _where(place: str, path_of: Callable[[str], str]) -> str:
    file, _, line = place.rpartition(":")
    return f" file={escape_property(path_of(file))},line={line}," if file else " "


def _annotation(diff: GraphDiff, row: ChangedRow, path_of: Callable[[str], str]) -> str:
    where = _where("" if row.kind == "removed" else row.line, path_of)
    times = f" ×{row.count:,}" if row.count > 1 else ""
    held = f" {format_change(row.held_bytes)}" if row.held_bytes else ""
    details = "; ".join(described(diff, row))
    text = f"{place_of(diff, row)}: {SIGNS[row.kind]} {row.what}{times}{held}{f' ({details})' if details else ''}"
    return f"::notice{where}title=gradinspect diff::{escape_message(text)}"
