"""Held memory by module: a tree whose totals add up, with equal modules (the blocks of a transformer) merged."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.memory.held import Memory
from gradinspect.analyses.memory.rows import OUTSIDE, extra_storages
from gradinspect.analyses.selection.rows import IN_ORDER, Fields, check_sort, sorted_rows
from gradinspect.analyses.structure.call_names import INDEX, short_name
from gradinspect.analyses.structure.name_folding import OddOne, alike, name_by_indices, named_odd_one, pattern_of
from gradinspect.graph import Graph, Record, module_name

MAX_DEPTH = 100
_TOP = None  # the row above the outermost modules


class ModuleBytes(Record, frozen=True, kw_only=True):
    """One module with its calls in one caller, or several equal modules; bytes are beyond parameters and buffers."""

    label: str  # the last part of its path: "attn"; "0-11" for twelve, "up1-4" for four
    path: str
    class_name: str
    copies: int = 1
    between: tuple[int, int] = (0, 0)  # the least and the greatest total of modules that are merged to one row here
    odd_one: OddOne | None = None  # of modules that are merged to one row, by their totals
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
        builder.count(builder.row_of(held.counted_by), held.num_bytes)
        builder.keep([builder.row_of(saver) for saver in held.savers], held.num_bytes)
    tree = builder.children(_TOP, folds=folds)
    return tree if keeps_empty else _that_hold_any(tree)


class _Place(NamedTuple):
    """Where a row stands: a module, and the row of what calls it. NOTE [One row for each caller]."""

    caller: int | None
    path: str
    class_name: str
    depth: int


class _Builder:
    """Counts bytes by rows, which are known by their numbers.

    NOTE [One row for each caller]
    Several blocks may share a module, such as an activation, or make one in each forward, which has no path but its
    class. What its calls hold belongs to the block that called it: to the first one, it would be as much too much as it
    would be too little for the others. So such a module has a row in each.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places: list[_Place] = []
        self.row_of_call: list[int] = []
        self.inside: dict[int | None, list[int]] = {}
        self.own: dict[int | None, int] = {}
        self.only: dict[int | None, int] = {}
        known: dict[tuple[int | None, str], int] = {}
        for call in graph.modules:  # a call comes after its enclosing call
            caller = None if call.parent is None else self.row_of_call[call.parent]
            if caller is not None and self.places[caller].depth == MAX_DEPTH:
                caller = self.places[caller].caller  # nobody writes this, but a file may contain it
            row = known.setdefault((caller, call.path), len(self.places))
            if row == len(self.places):
                depth = 0 if caller is None else self.places[caller].depth + 1
                self.places.append(_Place(caller, call.path, call.class_name, depth))
                self.inside.setdefault(caller, []).append(row)
            self.row_of_call.append(row)

    def row_of(self, node_id: int) -> int | None:
        module = self.graph.nodes[node_id].module
        return None if module is None else self.row_of_call[module]

    def count(self, row: int | None, num_bytes: int) -> None:
        self.own[row] = self.own.get(row, 0) + num_bytes

    def keep(self, rows: Sequence[int | None], num_bytes: int) -> None:
        """Add to the innermost module that contains all savers, and to those that call it."""
        common = self._line_of(rows[0])
        for row in dict.fromkeys(rows[1:]):
            line = set(self._line_of(row))
            common = [step for step in common if step in line]
        for step in common:
            self.only[step] = self.only.get(step, 0) + num_bytes

    def _line_of(self, row: int | None) -> list[int]:
        line = []
        while row is not None:
            line.append(row)
            row = self.places[row].caller
        return line

    def children(self, row: int | None, *, folds: bool) -> tuple[ModuleBytes, ...]:
        found = [self._module(child, folds=folds) for child in self.inside.get(row, ())]
        if folds:
            found = [_merged(part) for part in alike(found, _labels, _signature)]
            found = [_merged(part) for part in alike(found, _labels, _look_of_blocks)]
        own = self.own.get(row, 0)
        if row is None and own:
            found.append(ModuleBytes(label=OUTSIDE, path="", class_name="", own_bytes=own, total_bytes=own))
        return tuple(found)

    def _module(self, row: int, *, folds: bool) -> ModuleBytes:
        children = self.children(row, folds=folds)
        own, place = self.own.get(row, 0), self.places[row]
        return ModuleBytes(
            label=self._label(place),
            path=place.path,
            class_name=place.class_name,
            own_bytes=own,
            total_bytes=own + sum(child.total_bytes for child in children),
            only_bytes=self.only.get(row, 0),
            children=children,
        )

    def _label(self, place: _Place) -> str:
        """Name a module relative to its caller: `h.0` in the outermost module, `attn` in `h.0`.

        One that equal blocks share has its name in each of them: `h.0.act` is `act` in `h.3` too. One of a block that a
        Sequential in it calls is named as in the block.
        """
        caller = "" if place.caller is None else self.places[place.caller].path
        owner, _, name = place.path.rpartition(".")
        if caller and caller != owner and pattern_of(caller) == pattern_of(owner):
            return name
        if caller and not place.path.startswith(f"{caller}."):
            return short_name(place.path, caller)
        return place.path.removeprefix(f"{caller}.") if caller else module_name(self.graph, place.path)


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
        odd_one=named_odd_one([module.path for module in modules], [module.total_bytes for module in modules]),
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
