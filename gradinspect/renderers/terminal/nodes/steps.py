"""Screens of the backward debugger: one executed node, the path to it, and the outcome.

NOTE [A brief step]
At a prompt, a tensor with more than four rows of values has only its figures, sizes and strides of saved tensors are
left out, and a formula goes without the functions that only cast to a real dtype. Of many saved tensors or
gradients, as a compiled node has, the first are shown; fewer where one formula gives all of them, which stands at the
first. `print` shows it all, and so does a report.
"""

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.explain.explanation import InputGradient
from gradinspect.analyses.gradients.folded_path import fold_path
from gradinspect.analyses.gradients.stepping import (
    Arrived,
    Passed,
    SavedPreview,
    Step,
    SteppingOutcome,
    TensorPreview,
    place_name,
)
from gradinspect.analyses.structure.call_names import leaf_shown, node_shown, short_name
from gradinspect.analyses.summary import passed_over
from gradinspect.graph import Graph, Node, SavedTensor, module_name, source_of
from gradinspect.renderers.terminal.nodes.number_rows import dtype_and_shape, summarize_values, value_lines
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import wrap
from gradinspect.units import format_count, format_dtype

LABEL_CELLS = 9
_LABEL = " " * LABEL_CELLS
MAX_PRINTED_LINES = 200
MAX_BRIEF_LINES = 4
MAX_BRIEF_PARTS = 12  # saved tensors, or gradients
MAX_OF_ONE_FORMULA = 4  # gradients
INTERNALS = ("_sym_sizes", "_sym_strides", "_sym_sizes_opt")
_TO_REAL = re.compile(r"handle_r_to_c\([^,()]+(?:\(\))?, ")
MAX_NAMED = 8  # nodes that the outcome lists


