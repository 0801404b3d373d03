"""How sentences of findings spell the names of parameters: NOTE [One spelling of a name] in `call_names`.

Rules compare names, and `subjects` are keys, so both have the paths themselves. Texts are spelled at the end.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.checks.findings import BACKWARD, Finding, line_of
from gradinspect.graph import Frame, Graph

_INDEXED: Final = re.compile(r"\d+(?:\.\w+)*\.[^\W\d]\w*")  # of a parameter of a container: "2.bias", not "0.5"


_OF_SEVERAL: Final = re.compile(rf"([^\W\d]\w*)\.{_INDEXED.pattern}")  # with its model before it: "critic.2.bias"


class IndexedModel(NamedTuple):
    """A model whose parameters have paths that begin with an index, in the graphs of one backward call."""

    name: str  # what the program calls it there
    backward: str  # the line of the call
    is_alone: bool = True  # otherwise the graph has the name before each path, if it is that of a model at all


def models_with_indices(graph: Graph, backward: Frame | None) -> Iterator[IndexedModel]:
    """Yield the model of a graph, if paths of its parameters begin with an index; or those that may be its models."""
    names = [node.leaf.name or "" for node in graph.nodes if node.leaf is not None]
    if any(map(_INDEXED.match, names)):
        yield IndexedModel(graph.model_name, line_of(backward))
        return
    for name in dict.fromkeys(found[1] for one in names if (found := _OF_SEVERAL.match(one))):
        yield IndexedModel(name, line_of(backward), is_alone=False)


def spelled(findings: Sequence[Finding], models: Collection[IndexedModel]) -> tuple[Finding, ...]:
    """Write `net.2.bias` for `2.bias` in sentences.

    Args:
        findings: Those of one run.
        models: Those that such paths begin in. Of several, each by itself in a graph, it is the one whose backward
            call a finding names, and if that leaves several, the one that its lines name; if that is not one, a path
            does not say whose it is, and stays.
    """
    return tuple(_spelled(one, _model_of(one, models)) for one in findings)


def _model_of(finding: Finding, models: Collection[IndexedModel]) -> str | None:
    alone = {one.name for one in models if one.is_alone}
    if len(alone) == 1:
        return alone.pop()
    names = {one.name for one in models if one.is_alone or not alone}
    if any(place.role == BACKWARD for place in finding.places):
        lines = {f"{place.file}:{place.line}" for place in finding.places}
        names &= {one.name for one in models if one.backward in lines}
    if not alone or len(names) > 1:
        names = {name for name in names if any(_is_in(name, place.code) for place in finding.places)}
    return names.pop() if len(names) == 1 else None


def _is_in(name: str, code: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", code) is not None


def _spelled(finding: Finding, model: str | None) -> Finding:
    names = {found[0] for subject in finding.subjects if (found := _INDEXED.match(subject))}
    if model is None or not names:
        return finding
    written = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?!\w)")
    text, remedy = (
        written.sub(lambda found: shown_path(found[0], model), part) for part in (finding.text, finding.remedy)
    )
    return replace(finding, text=text, remedy=remedy)
