"""The page's data about held memory: bytes by module, and how it is freed during backward.

What comes in: a `Graph`. What goes out: plain lists and dicts for JSON.
"""

from collections import Counter
from collections.abc import Sequence

from gradinspect.analyses.memory.held import Memory, measure_memory
from gradinspect.analyses.memory.release import release_curve
from gradinspect.analyses.memory.rows import extra_storages
from gradinspect.analyses.memory.tree import ModuleBytes, largest_modules, module_tree
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.units import escape_control

MAX_MODULES = 400


def page_memory(graph: Graph) -> dict[str, object] | None:
    """Return what is held beyond parameters and buffers; None if that is nothing or unknown."""
    try:
        memory = measure_memory(graph)
    except GradInspectError:
        return None
    if not memory.extra_bytes:
        return None
    tree = largest_modules(module_tree(graph, memory, folds=False), MAX_MODULES)
    return {
        "by": "By module" if graph.modules else "By node class",
        "total": memory.total_bytes,
        "extra": memory.extra_bytes,
        "kinds": {kind: num_bytes for kind, num_bytes in memory.bytes_by_kind.items() if num_bytes},
        "modules": _modules(tree) if graph.modules else _classes(graph, memory),
        "moments": [[moment.node, moment.freed_bytes, moment.held_bytes] for moment in release_curve(graph, memory)],
    }


def _classes(graph: Graph, memory: Memory) -> list[object]:
    """List the node classes of a graph without modules, in the same format."""
    sums: Counter[str] = Counter()
    for held in extra_storages(memory):
        sums[graph.nodes[held.counted_by].name] += held.num_bytes
    return [[escape_control(name), "", "", num_bytes, []] for name, num_bytes in sums.most_common(MAX_MODULES)]


def _modules(tree: Sequence[ModuleBytes]) -> list[object]:
    return [
        [*map(escape_control, (module.label, module.class_name, module.path)), module.total_bytes,
         _modules(module.children)]
        for module in tree if module.total_bytes
    ]  # fmt: skip
