"""Every template of a remedy is shown by a program in which it is applied."""

import re
from pathlib import Path

from remedy_templates import Sources, is_shown

from gradinspect.checks.rules.failure_remedies import known_remedies

TESTS = Path(__file__).parent.parent
PROGRAMS = [
    program for folder in ("advice", "ranks") for program in sorted((TESTS / "check_programs" / folder).glob("*.py"))
]
_ADVICE = re.compile(r"^# advice: (.+)$", re.MULTILINE)


def test_each_remedy_has_a_program_in_which_it_is_applied() -> None:
    """Its advice line has what the remedy says between what is filled in."""
    advice = [text for program in PROGRAMS for text in _ADVICE.findall(program.read_text())]
    templates = [*Sources().templates(), *known_remedies()]
    unshown = [text for text in templates if not any(is_shown(text, one) for one in advice)]

    assert len(templates) > 150
    assert unshown == []
