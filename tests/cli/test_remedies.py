"""Every template of a remedy is shown by a program in which it is applied.

What a rule says in one way only, it says of its sample: `test_rule_samples.py` runs that, and its repair.
"""

import re
from collections import Counter
from pathlib import Path

from remedy_templates import RULES, Sources, is_shown

from gradinspect.checks.rules.failure_remedies import known_remedies

TESTS = Path(__file__).parent.parent
PROGRAMS = [
    program for folder in ("advice", "ranks") for program in sorted((TESTS / "check_programs" / folder).glob("*.py"))
]
_ADVICE = re.compile(r"^# advice: (.+)$", re.MULTILINE)


def test_each_remedy_has_a_program_in_which_it_is_applied() -> None:
    """Its advice line has what the remedy says between what is filled in; the only one of a rule is in its sample."""
    advice = [text for program in PROGRAMS for text in _ADVICE.findall(program.read_text())]
    sources = Sources()
    templates = sources.templates()
    rules = Counter(str(sources.path_of[call].relative_to(RULES)) for call, _ in sources.calls["Rule"])
    files = [place.partition(":")[0] for place in templates.values()]
    of_samples = [text for text, file in zip(templates, files, strict=True) if rules[file] == files.count(file) == 1]
    asked = [text for text in [*templates, *known_remedies()] if text not in of_samples]
    unshown = [text for text in asked if not any(is_shown(text, one) for one in advice)]

    assert len(asked) > 150
    assert unshown == []
