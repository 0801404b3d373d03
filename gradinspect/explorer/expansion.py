"""Which scopes of an outline a reader has open, and at which copy each repeat."""

from typing import NamedTuple

from gradinspect.analyses.structure.folding import Scope, ids_of_copy, node_ids


class ScopeKey(NamedTuple):
    """A scope, as it can be recognized in any telling: nested scopes may cover the same nodes, but not at one level."""

    level: int  # how many open scopes it is in
    start: int
    stop: int


class Openings:
    """All scopes down to a depth, but for those that the reader opened or closed himself."""

    def __init__(self, depth: int) -> None:
        """Open all scopes that are in fewer open scopes than `depth`."""
        self._depth = depth
        self._toggled: set[ScopeKey] = set()  # open though deeper, or closed though not
        self._copies: dict[ScopeKey, int] = {}

    def open_to(self, depth: int) -> None:
        """Open all scopes down to another depth, whatever the reader did; repeats stay at their copies."""
        self._depth = depth
        self._toggled.clear()

    def is_open(self, scope: Scope, level: int) -> bool:
        """Tell whether a scope is open."""
        return (_key(scope, level) in self._toggled) != (level < self._depth)

    def copy_of(self, scope: Scope, level: int) -> int:
        """Return the copy of a repeat that is told."""
        return self._copies.get(_key(scope, level), 0)

    def set_open(self, scope: Scope, level: int, *, is_open: bool) -> None:
        """Open or close a scope."""
        if is_open != (level < self._depth):
            self._toggled.add(_key(scope, level))
        else:
            self._toggled.discard(_key(scope, level))

    def show(self, scope: Scope, level: int, copy: int) -> bool:
        """Open a scope, at one copy if it is a repeat; return whether anything changed."""
        if self.is_open(scope, level) and self.copy_of(scope, level) == copy:
            return False
        self.set_open(scope, level, is_open=True)
        self._copies[_key(scope, level)] = copy
        return True

    def move(self, scope: Scope, level: int, copy: int) -> None:
        """Tell another copy of a repeat, in which as much is open as in the one that was told before it."""
        old, new = (ids_of_copy(scope, told) for told in (self.copy_of(scope, level), copy))
        self._copies[_key(scope, level)] = copy
        by = new.start - old.start
        inside = {_moved(key, by) for key in self._toggled if _is_in(key, level, old)}
        copies = {_moved(key, by): told for key, told in self._copies.items() if _is_in(key, level, old)}
        self._toggled = {key for key in self._toggled if not _is_in(key, level, new)} | inside
        self._copies = {key: told for key, told in self._copies.items() if not _is_in(key, level, new)} | copies


def _key(scope: Scope, level: int) -> ScopeKey:
    ids = node_ids(scope)
    return ScopeKey(level, ids.start, ids.stop)


def _moved(key: ScopeKey, by: int) -> ScopeKey:
    return ScopeKey(key.level, key.start + by, key.stop + by)


def _is_in(key: ScopeKey, level: int, ids: range) -> bool:
    """Tell whether a scope lies deeper than a level among some ids."""
    return key.level > level and ids.start <= key.start and key.stop <= ids.stop
