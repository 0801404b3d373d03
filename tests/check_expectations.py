"""What a program under check_programs says of itself: the findings it declares, and the options it asks for."""

import re
from pathlib import Path

_EXPECTED = re.compile(r"^# expect: (GI\d+)((?: \w+=\d+)*)", re.MULTILINE)
_OPTIONS = re.compile(r"^# options: (.+)", re.MULTILINE)


def declared_findings(script: Path) -> list[tuple[str, set[str]]]:
    """Return code and lines (`saved=16`) of each finding that a program declares, in order."""
    return [(code, set(lines.split())) for code, lines in _EXPECTED.findall(script.read_text())]


def options_of(script: Path) -> list[str]:
    """Return the options that a program asks for."""
    return " ".join(_OPTIONS.findall(script.read_text())).split()


def variant(text: str, other: str) -> str:
    """Blank the lines of the other of two programs in one, so that line numbers stay: `# +` or `# -`."""
    return "\n".join("" if line.endswith(other) else line for line in text.splitlines()) + "\n"
