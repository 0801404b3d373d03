"""The sample of every rule, as a user would try it: the mistake is found, and the repaired program is clean."""

import json
from pathlib import Path

import pytest
from ranked import RankRun, on_ranks
from runs import gradinspect
from turns import one_in

from gradinspect.checks.registry import registry
from gradinspect.checks.rule import Rule

pytestmark = pytest.mark.slow

RULES = registry().rules


def codes_in(output: str) -> list[str]:
    """List the codes in what `--format json` printed after what the program printed."""
    document = json.loads(output[output.index("{\n") :])
    return sorted({finding["code"] for finding in document["findings"]})


def codes_found(rule: Rule, program: Path) -> list[str]:
    """Run a program under the rule's command."""
    if rule.command.startswith("torchrun"):
        ((leader, _),) = on_ranks([RankRun(("check", str(program), "--format", "json"))])
        return codes_in(leader.output)
    _, verb, *options = rule.command.split()
    return codes_in(gradinspect(verb, program, *options, "--format", "json").stdout)


@pytest.mark.parametrize("rule", one_in(3, list(RULES.values())), ids=RULES)
def test_a_sample_has_the_mistake_and_its_repaired_form_has_none(rule: Rule, tmp_path: Path) -> None:
    """Each is a whole program."""
    sample, fixed = tmp_path / "sample.py", tmp_path / "fixed.py"
    sample.write_text(rule.sample)
    fixed.write_text(rule.fixed)

    assert codes_found(rule, sample) == [rule.code]
    assert codes_found(rule, fixed) == []
