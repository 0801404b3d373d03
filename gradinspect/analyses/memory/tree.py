"""Held memory by module: a tree whose totals add up, with equal modules (the blocks of a transformer) merged."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from gradinspect.analyses.memory.held import Memory
from gradinspect.analyses.memory.rows import OUTSIDE, extra_storages
from gradinspect.analyses.selection.rows import IN_ORDER, Fields, check_sort, sorted_rows
from gradinspect.analyses.structure.call_names import INDEX
from gradinspect.analyses.structure.name_folding import alike, name_by_indices, pattern_of
from gradinspect.graph import Graph, Record, module_name

MAX_DEPTH = 100
_TOP = None  # the path above the outermost modules


class ModuleBytes(Record, frozen=True, kw_only=True):
    """One module with all of its calls, or several equal modules; bytes are beyond parameters and buffers."""

    label: str  # the last part of its path: "attn"; "0-11" for twelve, "up1-4" for four
    path: str
    class_name: str
    copies: int = 1
    between: tuple[int, int] = (0, 0)  # the least and the greatest total of modules that are merged to one row here
    own_bytes: int = 0  # of nodes that are in no submodule
    total_bytes: int = 0  # with submodules: own bytes of all rows add up, totals are nested
    only_bytes: int = 0  # kept by nothing else: freed without this module
    children: "tuple[ModuleBytes, ...]" = ()

    @property
    def is_ranged(self) -> bool:
        """Whether modules with different totals are merged."""
        return self.between[0] < self.between[1]


def module_tree(
    graph: Graph, memory: Memory, *, folds: bool = True, keeps_empty: bool = False
) -> tuple[ModuleBytes, ...]:
    """Measure each module; nodes outside any module come last.

    Args:
        graph: The graph.
        memory: Its storages.
        folds: Merge modules with the same class and the same submodules: NOTE [One fold] in `name_folding.py`.
        keeps_empty: Keep modules that hold nothing: they are needed to see which blocks are equal.
    """
    builder = _Builder(graph)
    for held in extra_storages(memory):
        builder.count(builder.path_of(held.counted_by), held.num_bytes)
        builder.keep([builder.path_of(saver) for saver in held.savers], held.num_bytes)
    tree = builder.children(_TOP, folds=folds)
    return tree if keeps_empty else _that_hold_any(tree)


class _Builder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.classes: dict[str, str] = {}
        self.parents: dict[str, str | None] = {}
        self.inside: dict[str | None, list[str]] = {}
        self.own: dict[str | None, int] = {}
        self.only: dict[str | None, int] = {}
        depths: dict[str, int] = {}
        for call in graph.modules:  # a call comes after its enclosing call
            if call.path not in self.parents:
                parent = None if call.parent is None else graph.modules[call.parent].path
                if parent is not None and depths[parent] == MAX_DEPTH:  # nobody writes this, but a file may contain it
                    parent = self.parents[parent]
                depth = 0 if parent is None else depths[parent] + 1
                depths[call.path] = depth
                self.parents[call.path] = parent
                self.classes[call.path] = call.class_name
                self.inside.setdefault(parent, []).append(call.path)

    def path_of(self, node_id: int) -> str | None:
        module = self.graph.nodes[node_id].module
        return None if module is None else self.graph.modules[module].path

    def count(self, path: str | None, num_bytes: int) -> None:
        self.own[path] = self.own.get(path, 0) + num_bytes

    def keep(self, paths: Sequence[str | None], num_bytes: int) -> None:
        """Add to the innermost module that contains all savers, and to its parents."""
        common = self._line_of(paths[0])
        for path in dict.fromkeys(paths[1:]):
            line = set(self._line_of(path))
            common = [step for step in common if step in line]
        for step in common:
            self.only[step] = self.only.get(step, 0) + num_bytes

    def _line_of(self, path: str | None) -> list[str]:
        line = []
        while path is not None:
            line.append(path)
            path = self.parents[path]
        return line

    def children(self, path: str | None, *, folds: bool) -> tuple[ModuleBytes, ...]:
        found = [self._module(child, folds=folds) for child in self.inside.get(path, ())]
        if folds:
            found = [_merged(part) for part in alike(found, _labels, _signature)]
            found = [_merged(part) for part in alike(found, _labels, _look_of_blocks)]
        own = self.own.get(path, 0)
        if path is None and own:
            found.append(ModuleBytes(label=OUTSIDE, path="", class_name="", own_bytes=own, total_bytes=own))
        return tuple(found)

    def _module(self, path: str, *, folds: bool) -> ModuleBytes:
        children = self.children(path, folds=folds)
        own = self.own.get(path, 0)
        return ModuleBytes(
            label=self._label(path, self.parents[path]),
            path=path,
            class_name=self.classes[path],
            own_bytes=own,
            total_bytes=own + sum(child.total_bytes for child in children),
            only_bytes=self.only.get(path, 0),
            children=children,
        )

    def _label(self, path: str, parent: str | None) -> str:
        """Name a module relative to its caller: `h.0` in the outermost module, `attn` in `h.0`."""
        return path.removeprefix(f"{parent}.") if parent else module_name(self.graph, path)


def contents(module: ModuleBytes) -> tuple[Hashable, ...]:
    """Return a key that is equal for modules of one class with the same modules inside."""
    return (module.class_name, *((child.label, child.copies, contents(child)) for child in module.children))


def contents_of_holder(module: ModuleBytes) -> tuple[Hashable, ...]:
    """Return a key that is equal for such modules that all hold something, or all nothing."""
    return (bool(module.total_bytes), *contents(module))


def _signature(module: ModuleBytes) -> tuple[Hashable, ...]:
    """Return a key that is equal for equal modules; the last number in their names does not count."""
    stem, dot, last = module.label.rpartition(".")
    return (stem + dot + pattern_of(last), *contents_of_holder(module))


def _look_of_blocks(module: ModuleBytes) -> Hashable:
    """Return what parts of blocks without a row of their own have in common: `layers.0.1` and `layers.1.1`."""
    stem, _, last = module.label.rpartition(".")
    return (last, *contents_of_holder(module)) if INDEX.search(stem) else module.path


def _labels(module: ModuleBytes) -> tuple[str]:
    return (module.label,)


def _merged(modules: list[ModuleBytes]) -> ModuleBytes:
    first = modules[0]
    if len(modules) == 1:
        return first
    return ModuleBytes(
        label=name_by_indices(module.label for module in modules),
        path=first.path,
        class_name=first.class_name,
        copies=sum(module.copies for module in modules),
        between=_range(modules),
        own_bytes=sum(module.own_bytes for module in modules),
        total_bytes=sum(module.total_bytes for module in modules),
        only_bytes=sum(module.only_bytes for module in modules),
        children=tuple(
            _aligned(parts) for parts in zip(*(module.children for module in modules), strict=True)
        ),
    )  # fmt: skip


def _range(modules: Sequence[ModuleBytes]) -> tuple[int, int]:
    """Return the least and the greatest total of one module."""
    ends = [module.between if module.copies > 1 else (module.total_bytes, module.total_bytes) for module in modules]
    return min(least for least, _ in ends), max(most for _, most in ends)


def _aligned(parts: Sequence[ModuleBytes]) -> ModuleBytes:
    """Add up the same submodule of several modules; it keeps its own name."""
    merged = _merged(list(parts))
    is_ranged = parts[0].copies > 1 or not all(part.total_bytes for part in parts)
    return replace(merged, label=parts[0].label, between=_range(parts) if is_ranged else (0, 0))


def _that_hold_any(modules: Sequence[ModuleBytes]) -> tuple[ModuleBytes, ...]:
    """Leave out modules that hold nothing."""
    return tuple(replace(module, children=_that_hold_any(module.children)) for module in modules if module.total_bytes)


MODULE_FIELDS: Final[Fields[ModuleBytes]] = {
    "bytes": lambda module: (module.total_bytes,),
    "name": lambda module: (module.label,),
    "own": lambda module: (module.own_bytes,),
}


def sorted_modules(tree: Sequence[ModuleBytes], sort: str | None) -> tuple[ModuleBytes, ...]:
    """Sort the modules inside each module; without a field, they keep the order of their calls.

    Raises:
        GradInspectError: There is no such field.
    """
    check_sort(sort, MODULE_FIELDS)
    if sort in {None, IN_ORDER}:
        return tuple(tree)
    inside = [replace(module, children=sorted_modules(module.children, sort)) for module in tree]
    return sorted_rows(inside, MODULE_FIELDS, sort)


def largest_modules(tree: Sequence[ModuleBytes], top: int) -> tuple[ModuleBytes, ...]:
    """Keep the rows with the largest totals; merge the others into one row, so that own bytes add up."""
    totals = sorted((module.total_bytes for module in _all(tree)), reverse=True)
    if len(totals) <= top:
        return tuple(tree)
    limit = totals[top - 1]
    kept = tuple(_pruned(module, limit) for module in tree if module.total_bytes >= limit)
    num_left_out = len(totals) - sum(1 for _ in _all(kept))
    own = sum(module.own_bytes for module in _all(tree)) - sum(module.own_bytes for module in _all(kept))
    rest = ModuleBytes(label=f"{num_left_out:,} more", path="", class_name="", own_bytes=own)
    return (*kept, rest) if num_left_out else kept


def _all(tree: Sequence[ModuleBytes]) -> Iterator[ModuleBytes]:
    for module in tree:
        yield module
        yield from _all(module.children)


def _pruned(module: ModuleBytes, limit: int) -> ModuleBytes:
    return replace(module, children=tuple(_pruned(c, limit) for c in module.children if c.total_bytes >= limit))
