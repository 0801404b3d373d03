"""The garbage collector while backward runs."""

from collections.abc import Callable
from gc import freeze, get_freeze_count, unfreeze


class CollectorFreeze:
    """Keeps the garbage collector from repeatedly traversing a whole record while backward runs."""

    _is_ours = False
    _is_the_programs = False  # asked for until it is so: what is frozen is counted, one object after the other

    def begin(self) -> Callable[[], None]:
        """Freeze what there is, unless the program does so itself; return a function that undoes it."""
        self._is_the_programs = self._is_the_programs or (not self._is_ours and get_freeze_count() > 0)
        if self._is_ours or self._is_the_programs:
            return lambda: None
        freeze()
        self._is_ours = True
        return self._end

    def _end(self) -> None:
        unfreeze()
        self._is_ours = False
