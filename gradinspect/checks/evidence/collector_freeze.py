"""The garbage collector while backward runs."""

from collections.abc import Callable
from gc import freeze, get_freeze_count, unfreeze


class CollectorFreeze:
    """Keeps the garbage collector from repeatedly traversing a whole record while backward runs."""

    _is_ours = False
    is_the_programs = False  # of the process, and asked for until it is so: what is frozen is counted one by one

    def begin(self) -> Callable[[], None]:
        """Freeze what there is, unless the program does so itself; return a function that undoes it."""
        if not (self._is_ours or self.is_the_programs) and get_freeze_count() > 0:
            CollectorFreeze.is_the_programs = True
        if self._is_ours or self.is_the_programs:
            return lambda: None
        freeze()
        self._is_ours = True
        return self._end

    def _end(self) -> None:
        unfreeze()
        self._is_ours = False