class StepPage(Page):
    """Writes steps at one width."""

    def __init__(self, *, width: int = 80, unicode: bool = True, is_brief: bool = False) -> None:
        """Choose the characters, and whether to leave out what is rarely looked at: NOTE [A brief step]."""
        super().__init__(width=width, unicode=unicode)
        self._is_brief = is_brief

    def introduction(self, graph: Graph, start: str) -> Iterator[Text]:
        """Yield what is shown before the first step."""
        yield from self.capture_lines(graph)
        yield Text(f"{format_count(len(graph.nodes), 'node')}, one step each. Type help for a list of commands.")
        if start:
            yield from self.wrapped(f"Backward starts with a gradient of {start}.")
        for warning in graph.warnings:
            yield from self.wrapped(warning, "red")
        for number, node in enumerate(graph.nodes):
            stale = next((value for value in node.saved if value.status == "modified"), None)
            if stale is not None:
                where = source_of(graph, node)
                at = f" ({where})" if where else ""
                text = f"#{number} {node.name}{at} will fail: a tensor it saved was modified in place"
                yield from self.wrapped(f"{text}{_versions(stale.tensor)}.", "red")

    def values(self, found: Sequence[TensorPreview | str]) -> Iterator[Text]:
        """Yield the value of an expression; of several, each with its place: `[0]  f32[3]  norm 1`."""
        for place, value in enumerate(found):
            yield from self._value(value, f"[{place}]{GAP}" if len(found) > 1 else "")

    def _value(self, found: TensorPreview | str, place: str) -> Iterator[Text]:
        if isinstance(found, str):
            yield from (Text(self.visible(line)) for line in f"{place}{found}".split("\n")[:MAX_PRINTED_LINES])
            return
        lines = value_lines(found, self.width, MAX_PRINTED_LINES) or []
        if found.num_elements == 1 and lines:
            yield Text(f"{place}{dtype_and_shape(found)}{GAP}{lines[0]}")
        else:
            yield Text(f"{place}{dtype_and_shape(found)}{GAP}{summarize_values(found)}".rstrip())
            yield from map(Text, lines)

    def step(self, graph: Graph, step: Step, formulas: Sequence[InputGradient] = ()) -> Iterator[Text]:
        """Yield the screen of one executed node.

        Args:
            graph: The graph it belongs to.
            step: What was observed.
            formulas: The formulas of its class.
        """
        yield from self._head(graph, step)
        for number, part in enumerate(step.incoming):
            yield from self._incoming(part, number, len(step.incoming))
        yield from self._saved(step.saved)
        if step.check == "leaf":
            yield from self._leaf(graph, step)
        edges = graph.nodes[step.node].next_edges
        passed_on = [place for place in range(len(step.outgoing)) if place < len(edges) and edges[place] is not None]
        written = [self._formula(place_name(graph, step.node, position), formulas) for position in passed_on]
        is_one = len(set(written)) == 1 and bool(written[0])
        shown = passed_on[: self._num_shown(passed_on, MAX_OF_ONE_FORMULA if is_one else MAX_BRIEF_PARTS)]
        for place, position in enumerate(shown):
            is_repeated = self._is_brief and place > 0 and written[place] == written[place - 1]
            formula = "" if is_repeated else written[place]
            yield from self._outgoing(graph, step, position, step.outgoing[position], formula)
        yield from self._left_out(len(passed_on) - len(shown), "gradient")
        if step.check == "watched":
            yield from self._noted(f"Not called by hand: {step.reason}.")

    def _head(self, graph: Graph, step: Step) -> Iterator[Text]:
        node = graph.nodes[step.node]
        step_text = f"step {step.order:,}"
        room = max(self.width - len(step_text) - 2, 10)
        first, *rest = wrap(self.visible(node_shown(graph, step.node)), room, subsequent_indent=GAP)
        head, module = Text(first, "bold"), self._module(graph, node)
        is_beside = not rest and head.cell_len + module.cell_len <= room
        head.append_text(module if is_beside else Text())
        yield head.append(" " * max(self.width - head.cell_len - len(step_text), 2)).append(step_text, "not bold dim")
        yield from (Text(line, "bold") for line in rest)
        if not is_beside:
            yield from (Text(line, "cyan") for line in wrap(module.plain, self.width, subsequent_indent=GAP))
        if node.frame is not None:
            yield Text(self.fit(f"  {source_of(graph, node)}  {graph.frames[node.frame].code}", self.width), "dim")

    def _module(self, graph: Graph, node: Node) -> Text:
        if node.module is None:
            return Text()
        call = graph.modules[node.module]
        name = Text(f"  {self.visible(short_name(call.path, None, graph.model_name))}", "not bold cyan")
        return name.append(
            f" {self.visible(call.class_name)}" + (f" call {call.call}" if call.call > 1 else ""), "not bold"
        )

    def _incoming(self, part: Arrived, number: int, count: int) -> Iterator[Text]:
        notes = []
        if part.num_added > 1:
            notes.append(f"the sum of {part.num_added:,} gradients")
        if part.is_changed:
            notes.append("modified by a hook on the way")
        name = f"[{number}]" if count > 1 else ""
        yield from self._tensor("in" if number == 0 else "", name, part.tensor, notes)

    def _saved(self, saved: Sequence[SavedPreview]) -> Iterator[Text]:
        """Yield the saved tensors, then the other saved values on one line."""
        label = "saved"
        tensors = [value for value in saved if value.tensor is not None]
        shown_tensors = tensors[: self._num_shown(tensors)]
        for value in shown_tensors:
            yield from self._tensor(label, value.name, value.tensor, ())
            label = ""
        yield from self._left_out(len(tensors) - len(shown_tensors), "saved tensor")
        others = [value for value in saved if value.tensor is None]
        shown = [value for value in others if not (self._is_brief and value.name.endswith(INTERNALS))]
        rest = ", ".join(f"{value.name} = {value.text}" for value in shown)
        lines = wrap(self.visible(rest), self.width - LABEL_CELLS, break_on_hyphens=False)
        for number, line in enumerate(lines):
            yield from self._lines(label if number == 0 else "", line)

    def _num_shown(self, parts: Sequence[object], most: int = MAX_BRIEF_PARTS) -> int:
        """Return how many of them are shown; no single one is left out, as its line says no less."""
        is_cut = self._is_brief and len(parts) > most + 1
        return most if is_cut else len(parts)

    def _formula(self, name: str, formulas: Sequence[InputGradient]) -> str:
        """Write the formula of the gradient of an argument; "" if it has none."""
        formula = next((item.formula for item in formulas if item.argument in {name, name.partition("[")[0]}), "")
        return simplified(formula) if self._is_brief else formula

    def _left_out(self, count: int, what: str) -> Iterator[Text]:
        if count:
            yield from self._noted(f"{format_count(count, f'more {what}')}: print")

    def _leaf(self, graph: Graph, step: Step) -> Iterator[Text]:
        leaf = graph.nodes[step.node].leaf
        name = leaf_shown(graph, leaf) or "the leaf"
        if step.before is None:
            yield from self._lines("to", f"{self.visible(name)}.grad, which was None")
        else:
            yield from self._tensor("to", f"{name}.grad, which was", step.before, ())

    def _outgoing(self, graph: Graph, step: Step, position: int, passed: Passed, formula: str) -> Iterator[Text]:
        edge = graph.nodes[step.node].next_edges[position]
        if edge is None:
            return
        name = place_name(graph, step.node, position)
        target = node_shown(graph, edge.next_node)
        slot = f" input {edge.input_nr}" if edge.input_nr else ""
        arrow = "→" if self.unicode else "->"
        yield from self._lines("out", f"{self.visible(name)} {arrow} {self.visible(target)}{slot}", "bold")
        if formula:
            yield from self._noted(f"= {formula}")
        notes = [_reduction(passed)] if passed.made_shape is not None or passed.made_dtype is not None else []
        if passed.is_changed:
            notes.append("differs from the formula: modified by a hook")
        yield from self._tensor("", "", passed.tensor, notes)

    def _tensor(self, label: str, name: str, tensor: TensorPreview | None, notes: Sequence[str]) -> Iterator[Text]:
        """Yield a tensor: shape and statistics, notes, and its values if they fit."""
        head = f"{self.visible(name)}  " if name else ""
        if tensor is None:
            yield from self._lines(label, f"{head}None")
            return
        lines = value_lines(tensor, self.width - LABEL_CELLS)
        if lines is not None and self._is_brief and len(lines) > MAX_BRIEF_LINES:
            lines = None
        numbers = "" if lines is not None and tensor.num_elements <= 1 else summarize_values(tensor)
        single = f"  {lines[0]}" if lines is not None and tensor.num_elements == 1 else ""
        style = "red" if tensor.num_nonfinite else "yellow" if tensor.is_zero else ""
        yield from self._lines(
            label, f"{head}{dtype_and_shape(tensor)}{single}{GAP if numbers else ''}{numbers}", style
        )
        for note in notes:
            yield from self._noted(note, "magenta")
        if lines is not None and tensor.num_elements > 1:
            yield from (Text(f"{_LABEL}{line}") for line in lines)

    def _lines(self, label: str, text: str, style: str = "") -> Iterator[Text]:
        """Wrap a line behind its label: no name is cut, as others on other screens may have its start and its end."""
        lines = wrap(self.visible(text), self.width - LABEL_CELLS, subsequent_indent=GAP, break_on_hyphens=False)
        for line in lines:
            yield Text(f"  {label:<{LABEL_CELLS - 2}}", "dim").append(line, style)
            label = ""

    def _noted(self, text: str, style: str = "dim") -> Iterator[Text]:
        for line in wrap(self.visible(text), self.width - LABEL_CELLS, subsequent_indent=GAP, break_on_hyphens=False):
            yield Text(_LABEL).append(line, style)

    def path(self, graph: Graph, path: Sequence[int], selected: int) -> Iterator[Text]:
        """Yield the nodes from a root to one node, with the selected one marked, and what repeats counted."""
        for part in fold_path(graph, path[::-1], selected):
            if not isinstance(part, int):
                yield Text(
                    self.fit(f"  {self.ellipsis} {len(part):,} more like these, to #{part[-1]}", self.width), "dim"
                )
                continue
            node = graph.nodes[part]
            module = "" if node.module is None else module_name(graph, graph.modules[node.module].path)
            line = source_of(graph, node) or ""
            name = node_shown(graph, part)
            mark, style = ("> ", "bold") if part == selected else ("  ", "")
            texts = (GAP.join(filter(None, (name, *place))) for place in ((module, line), (line,)))
            shown = (self.visible(f"{mark}{text}") for text in texts)
            whole = next((text for text in shown if cell_len(text) <= self.width), None)
            if whole is not None:
                yield Text(whole, style)
            else:  # the module gives way, then the line
                lines = wrap(self.visible(name), self.width, initial_indent=mark, subsequent_indent=GAP * 2)
                yield from (Text(text, style) for text in lines)

    def outcome(self, outcome: SteppingOutcome) -> Iterator[Text]:
        """Yield how the steps compare with what the engine did."""
        graph = outcome.graph
        yield from self.wrapped(" ".join(passed_over(graph)))
        if not outcome.is_complete:
            steps = format_count(outcome.num_steps, "step")
            yield from self.wrapped(f"Stopped after {steps}; nothing was compared: 'continue' goes to the end.")
            return
        yield from self.wrapped(f"Backward is done: {format_count(outcome.num_steps, 'step')}.", "bold")
        by_hand = outcome.num_equal + len(outcome.differing)
        if by_hand:
            each = "each" if by_hand > 1 else "it"
            share = each if not outcome.differing else f"{outcome.num_equal:,} of them"
            yield from self.wrapped(
                f"{format_count(by_hand, 'formula')} called by hand; {share} gave exactly what the engine returned."
            )
        for number in outcome.differing[:MAX_NAMED]:
            yield from self.wrapped(
                f"#{number} {graph.nodes[number].name} did not: a hook modified its result.", indent=GAP
            )
        for number in outcome.changed[:MAX_NAMED]:
            name = graph.nodes[number].name
            yield from self.wrapped(f"#{number} {name} received a gradient that a hook had modified.", indent=GAP)
        for reason, count in outcome.watched:
            yield from self.wrapped(f"{format_count(count, 'node')} only observed: {reason}.")
        yield from self._leaves(outcome)

    def _leaves(self, outcome: SteppingOutcome) -> Iterator[Text]:
        """Yield how the gradients of leaves compare with the sums of the steps."""
        what = "gradient that autograd.grad returned" if outcome.graph.captured_at.kind == "grad" else "leaf gradient"
        total = outcome.num_leaves + len(outcome.differing_leaves)
        if total:
            agree = "bit-equal" if not outcome.differing_leaves else f"{outcome.num_leaves:,} bit-equal"
            plural = what if total == 1 else what.replace("gradient", "gradients", 1)
            yield from self.wrapped(f"{total:,} {plural} compared with the sums of these steps: {agree}.")
        if outcome.num_unread_leaves:
            unread = format_count(outcome.num_unread_leaves, "leaf gradient")
            yield from self.wrapped(f"{unread} not compared: their values cannot be read.")
        if outcome.differing_leaves:
            yield from self.wrapped(
                f"Not equal: {', '.join(outcome.differing_leaves)}: something other than backward changed it.", "yellow"
            )


def simplified(formula: str) -> str:
    """Write a formula without `handle_r_to_c(dtype, x)`, which casts a complex gradient of a real tensor to real."""
    while (found := _TO_REAL.search(formula)) is not None:
        end, depth = found.end(), 1
        while end < len(formula) and depth:
            depth += {"(": 1, ")": -1}.get(formula[end], 0)
            end += 1
        if depth:
            return formula
        formula = formula[: found.start()] + formula[found.end() : end - 1] + formula[end:]
    return formula


def _versions(tensor: SavedTensor | None) -> str:
    if tensor is None or tensor.version is None:
        return ""
    return f"; it is at version {tensor.version}, but version {tensor.expected_version} was saved"


def _reduction(passed: Passed) -> str:
    """Say what the engine did to a gradient after applying the formula."""
    found = passed.tensor
    before = "" if passed.made_shape is None else f"[{', '.join(map(str, passed.made_shape))}]"
    parts = []
    if passed.made_shape is not None:
        parts.append(f"the formula gives {before}; the engine sums it to the shape of the forward input")
    if passed.made_dtype is not None and found is not None:
        parts.append(f"cast from {format_dtype(passed.made_dtype)} to {format_dtype(found.dtype)}")
    return "; ".join(parts)
