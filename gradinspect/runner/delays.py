"""How long the machine has let the program wait while it could have run.

What is limited by the clock on the wall would otherwise end earlier on a busy machine than on an idle one. A user does
not wait without end: of a delay, no more than MOST_DELAY_S counts.
"""

from os import O_RDONLY, close, read
from os import open as open_file

MOST_DELAY_S = 60.0
_NS_PER_S = 1_000_000_000
_STATISTICS = "/proc/self/schedstat"  # of the main thread: ns that it ran, ns that it was ready and did not, turns
_MOST_BYTES = 200


def delay_s() -> float:
    """Return the seconds for which the main thread was ready and did not run; 0 where the system does not count them.

    Source: Linux Documentation/scheduler/sched-stats.rst.
    """
    try:
        file = open_file(_STATISTICS, O_RDONLY)
        try:
            return int(read(file, _MOST_BYTES).split()[1]) / _NS_PER_S
        finally:
            close(file)
    except (OSError, ValueError, IndexError):
        return 0.0


def without_delay(waited: float, delayed: float) -> float:
    """Return the seconds of a wait that count, given the part in which the machine let the program wait."""
    return waited - min(delayed, MOST_DELAY_S)
