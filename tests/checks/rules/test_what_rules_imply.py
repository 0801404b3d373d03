"""What some rules imply besides their findings."""

from gradinspect.checks.registry import registry


def test_what_a_finding_implies_for_the_run() -> None:
    """Few end the program, explain gradients that look wrong afterwards, or count only if they are repeated."""
    rules = registry().rules

    assert {code for code, rule in rules.items() if rule.stops_run} == {"GI901"}
    explaining = {code for code, rule in rules.items() if rule.explains_gradients}
    assert explaining == {"GI334", "GI353", "GI396", "GI502", "GI503", "GI702"}
    repeated = {code: rule.must_repeat for code, rule in rules.items() if rule.must_repeat}
    assert repeated == {"GI601": 1, "GI602": 2, "GI605": 3, "GI606": 3}
