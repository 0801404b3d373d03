"""What rules say of facts, as text."""

from textwrap import fill

from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def line(number: int, code: str = "...") -> Frame:
    """Make a line of the program."""
    return Frame(file="train.py", line=number, code=code)


def said(*facts: object) -> str:
    """Write all findings on some facts: code, lines, subjects, text and remedy."""
    return "\n".join(
        f"{one.code} {' '.join(f'{place.role}={place.line}' for place in one.places)} [{', '.join(one.subjects)}]\n"
        f"{fill(one.text, 100, initial_indent='  ', subsequent_indent='  ')}\n"
        f"{fill(one.remedy, 100, initial_indent='  -> ', subsequent_indent='  ')}"
        for fact in facts
        for one in findings_on(fact)
    )
