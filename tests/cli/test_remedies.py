"""Every template of a remedy is shown by a program in which it is applied, or is known to have none."""

import re
from pathlib import Path

from remedy_templates import Sources, is_shown

from gradinspect.checks.rules.failure_remedies import known_remedies

TESTS = Path(__file__).parent.parent
LISTED = TESTS / "remedies_without_a_program.txt"
PROGRAMS = sorted((TESTS / "check_programs" / "advice").glob("*.py"))
_ADVICE = re.compile(r"^# advice: (.+)$", re.MULTILINE)


def test_each_remedy_has_a_program_in_which_it_is_applied() -> None:
    """What has none is listed: the list may become shorter, and not longer."""
    advice = [text for program in PROGRAMS for text in _ADVICE.findall(program.read_text())]
    templates = [*Sources().templates(), *known_remedies()]
    unshown = [text for text in templates if not any(is_shown(text, one) for one in advice)]
    listed = [line for line in LISTED.read_text().splitlines() if line and not line.startswith("#")]

    assert len(templates) > 150
    assert sorted(unshown) == listed
