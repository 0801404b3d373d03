"""How sentences of findings spell the names of parameters: NOTE [One spelling of a name] in `call_names`.

Rules compare names, and `subjects` are keys, so both have the paths themselves. Texts are spelled at the end.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.checks.findings import Finding
from gradinspect.graph import Graph

_INDEXED: Final = re.compile(r"\d+(?:\.\w+)*\.[^\W\d]\w*")  # of a parameter of a container: "2.bias", not "0.5"


def models_with_indices(graph: Graph) -> Iterator[str]:
    """Yield what the program calls the model of a graph, if paths of its parameters begin with an index."""
    if any(node.leaf is not None and _INDEXED.match(node.leaf.name or "") for node in graph.nodes):
        yield graph.model_name


def spelled(findings: Sequence[Finding], models: Collection[str]) -> tuple[Finding, ...]:
    """Write `net.2.bias` for `2.bias` in sentences.

    Args:
        findings: Those of one run.
        models: What the program calls the models that such paths begin in. If it has several, each by itself in a
            graph, a path does not say whose it is, and stays.
    """
    return tuple(_spelled(one, *models) for one in findings) if len(models) == 1 else tuple(findings)


def _spelled(finding: Finding, model: str) -> Finding:
    names = {found[0] for subject in finding.subjects if (found := _INDEXED.match(subject))}
    if not names:
        return finding
    written = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?!\w)")
    text, remedy = (
        written.sub(lambda found: shown_path(found[0], model), part) for part in (finding.text, finding.remedy)
    )
    return replace(finding, text=text, remedy=remedy)
