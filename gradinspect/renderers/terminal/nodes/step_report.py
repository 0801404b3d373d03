"""The chain rule of one program: every step of its backward, one section per node, as Markdown or HTML."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TypeAlias

from gradinspect.analyses.explain.explanation import InputGradient
from gradinspect.analyses.gradients.stepping import Step, SteppingOutcome
from gradinspect.analyses.structure.call_names import node_shown
from gradinspect.analyses.summary import describe_capture
from gradinspect.renderers.data.markdown import code
from gradinspect.renderers.terminal.nodes.steps import StepPage
from gradinspect.units import escape_control, format_count

Passes: TypeAlias = Sequence[tuple[str, Sequence[Step]]]
Formulas: TypeAlias = Mapping[str, Sequence[InputGradient]]

WIDTH = 100
MAX_OPEN_CONTENTS = 40  # steps up to which the contents start expanded
_TARGET = re.compile(r"^(  out    .*→ )#(\d+)\b", re.MULTILINE)
STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a;
  background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.2rem; } h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
pre { font: 13px/1.45 ui-monospace, monospace; background: #f6f7f9; border: 1px solid #d9dde3; border-radius: 4px;
  padding: .6rem .8rem; overflow-x: auto; margin: 0; }
a { color: #0b57d0; } nav { columns: 18rem; font-size: .85rem; }
nav a { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #16181c; }
  pre { background: #1f2227; border-color: #3a3f47; } a { color: #8ab4f8; } }
@page { margin: 1.2cm; }
@media print { details { display: none; } pre { white-space: pre-wrap; break-inside: avoid; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_report_markdown(outcome: SteppingOutcome, passes: Passes, formulas: Formulas) -> str:
    """Write the steps as Markdown."""
    graph = outcome.graph
    parts = [f"# Backward of {code(graph.source)}\n\n{code(describe_capture(graph))}\n\n{_introduction(outcome)}\n"]
    for start, steps in passes:
        if start:
            parts.append(f"## From {start}\n")
        for step in steps:
            heading, lines = _section(outcome, step, formulas)
            parts.append(f"### {code(heading)}\n\n" + "".join(f"    {line}\n" for line in lines))
    parts.append("## Result\n\n" + "".join(f"- {code(line)}\n" for line in _result(outcome)))
    return "\n".join(parts)


def render_report_html(outcome: SteppingOutcome, passes: Passes, formulas: Formulas) -> str:
    """Write the steps as one self-contained HTML file."""
    return "".join(_html(outcome, passes, formulas))


def _html(outcome: SteppingOutcome, passes: Passes, formulas: Formulas) -> Iterator[str]:
    title = escape(escape_control(f"Backward of {outcome.graph.source}"))
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        f"<p><code>{escape(escape_control(describe_capture(outcome.graph)))}</code></p>\n"
        f"<p>{escape(_introduction(outcome))}</p>\n"
    )
    for number, (start, steps) in enumerate(passes):
        if start:
            yield f"<h2>From {escape(start)}</h2>\n"
        sections = [(f"p{number}n{step.node}", *_section(outcome, step, formulas)) for step in steps]
        links = "".join(f'<a href="#{anchor}">{escape(heading)}</a>\n' for anchor, heading, _ in sections)
        is_open = " open" if len(sections) <= MAX_OPEN_CONTENTS else ""
        yield f"<details{is_open}>\n<summary>Contents</summary>\n"
        yield f'<nav aria-label="Steps">\n{links}</nav>\n</details>\n'
        for anchor, heading, lines in sections:
            text = _linked(escape("\n".join(lines)), number)
            yield f'<section id="{anchor}">\n<h3>{escape(heading)}</h3>\n<pre>{text}</pre>\n</section>\n'
    end = "".join(f"<li>{escape(line)}</li>\n" for line in _result(outcome))
    yield f"<h2>Result</h2>\n<ul>\n{end}</ul>\n</main>\n</body>\n</html>\n"


def _linked(text: str, number: int) -> str:
    """Link each target node to its section."""
    return _TARGET.sub(rf'\1<a href="#p{number}n\2">#\2</a>', text)


def _introduction(outcome: SteppingOutcome) -> str:
    return (
        f"{format_count(len(outcome.graph.nodes), 'node')}, in the order the engine ran them. Each section shows "
        "the gradient that came in, what the node had saved, and for each input the formula and the gradient that "
        "went out."
    )


def _section(outcome: SteppingOutcome, step: Step, formulas: Formulas) -> tuple[str, list[str]]:
    graph = outcome.graph
    node = graph.nodes[step.node]
    lines = [line.plain.rstrip() for line in _page().step(graph, step, formulas.get(node.name, ()))]
    return escape_control(f"{step.order}. {node_shown(graph, step.node)}"), lines[1:]


def _result(outcome: SteppingOutcome) -> list[str]:
    return [line.plain.strip() for line in _page().outcome(outcome)]


def _page() -> StepPage:
    return StepPage(width=WIDTH)
