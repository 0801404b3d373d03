"""Match the module calls of two graphs: by path, by content, by class.

What comes in: two readings. What goes out: which call of A is which one of B.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence

from gradinspect.analyses.diff.alignment import rising
from gradinspect.analyses.diff.reading import CallContent, Reading
from gradinspect.analyses.diff.records import ModuleChange, ModuleChangeKind

KeyOf = Callable[[CallContent], Hashable]


class CallMatcher:
    """Matches calls from the outside in, then those that moved."""

    def __init__(self, before: Reading, after: Reading) -> None:
        """Take two readings."""
        self.before, self.after = before.calls, after.calls
        self.matched: dict[int, int] = {}
        self._paths = tuple(frozenset(call.path for call in calls) for calls in (self.before, self.after))
        self._taken: set[int] = set()
        self._waiting: deque[tuple[int, int]] = deque()

    def match(self) -> dict[int, int]:
        """Return the call of B for each call of A that is in both."""
        mine, theirs = self._outermost(self.before), self._outermost(self.after)
        self._pair(mine, theirs, lambda call: (call.path, call.class_name, call.number))
        self._walk()
        self._pair(*self._told_apart(range(len(self.before)), range(len(self.after))), _content)
        self._walk()
        for key in (_class_and_path, _path):
            self._pair(range(len(self.before)), range(len(self.after)), key)
            self._walk()
        self._pair_unique_classes()
        self._walk()
        return self.matched

    def _outermost(self, calls: Sequence[CallContent]) -> list[int]:
        return [index for index, call in enumerate(calls) if call.parent is None]

    def _told_apart(
        self, mine: Iterable[int], theirs: Iterable[int], *, are_inside: bool = False
    ) -> tuple[list[int], list[int]]:
        """Choose the calls that are left and whose content says which ones of the other graph they may be.

        One of four equal norms is in no way the one that the other graph has elsewhere: as many as there are, all of
        them moved. Fewer or more are matched if no path says where they have gone: modules with others inside, and
        those inside of the same module.
        """
        left = [index for index in mine if index not in self.matched]
        new = [index for index in theirs if index not in self._taken]
        counts = Counter(_content(self.before[index]) for index in left)
        counts.subtract(_content(self.after[index]) for index in new)

        def chosen(indices: list[int], calls: Sequence[CallContent], others: frozenset[str]) -> list[int]:
            return [
                index
                for index in indices
                if not counts[_content(calls[index])]
                or ((are_inside or calls[index].children) and calls[index].path not in others)
            ]

        return chosen(left, self.before, self._paths[1]), chosen(new, self.after, self._paths[0])

    def _walk(self) -> None:
        """Match what is inside of calls that are matched."""
        while self._waiting:
            mine, theirs = self._waiting.popleft()
            children = self.before[mine].children, self.after[theirs].children
            inside = _inside(self.before[mine].path), _inside(self.after[theirs].path)
            self._pair_named(children, inside, by_content=True)
            self._pair(*self._told_apart(*children, are_inside=True), _content)
            self._pair_named(children, inside, by_content=False)

    def _pair_named(
        self, children: tuple[list[int], list[int]], inside: tuple[Callable[[str], str], ...], *, by_content: bool
    ) -> None:
        """Pair children of the same name and class, if asked only those that are equal inside."""

        def key(call: CallContent, name: Callable[[str], str]) -> Hashable:
            return name(call.path), call.class_name, call.number, call.content if by_content else None

        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for child in children[1]:
            if child not in self._taken:
                waiting[key(self.after[child], inside[1])].append(child)
        for child in children[0]:
            if child not in self.matched and (found := waiting[key(self.before[child], inside[0])]):
                self._add(child, found.popleft())

    def _pair(self, mine: Iterable[int], theirs: Iterable[int], key: KeyOf) -> None:
        """Pair calls with equal keys, in order."""
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for index in theirs:
            if index not in self._taken:
                waiting[key(self.after[index])].append(index)
        for index in mine:
            if index not in self.matched and (found := waiting[key(self.before[index])]):
                self._add(index, found.popleft())

    def _pair_unique_classes(self) -> None:
        """Pair the only call of a class that is left in A with the only one in B."""
        mine, theirs = _by_class(self.before, self.matched), _by_class(self.after, self._taken)
        for name, indices in mine.items():
            if len(indices) == len(theirs.get(name, ())) == 1:
                self._add(indices[0], theirs[name][0])

    def _add(self, mine: int, theirs: int) -> None:
        self.matched[mine] = theirs
        self._taken.add(theirs)
        self._waiting.append((mine, theirs))


def _content(call: CallContent) -> Hashable:
    return call.content if call.nodes or call.children else (call.path, call.class_name, call.number)


def _class_and_path(call: CallContent) -> Hashable:
    return call.class_name, call.path, call.number


def _path(call: CallContent) -> Hashable:
    return call.path, call.number


def _inside(path: str) -> Callable[[str], str]:
    return lambda name: name.removeprefix(f"{path}.") if path else name


def _by_class(calls: Sequence[CallContent], done: Iterable[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    taken = set(done)
    for index, call in enumerate(calls):
        if index not in taken:
            found.setdefault(call.class_name, []).append(index)
    return found


def paths_in_after(before: Reading, after: Reading, matched: dict[int, int]) -> dict[str, str]:
    """Return the path in B of each module of A that is in both."""
    return {before.calls[mine].path: after.calls[theirs].path for mine, theirs in matched.items()}


def module_changes(before: Reading, after: Reading, matched: dict[int, int]) -> list[ModuleChange]:
    """List modules that only one graph has or that have another path, class or order; of nested ones the outer.

    A module that one graph calls more often is in both.
    """
    taken = set(matched.values())
    moved = _out_of_order(before, after, matched)
    changes = [
        *(ModuleChange(kind="removed", before=call.path, class_name=call.class_name)
          for call in _outermost_alone(before.calls, matched)),
        *(_module_change(before, after, matched, mine, is_moved=mine in moved) for mine in matched),
        *(ModuleChange(kind="added", after=call.path, class_name=call.class_name)
          for call in _outermost_alone(after.calls, taken)),
    ]  # fmt: skip
    return list(dict.fromkeys(change for change in changes if change is not None))  # a module called twice is one


def _outermost_alone(calls: Sequence[CallContent], matched: Collection[int]) -> Iterator[CallContent]:
    """Yield a call of each module that only one graph calls, inside of a call that both have."""
    in_both = {calls[index].path for index in matched}
    for index, call in enumerate(calls):
        if index not in matched and call.path not in in_both and (call.parent is None or call.parent in matched):
            yield call


def _module_change(
    before: Reading, after: Reading, matched: dict[int, int], mine: int, *, is_moved: bool
) -> ModuleChange | None:
    """Say what differs between two calls that are matched."""
    old, new = before.calls[mine], after.calls[matched[mine]]
    has_same_parent = (None if old.parent is None else matched.get(old.parent)) == new.parent
    kind: ModuleChangeKind | None = None
    class_name = new.class_name
    if old.class_name != new.class_name:
        kind, class_name = "replaced", f"{old.class_name} → {new.class_name}"
    elif is_moved or (not has_same_parent and old.path != new.path):
        kind = "moved"
    elif _own_name(before, old) != _own_name(after, new):
        kind = "renamed"
    return None if kind is None else ModuleChange(kind=kind, before=old.path, after=new.path, class_name=class_name)


def _own_name(reading: Reading, call: CallContent) -> str:
    return call.path if call.parent is None else _inside(reading.calls[call.parent].path)(call.path)


def _out_of_order(before: Reading, after: Reading, matched: dict[int, int]) -> set[int]:
    """Find the calls that run at another place among those of the same parent, as few as possible."""
    moved: set[int] = set()
    for mine, theirs in matched.items():
        places = {child: place for place, child in enumerate(after.calls[theirs].children)}
        pairs = [
            (place, places[matched[child]])
            for place, child in enumerate(before.calls[mine].children)
            if matched.get(child) in places and before.calls[child].nodes
        ]
        kept = set(rising(pairs))
        moved |= {before.calls[mine].children[place] for place, other in pairs if (place, other) not in kept}
    return moved
