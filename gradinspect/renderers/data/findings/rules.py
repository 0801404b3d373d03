"""The rules of `check` as Markdown: a table of all codes, then a section for each."""

from collections.abc import Iterable, Iterator
from textwrap import fill

from gradinspect.checks.rule import RuleDoc
from gradinspect.renderers.data.markdown import code, render_markdown

WIDTH = 120


def render_rules_markdown(docs: Iterable[RuleDoc]) -> str:
    """Write every code with its title, a sentence and a sample."""
    docs = list(docs)
    rows = ((f"[{doc.code}](#{doc.code.lower()})", doc.title, doc.summary, code(_mistake(doc))) for doc in docs)
    overview = render_markdown(("code", "title", "what it means", "sample"), rows)
    return "\n".join([overview, *(part for doc in docs for part in _section(doc))])


def _mistake(doc: RuleDoc) -> str:
    """Return the wrong line of the sample, which has a comment if there are several; its last if one is missing."""
    wrong = [line[2:].strip() for line in doc.change.splitlines() if line.startswith("-")]
    return next((line for line in wrong if "  # " in line), (wrong or doc.sample.splitlines())[0 if wrong else -1])


def render_rule_markdown(doc: RuleDoc) -> str:
    """Write what a code means, a program with the mistake as a change to one without it, and what to do."""
    return "\n".join(_description(doc))


def _section(doc: RuleDoc) -> Iterator[str]:
    yield f"## {doc.code}\n"
    yield from _description(doc)


def _description(doc: RuleDoc) -> Iterator[str]:
    yield f"{fill(f'**{doc.title}**: {doc.summary} {doc.explanation}', WIDTH)}\n"
    yield f"{code(f'{doc.command} sample.py')} finds it in the program with the lines marked `-`:\n"
    yield f"```diff\n{doc.change}```\n"
    yield f"{fill(doc.remedy, WIDTH)}\n"
