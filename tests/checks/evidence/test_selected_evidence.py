"""What no rule that is on needs is not recorded."""

import importlib
import pkgutil
from typing import Any

import pytest
import torch

import gradinspect as gi
from gradinspect.checks import rules
from gradinspect.checks.evidence import watched_backwards
from gradinspect.checks.evidence.values.result_states import ResultStates
from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.registry import registry
from gradinspect.checks.rule import Judge, Rule
from gradinspect.observers.gradients.gradient_meter import GradientMeter


def step() -> None:
    """Train one step, with a derivative that is infinite."""
    weight = torch.ones(4, requires_grad=True)
    (weight - 1).sqrt().sum().backward()


@pytest.mark.parametrize(("select", "is_needed"), [((), True), (("GI6",), True), (("GI1",), False), (("GI380",), True)])
def test_values_are_read_only_for_rules_that_need_them(
    monkeypatch: pytest.MonkeyPatch, select: tuple[str, ...], is_needed: bool
) -> None:
    """Without such a rule no inner gradient is measured, and no result is looked at."""
    only_leaves: list[bool] = []
    looked: list[str] = []

    def meter(*args: Any, **options: Any) -> GradientMeter:
        only_leaves.append(options["only_leaves"])
        return GradientMeter(*args, **options)

    def look(_states: ResultStates, _call: int, name: str, *_values: object) -> None:
        looked.append(name)

    monkeypatch.setattr(watched_backwards, "GradientMeter", meter)
    monkeypatch.setattr(ResultStates, "look", look)

    gi.check(step, select=select)

    assert set(only_leaves) == {not is_needed}
    assert bool(looked) is is_needed


def test_a_selected_rule_finds_the_same() -> None:
    """What one rule finds does not depend on the others."""
    every = [one for one in gi.check(step).findings if one.code == "GI501"]

    assert [one.code for one in every] == ["GI501"]
    assert list(gi.check(step, select=["GI501"]).findings) == every
    assert not gi.check(step, select=["GI101"]).findings


def test_every_rule_on_gradients_of_nodes_says_so() -> None:
    """Those that judge a call that has ended, and those that stand back where another one has found something."""
    names = [one.name for one in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}.")]
    judging = [
        list(vars(module).values())
        for module in map(importlib.import_module, names)
        if any(isinstance(one, Judge) and one.fact is BackwardEnded for one in vars(module).values())
    ]
    of_gradients = {one.code for values in judging for one in values if isinstance(one, Rule)}
    general = {code for code, rule in registry().rules.items() if rule.is_general}

    assert of_gradients
    assert {code for code, rule in registry().rules.items() if rule.needs_values} == of_gradients | general
