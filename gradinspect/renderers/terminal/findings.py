"""Findings for a terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from gradinspect.checks.findings import Finding, Findings, Place
from gradinspect.checks.rule import Rule
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import wrap

MIN_WIDTH = 40
LABEL_CELLS = 10  # of the column with the role of a line


class FindingsPage(Page):
    """Writes findings at one width."""

    def __init__(self, *, width: int = 80, unicode: bool = True) -> None:
        """Leave room for a column beside the labels."""
        super().__init__(width=max(width, MIN_WIDTH), unicode=unicode)

    def lines(self, found: Findings) -> Iterator[Text]:
        """Yield each finding (headline, source lines, why, what to do), then the notes and a line with the count."""
        for finding in found.findings:
            yield from self._finding(finding)
            yield Text()
        notes = (*found.notes, *suppressed_note(found.suppressed))
        for note in notes:
            yield from (Text(line, "dim") for line in self._parts(note, 2))
        style = "bold red" if found.findings else "bold yellow" if found.has_failed else "bold green"
        yield Text(self.visible(f"{found.headline} {found.scope}"), style)

    def rule(self, rule: Rule) -> Iterator[Text]:
        """Yield what a code means, a program with the mistake as a change to one without it, and what to do."""
        yield from self._headline(rule.code, rule.title)
        for part in (rule.summary, rule.explanation):
            yield Text()
            yield from (Text(line) for line in self._parts(part, 0))
        yield Text()
        yield Text(f"{GAP}{GAP}$ {rule.command} sample.py", "dim")
        for line in rule.change.splitlines():
            yield Text(f"{GAP}{line}".rstrip(), {"-": "red", "+": "green"}.get(line[:1], "default"))
        yield Text()
        yield from (Text(line, "green") for line in self._parts(rule.remedy, 0))

    def _headline(self, code: str, title: str) -> Iterator[Text]:
        for index, line in enumerate(self._parts(f"{code}  {title}", len(code) + 2)):
            text = Text(line, "bold")
            if not index:
                text.stylize("red", 0, len(code))
            yield text

    def _finding(self, finding: Finding) -> Iterator[Text]:
        yield from self._headline(finding.code, finding.title)
        where = max((len(_where(place)) for place in finding.places), default=0)
        for place in finding.places:
            yield self._place(place, min(where, self.width // 2))
        yield from self._labeled("why", finding.text)
        yield from self._labeled("do", finding.remedy, "green")

    def _place(self, place: Place, cells: int) -> Text:
        line = Text(f"{GAP}{place.role:<{LABEL_CELLS}}", "cyan")
        line.append(f"{self.fit(_where(place), cells):<{cells}}{GAP}", "default")
        line.append(self.fit(place.code, self.width - line.cell_len), "default")
        line.rstrip()
        return line

    def _labeled(self, label: str, text: str, style: str = "default") -> Iterator[Text]:
        for index, part in enumerate(self._parts(text, len(GAP) + LABEL_CELLS, is_hanging=True)):
            line = Text(f"{GAP}{'' if index else label:<{LABEL_CELLS}}", "cyan")
            yield line.append(part, style)

    def _parts(self, text: str, indent: int, *, is_hanging: bool = False) -> list[str]:
        """Wrap a text that starts at `indent`; indent the following lines unless `is_hanging`."""
        lines = wrap(self.visible(text), self.width - indent, break_on_hyphens=False)
        return lines if is_hanging else [("" if not index else " " * indent) + line for index, line in enumerate(lines)]


def suppressed_note(suppressed: Sequence[Finding]) -> Iterator[str]:
    """Say how many findings are not reported, and why."""
    whys = [finding.suppression for finding in suppressed if finding.suppression is not None]
    ignored = sum(why.kind == "comment" for why in whys)
    known = Counter(why.place for why in whys if why.kind == "baseline")
    parts = [f"{ignored:,} ignored by comments"] if ignored else []
    parts += [f"{count:,} known from {name}" for name, count in known.items()]
    if parts:
        yield f"Not reported: {', '.join(parts)}."


def _where(place: Place) -> str:
    return f"{place.file}:{place.line}"
