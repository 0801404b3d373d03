"""The rules of `check` as Markdown: a table of all codes, then a section for each."""

from collections.abc import Iterable, Iterator
from textwrap import fill

from gradinspect.checks.rule import Rule
from gradinspect.renderers.data.markdown import code, render_markdown

WIDTH = 120


def render_rules_markdown(rules: Iterable[Rule]) -> str:
    """Write every code with its title, a sentence and a sample."""
    rules = list(rules)
    rows = ((f"[{rule.code}](#{rule.code.lower()})", rule.title, rule.summary, code(_mistake(rule))) for rule in rules)
    overview = render_markdown(("code", "title", "what it means", "sample"), rows)
    return "\n".join([overview, *(part for rule in rules for part in _section(rule))])


def _mistake(rule: Rule) -> str:
    """Return the wrong line of the sample, which has a comment if there are several; its last if one is missing."""
    wrong = [line[2:].strip() for line in rule.change.splitlines() if line.startswith("-")]
    return next((line for line in wrong if "  # " in line), (wrong or rule.sample.splitlines())[0 if wrong else -1])


def render_rule_markdown(rule: Rule) -> str:
    """Write what a code means, a program with the mistake as a change to one without it, and what to do."""
    return "\n".join(_description(rule))


def _section(rule: Rule) -> Iterator[str]:
    yield f"## {rule.code}\n"
    yield from _description(rule)


def _description(rule: Rule) -> Iterator[str]:
    yield f"{fill(f'**{rule.title}**: {rule.summary} {rule.explanation}', WIDTH)}\n"
    yield f"{code(f'{rule.command} sample.py')} finds it in the program with the lines marked `-`:\n"
    yield f"```diff\n{rule.change}```\n"
    yield f"{fill(rule.remedy, WIDTH)}\n"
