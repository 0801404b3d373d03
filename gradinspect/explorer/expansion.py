"""Which scopes of an outline are expanded, and which copy of each repeat is shown."""

from typing import NamedTuple

from gradinspect.analyses.structure.folding import Scope, ids_of_copy, node_ids


class ScopeKey(NamedTuple):
    """A stable key for a scope: nested scopes may cover the same nodes, but not at the same level."""

    level: int  # number of expanded scopes around it
    start: int
    stop: int


class Expansion:
    """All scopes down to a depth, except those that the user expanded or collapsed."""

    def __init__(self, depth: int) -> None:
        """Expand all scopes nested less than `depth` levels deep."""
        self._depth = depth
        self._toggled: set[ScopeKey] = set()  # expanded though deeper, or collapsed though not
        self._copies: dict[ScopeKey, int] = {}

    def open_to(self, depth: int) -> None:
        """Expand all scopes down to another depth, discarding the user's changes except the copies shown."""
        self._depth = depth
        self._toggled.clear()

    def is_open(self, scope: Scope, level: int) -> bool:
        """Return whether a scope is expanded."""
        return (_key(scope, level) in self._toggled) != (level < self._depth)

    def copy_of(self, scope: Scope, level: int) -> int:
        """Return the copy of a repeat that is shown."""
        return self._copies.get(_key(scope, level), 0)

    def set_open(self, scope: Scope, level: int, *, is_open: bool) -> None:
        """Expand or collapse a scope."""
        if is_open != (level < self._depth):
            self._toggled.add(_key(scope, level))
        else:
            self._toggled.discard(_key(scope, level))

    def show(self, scope: Scope, level: int, copy: int) -> bool:
        """Expand a scope, at one copy if it is a repeat; return whether anything changed."""
        if self.is_open(scope, level) and self.copy_of(scope, level) == copy:
            return False
        self.set_open(scope, level, is_open=True)
        self._copies[_key(scope, level)] = copy
        return True

    def move(self, scope: Scope, level: int, copy: int) -> None:
        """Show another copy of a repeat, expanded like the previous one."""
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
    """Return whether a scope is deeper than a level and within some ids."""
    return key.level > level and ids.start <= key.start and key.stop <= ids.stop
