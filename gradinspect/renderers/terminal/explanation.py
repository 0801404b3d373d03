"""The explanation of a node class, for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from gradinspect.analyses.explain.custom_functions import CustomFunction, describe_place
from gradinspect.analyses.explain.double_backward import DoubleBackward
from gradinspect.analyses.explain.explanation import Explanation, InputGradient, NodeFacts, SourceLine
from gradinspect.renderers.terminal.page import Page
from gradinspect.renderers.terminal.text import wrap

LABEL_CELLS = 17
MIN_WIDTH = 40


class ExplanationPage(Page):
    """Writes explanations at one width."""

    def __init__(self, *, width: int = 80, unicode: bool = True) -> None:
        """Leave room for a column beside the labels."""
        super().__init__(width=max(width, MIN_WIDTH), unicode=unicode)

    def explanation(self, found: Explanation) -> Iterator[Text]:
        """Yield the screen of one class."""
        yield Text(self.visible(found.name), "bold")
        yield from self.paragraph(found.text)
        if found.signature:
            yield from self._labeled("backward of", found.signature)
        for _, group in groupby(found.gradients, key=lambda gradient: gradient.formula):
            yield from self._gradient(list(group))
        if found.signature:
            yield Text()
            yield from self._saves(found)
        double = found.double_text if found.double is None else _double(found.double)
        if double:
            yield from self._labeled("double backward", double)
        for source in found.sources:
            yield from self._source(source)
        if found.breakpoint:
            yield from self._labeled("gdb", f"break {found.breakpoint}")
        if found.facts is not None:
            yield from self._facts(found.facts)

    def _saves(self, found: Explanation) -> Iterator[Text]:
        if found.not_differentiable:
            yield from self._labeled("no gradient for", ", ".join(found.not_differentiable))
        yield from self._labeled("saves", ", ".join(found.saved) or "nothing that Python can read")
        if found.outputs:
            are = "is an output" if len(found.outputs) == 1 else "are outputs"
            yield from self._labeled("", f"{', '.join(found.outputs)} {are} of the forward op")

    def _source(self, source: SourceLine) -> Iterator[Text]:
        """Yield a source location and its address, each on an unbroken line so that it can be copied."""
        place = f"{source.place.file}:{source.place.line}"
        if len(source.what) < LABEL_CELLS:
            yield Text(f"{source.what:<{LABEL_CELLS}}", "dim").append(place, "default")
        else:
            yield from (Text(source.what, "dim"), Text(f"  {place}"))
        if source.address is not None:
            yield Text(f"  {source.address}", "dim")

    def _facts(self, facts: NodeFacts) -> Iterator[Text]:
        yield Text()
        yield self.title(f"#{facts.node} of {facts.where}")
        for label, text in (
            ("forward output", ", ".join(facts.outputs)),
            ("module", facts.module),
            ("line", facts.line),
            ("class", facts.function),
            ("made by", None if facts.made_by is None else f"the backward of {facts.made_by}"),
        ):
            if text:
                yield from self._labeled(label, text)
        for label, lines in (("next_functions", facts.edges), ("saved", facts.saved), ("hooks", facts.hooks)):
            for index, line in enumerate(lines):
                yield from self._labeled("" if index else label, line)

    def _gradient(self, inputs: Sequence[InputGradient]) -> Iterator[Text]:
        names = ", ".join(gradient.argument for gradient in inputs)
        places = ", ".join(f"[{gradient.place}]" for gradient in inputs if gradient.place)
        noun = "gradient of" if len(inputs) == 1 else "gradients of"
        yield Text()
        words = f"  next_functions{places}" if places else ""
        line = Text(f"{noun} ").append(self.visible(names), "bold").append(words, "dim")
        if line.cell_len <= self.width:
            yield line
        else:
            yield from self.paragraph(line.plain)
        yield from self.paragraph(inputs[0].formula, indent="  ")

    def custom(self, function: CustomFunction) -> Iterator[Text]:
        """Yield the screen of a custom autograd.Function."""
        yield Text(self.visible(function.name), "bold")
        yield from self._labeled("autograd.Function", f"{function.file}:{function.line}")
        yield from self.paragraph(function.docstring)
        for part in (function.forward, function.backward):
            if part:
                yield Text()
                yield from (Text(self.visible(line)) for line in part.splitlines())
        yield Text()
        yield from self._labeled("pdb", f"break {describe_place(function)}")

    def names(self, names: Sequence[tuple[str, str]]) -> Iterator[Text]:
        """Yield one line per class: its name and its forward op."""
        widest = min(max((len(name) for name, _ in names), default=0), self.width // 2)
        for name, signature in names:
            line = Text(f"{self.visible(name):<{widest}}  ").append(self.visible(signature), "dim")
            line.truncate(self.width, overflow="ellipsis" if self.unicode else "crop")
            line.rstrip()
            yield line

    def _labeled(self, label: str, text: str, style: str = "") -> Iterator[Text]:
        if len(label) >= LABEL_CELLS:
            yield Text(self.visible(label), "dim")
            label = ""
        lines = wrap(self.visible(text), self.width - LABEL_CELLS, break_on_hyphens=False, break_long_words=False) or [
            ""
        ]
        for index, line in enumerate(lines):
            head = Text(f"{label if index == 0 else '':<{LABEL_CELLS}}", "dim")
            yield head.append(line, style)

    def visible(self, text: str) -> str:
        """Join the lines of a multi-line text, such as a docstring."""
        return super().visible(text.replace("\n", " "))


def _double(double: DoubleBackward) -> str:
    through = f", through {', '.join(double.nodes)}" if double.nodes else ""
    helpers = " and ".join(f"{name}()" for name in double.helpers)
    match double.verdict:
        case "yes":
            return f"yes{through}"
        case "unknown":
            are, they = ("is", "which is") if len(double.helpers) == 1 else ("are", "which are")
            return f"yes if {helpers} {are}, {they} C++ and not analyzed{through}"
        case "no" if double.missing:
            has = "has" if len(double.missing) == 1 else "have"
            return f"no: {' and '.join(double.missing)} {has} no derivative"
        case _:
            return "no: derivatives.yaml says not_implemented"
