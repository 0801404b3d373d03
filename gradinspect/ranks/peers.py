"""What one rank knows of another: its last state, how it ended, since when it has not moved."""

import os
import select
from collections.abc import Callable, Iterator
from time import monotonic

from gradinspect.ranks.job import Job
from gradinspect.ranks.meeting import HOST, Meeting, is_running, started_at
from gradinspect.ranks.records import Outcome, State

SILENCE_S = 15.0  # of a process on another host, which shows that it is alive every second
SILENT_TICKS = 3  # in a large job


class Peer:
    """Another rank."""

    def __init__(self, rank: int, now: float, silence_s: float = SILENCE_S) -> None:
        """Start empty.

        Args:
            rank: Its number.
            now: The time.
            silence_s: How long a process of another host may be silent.
        """
        self._silence_s = silence_s
        self.rank = rank
        self.state: State | None = None
        self.outcome: Outcome | None = None
        self.is_gone = False
        self.is_lost = False  # it could not write what it had to say
        self._moved_at = now
        self._beat_at = now

    def update(self, state: State | None, outcome: Outcome | None, now: float) -> None:
        """Take what was just read."""
        before = self.state
        if state is not None and state != before:
            self._beat_at = now
            if before is None or (state.moves, state.calls, state.phase) != (before.moves, before.calls, before.phase):
                self._moved_at = now
        known = self.state = state or before
        self.outcome = outcome or self.outcome
        if known is not None:
            is_here = known.host == HOST
            is_alive = is_running(known.pid, known.started) if is_here else now - self._beat_at <= self._silence_s
            self.is_gone = not is_alive

    @property
    def calls(self) -> int:
        """Count its engine calls."""
        return 0 if self.state is None else self.state.calls

    @property
    def has_ended(self) -> bool:
        """Whether its program has ended or was stopped."""
        return self.is_gone or self.is_lost or self.outcome is not None

    def idle_s(self, now: float) -> float:
        """Return for how long it has been where it is."""
        return now - self._moved_at


class Peers:
    """All that one rank watches: rank 0 watches every other one, and they watch it."""

    def __init__(self, job: Job, meeting: Meeting) -> None:
        """Set up."""
        now = monotonic()
        self.start = now
        self._meeting = meeting
        silence_s = max(SILENCE_S, SILENT_TICKS * job.tick_s)
        self._all = [Peer(rank, now, silence_s) for rank in (job.others if job.is_leader else (0,))]
        self._ends = _Ends()

    def __iter__(self) -> Iterator[Peer]:
        """Yield each."""
        return iter(self._all)

    def refresh(self) -> None:
        """Read what they have left."""
        for peer in self._all:
            if peer.is_gone and peer.state is not None and peer.outcome is not None:
                continue
            state = self._meeting.read(f"state.{peer.rank}", State)
            outcome = self._meeting.read(f"outcome.{peer.rank}", Outcome)
            peer.is_lost = self._meeting.get(f"lost.{peer.rank}") is not None
            peer.update(state, outcome, monotonic())
            if peer.is_gone and peer.outcome is None:  # it may have left it since
                peer.outcome = self._meeting.read(f"outcome.{peer.rank}", Outcome)
            if peer.state is not None and not peer.is_gone and peer.state.host == HOST:
                self._ends.watch(peer.state.pid, peer.state.started)

    def wait(self, seconds: float, sleep: Callable[[float], object]) -> None:
        """Wait a while, but no longer than until one of them ends: its launcher may end us next."""
        if not self._ends.wait(seconds):
            sleep(seconds)

    def close(self) -> None:
        """Stop watching."""
        self._ends.close()


class _Ends:
    """Notices at once that a process of this host ends, where the system can."""

    def __init__(self) -> None:
        self._poll = select.poll() if hasattr(os, "pidfd_open") and hasattr(select, "poll") else None
        self._files: dict[int, int] = {}

    def watch(self, pid: int, started: str) -> None:
        if self._poll is None or pid in self._files:
            return
        try:
            self._files[pid] = os.pidfd_open(pid)
        except OSError:
            self._files[pid] = -1
            return
        if started_at(pid) == started:
            self._poll.register(self._files[pid], select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Wait; return False if that is not possible here."""
        if self._poll is None or not self._files:
            return False
        for file, _ in self._poll.poll(seconds * 1000):
            self._poll.unregister(file)
        return True

    def close(self) -> None:
        files, self._files = self._files, {}
        for file in files.values():
            if file >= 0:
                os.close(file)
