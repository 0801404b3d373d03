"""Every template of a remedy is shown by a program in which it is applied, or is known to have none."""

from pathlib import Path

from remedy_templates import Sources, is_shown
from test_check_advice import PROGRAMS, declared

LISTED = Path(__file__).parent.parent / "remedies_without_a_program.txt"


def test_each_remedy_has_a_program_in_which_it_is_applied() -> None:
    """What has none is listed: the list may become shorter, and not longer."""
    advice = [text for program in PROGRAMS for text in declared(program, "advice")]
    templates = Sources().templates()
    unshown = [text for text in templates if not any(is_shown(text, one) for one in advice)]
    listed = [line for line in LISTED.read_text().splitlines() if line and not line.startswith("#")]

    assert len(templates) > 150
    assert sorted(unshown) == listed
