"""How sentences of findings spell the names of parameters: NOTE [One spelling of a name] in `call_names`.

Rules compare names, and `subjects` are keys, so both have the paths themselves. Texts are spelled at the end.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.checks.findings import Finding, line_of
from gradinspect.graph import Frame, Graph

_INDEXED: Final = re.compile(r"\d+(?:\.\w+)*\.[^\W\d]\w*")  # of a parameter of a container: "2.bias", not "0.5"


class IndexedModel(NamedTuple):
    """A model whose parameters have paths that begin with an index, in the graphs of one backward call."""

    name: str  # what the program calls it there
    backward: str  # the line of the call


def models_with_indices(graph: Graph, backward: Frame | None) -> Iterator[IndexedModel]:
    """Yield the model of a graph, if paths of its parameters begin with an index."""
    if any(node.leaf is not None and _INDEXED.match(node.leaf.name or "") for node in graph.nodes):
        yield IndexedModel(graph.model_name, line_of(backward))


def spelled(findings: Sequence[Finding], models: Collection[IndexedModel]) -> tuple[Finding, ...]:
    """Write `net.2.bias` for `2.bias` in sentences.

    Args:
        findings: Those of one run.
        models: Those that such paths begin in. Of several, each by itself in a graph, it is the one whose backward
            call a finding names; if that is not one, a path does not say whose it is, and stays.
    """
    return tuple(_spelled(one, _model_of(one, models)) for one in findings)


def _model_of(finding: Finding, models: Collection[IndexedModel]) -> str | None:
    lines = {f"{place.file}:{place.line}" for place in finding.places}
    all_names = {one.name for one in models}
    names = all_names if len(all_names) == 1 else {one.name for one in models if one.backward in lines}
    return names.pop() if len(names) == 1 else None


def _spelled(finding: Finding, model: str | None) -> Finding:
    names = {found[0] for subject in finding.subjects if (found := _INDEXED.match(subject))}
    if model is None or not names:
        return finding
    written = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?!\w)")
    text, remedy = (
        written.sub(lambda found: shown_path(found[0], model), part) for part in (finding.text, finding.remedy)
    )
    return replace(finding, text=text, remedy=remedy)
