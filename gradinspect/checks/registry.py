"""All rules of `check`: what the modules in `checks.rules` declare, found by looking through that package.

A new file there needs no entry anywhere: `--select`, `--skip`, `explain`, docs/codes.md and the observer read this.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from gradinspect.checks import rules as rules_package
from gradinspect.checks.findings import Finding
from gradinspect.checks.rule import Judge, Rule

Find: TypeAlias = Callable[[], Iterable[Finding]]
_CODE = re.compile(r"GI\d{3}")


class Registry(NamedTuple):
    """What the modules of a package declare."""

    rules: dict[str, Rule]  # by code, sorted
    judges: tuple[Judge[Any], ...]


@cache
def registry() -> Registry:
    """Return the rules and judges of gradinspect."""
    return collect(rules_package)


def collect(package: ModuleType) -> Registry:
    """Look through the modules of a package, and of its folders, for rules and judges.

    Raises:
        ValueError: A code is malformed, or two rules share one.
    """
    names = sorted(module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    declared: dict[str, Rule] = {}
    judges: list[Judge[Any]] = []
    for name in names:
        for value in list(vars(importlib.import_module(name)).values()):  # another thread may be importing, too
            if isinstance(value, Rule):
                _add(declared, value, name)
            elif isinstance(value, Judge) and value not in judges:
                judges.append(value)
    return Registry({code: declared[code] for code in sorted(declared)}, tuple(judges))


def codes() -> tuple[str, ...]:
    """List all codes in order."""
    return tuple(registry().rules)


def rule_of(code: str) -> Rule:
    """Return the rule that declares a code.

    Raises:
        ValueError: No rule does.
    """
    found = registry().rules.get(code)
    if found is None:
        raise ValueError(f"No rule in gradinspect.checks.rules declares '{code}'.")
    return found


def findings_on(fact: object, found: Callable[[Find], Iterable[Finding]] = lambda find: find()) -> Iterator[Finding]:
    """Yield what the rules on this type of fact find.

    Args:
        fact: What was observed.
        found: Asks one rule; it may pass over one that fails, so that the others are asked all the same.
    """
    for judge in registry().judges:
        if judge.fact is type(fact):
            yield from found(partial(judge.findings, fact))


def declared(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Let only findings through that a rule declares.

    Raises:
        ValueError: A finding has a code that no rule declares, so that `explain` could not explain it.
    """
    return tuple(finding for finding in findings if rule_of(finding.code))


def _add(declared: dict[str, Rule], rule: Rule, module: str) -> None:
    if not _CODE.fullmatch(rule.code):
        raise ValueError(f"'{rule.code}' in {module} is not a valid code: GI and three digits are needed.")
    if declared.setdefault(rule.code, rule) is not rule:
        raise ValueError(f"'{rule.code}' in {module} is declared by another rule already.")
