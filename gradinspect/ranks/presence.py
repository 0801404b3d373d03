"""A rank's presence among the others: it shows them what it is doing, and watches them, while its program runs.

NOTE [Ranks that need each other]
In a pipeline no stage reaches its backward before that of the next stage has run. So a rank that has recorded does not
end its program at once. It waits for the others; if all late ones wait in collectives for one another, it lets its own
program go on, and all end when all have recorded, or after the patience for a rank that does not move. Rank 0 decides,
and leaves files that say so.

NOTE [The thread of a rank]
A rank that waits in a collective runs no Python, and can neither say where it is nor learn what others do. So a thread
does both, five times a second. The program does not see it among its threads, and it uses only functions that it has
bound before the program could replace them.
"""

import _thread
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from types import FrameType

from msgspec.structs import replace

from gradinspect.errors import SCRIPT_FAILED
from gradinspect.own_threads import start_thread
from gradinspect.ranks.job import Job
from gradinspect.ranks.meeting import HOST, Meeting, started_at
from gradinspect.ranks.peers import Peers
from gradinspect.ranks.records import Outcome, Phase, State
from gradinspect.ranks.troubles import GRACE_S, Trouble, end_of, standstill, trouble_while_running

STOP = "stop"  # the file by which rank 0 asks the others to end
ALL_READY = (
    "all-ready"  # the ones by which it says that all have recorded, and that a late one needs another's backward
)
GO_ON = "go-on"
NEEDY_S = 2.0  # without progress of the late ranks
RECORDED_PATIENCE_S, FAILED_PATIENCE_S = 5.0, 10.0  # for a program to end
REPORTED = "reported"  # the one by which it says that it has reported
COMMUNICATION = f"torch{os.sep}distributed{os.sep}"  # in the names of files
_frames = sys._current_frames
_pid = os.getpid

Where = Callable[[FrameType], tuple[str, str]]


class Presence:
    """Shows and watches, in a thread of its own."""

    def __init__(self, job: Job, say: Callable[[str], None]) -> None:
        """Set up.

        Args:
            job: This rank.
            say: Prints a sentence to stderr.
        """
        self.job = job
        self.meeting = Meeting(job)
        self.peers = Peers(job, self.meeting)
        self.trouble: Trouble | None = None  # that was printed, because the program would not end by itself
        self.has_published_failure = False
        self._outcome: Outcome | None = None
        self.is_stopped = False  # by what happened to other ranks
        self._say = say
        self._where: Where | None = None
        self._stop: Callable[[int, float], None] | None = None
        self._ready_at: float | None = None  # when this rank had recorded
        self._waits = False  # for others, in `may_stop`
        self._has_ended_ready = False
        self._owner = _pid()
        self._main = threading.main_thread().ident or 0
        self._ended = _thread.allocate_lock()  # held until the end
        self._ended.acquire()
        self._state = State(pid=self._owner, host=HOST, started=started_at(self._owner))
        self._stack: tuple[int, ...] = ()
        self._start = self._moved_at = self._shown_at = monotonic()
        self._failed_at: float | None = None  # when another rank was first known to have failed
        self._has_told_standstill = False

    @property
    def is_ours(self) -> bool:
        """Whether this is the process of the rank, and not a fork of it."""
        return _pid() == self._owner

    def begin(self) -> None:
        """Find the others, and start the thread."""
        self.meeting.connect()
        self._show()
        start_thread(self._run)

    def watch_program(self, where: Where, stop: Callable[[int, float], None] | None) -> None:
        """Note that the program runs now.

        Args:
            where: Finds the line of the program in a stack, and the function that it calls.
            stop: Ends the program, with an exit code and seconds for it to end by itself; None if it is to go on.
        """
        self._where, self._stop = where, stop

    def program_has_ended(self) -> None:
        """Note that it does not run any more: the thread must not hold what belongs to it."""
        self._where = self._stop = None

    def may_stop(self) -> bool:
        """Wait until all ranks have recorded; False if others need what this program does next.

        NOTE [Ranks that need each other].
        """
        if not self.is_ours or not self.meeting.is_open:
            return True
        is_first, self._waits = self._ready_at is None, True
        try:
            if is_first:
                self._ready_at = monotonic()
                self._state = replace(self._state, is_ready=True)
                self._show()
            until = monotonic() + (2 * self.job.tick_s if is_first else 0.0)
            while not self._all_may_end():
                if self.meeting.get(GO_ON) is not None and monotonic() >= until:
                    return False
                self.sleep(self.job.tick_s / 4)
            return True
        finally:
            self._waits = False

    def _all_may_end(self) -> bool:
        late = self._ready_at is not None and monotonic() - self._ready_at > self.job.patience_s
        leader_is_gone = not self.job.is_leader and next(iter(self.peers)).is_gone
        return late or leader_is_gone or any(self.meeting.get(name) is not None for name in (ALL_READY, STOP))

    def call_reached(self) -> None:
        """Count an engine call, and show it, as the process may not live to the next moment."""
        if self.is_ours:
            self._look()
            self._state = replace(self._state, calls=self._state.calls + 1)
            if monotonic() - self._shown_at > self.job.tick_s / 10:
                self._show()

    def enter(self, phase: Phase) -> None:
        """Show what comes next."""
        self._state = replace(self._state, phase=phase)
        self._show()

    @property
    def calls(self) -> int:
        """Count the engine calls so far."""
        return self._state.calls

    def publish(self, outcome: Outcome) -> None:
        """Leave how this rank has ended."""
        if self.is_ours:
            self.has_published_failure = outcome.exit_code > 0
            self._outcome = outcome
            self.meeting.put(f"outcome.{self.job.rank}", outcome)

    def sleep(self, seconds: float) -> None:
        """Wait a while, for another rank."""
        if self._ended.acquire(timeout=seconds):
            self._ended.release()

    def end(self) -> None:
        """Stop, and leave the folder."""
        if self.is_ours and self._ended.locked():
            self._ended.release()
            self.meeting.leave([peer.rank for peer in self.peers if peer.is_gone] if self.job.is_leader else ())
            self.peers.close()

    def _run(self) -> None:
        while self._ended.locked():
            with suppress(Exception):
                self._tick()
            self.peers.wait(self.job.tick_s, self.sleep)

    def _tick(self) -> None:
        was_open = self.meeting.is_open
        if self.meeting.connect():
            if not was_open and self._outcome is not None:
                self.publish(self._outcome)
            self._look()
            self._show()
            self.peers.refresh()
            if self.job.is_leader:
                self._decide_whether_to_go_on()
            if self._ready_at is not None and not self._waits and not self._has_ended_ready and self._all_may_end():
                self._has_ended_ready = True
                if self._stop is not None:
                    self._stop(0, RECORDED_PATIENCE_S)
            if self._where is not None and not self.is_stopped:
                self._judge_as_leader() if self.job.is_leader else self._judge_as_other()

    def _look(self) -> None:
        """See where the main thread is."""
        frame = _frames().get(self._main)
        where, stack, line = self._where, [], None
        if where is not None and frame is not None and self._state.phase == "running":
            line, inside = where(frame)
        communicates = False
        while frame is not None:
            communicates = communicates or COMMUNICATION in frame.f_code.co_filename
            stack += [id(frame.f_code), frame.f_lasti]
            frame = frame.f_back
        if tuple(stack) != self._stack:
            self._stack, self._moved_at = tuple(stack), monotonic()
            self._state = replace(self._state, moves=self._state.moves + 1, communicates=communicates)
        if line is not None:
            self._state = replace(self._state, line=line, inside=inside)

    def _show(self) -> None:
        self._shown_at = monotonic()
        self._state = replace(self._state, beat=int(monotonic() - self._start))
        self.meeting.put(f"state.{self.job.rank}", self._state)

    def _decide_whether_to_go_on(self) -> None:
        """Let all end if all have recorded; let those that have go on if the others need them."""
        now, late = monotonic(), []
        for peer in self.peers:
            state = peer.state
            if peer.has_ended or (state is not None and state.is_ready):
                continue
            if state is not None or self.job.folder or peer.rank in self.job.near:
                late.append((state is not None and state.communicates, peer.idle_s(now)))
        if self._where is not None and not self._state.is_ready:
            late.append((self._state.communicates, now - self._moved_at))
        if not late:
            self._decide(ALL_READY)
        elif all(communicates and idle >= NEEDY_S for communicates, idle in late):
            self._decide(GO_ON)

    def _decide(self, name: str) -> None:
        if self.meeting.get(name) is None:
            self.meeting.put(name, b"")

    def _judge_as_leader(self) -> None:
        """Look for what the other ranks did, or do not do."""
        now, idle = monotonic(), monotonic() - self._moved_at
        if self._failed_at is None and any(end_of(peer) for peer in self.peers):
            self._failed_at = now
        failed_for = 0.0 if self._failed_at is None else now - self._failed_at
        patience = self.job.patience_s
        trouble = trouble_while_running(self._state, idle, self.peers, now, patience, failed_for)
        if trouble is not None:
            self._end_program(trouble, now)
        elif not self._has_told_standstill:
            sentence = standstill(self._state, idle, list(self.peers), now, patience)
            if sentence:
                self._has_told_standstill = True
                self._say(f"note: {sentence}")

    def _judge_as_other(self) -> None:
        """End when rank 0 says so, or is gone."""
        leader = next(iter(self.peers))
        if self.meeting.get(STOP) is not None:
            self._stop_program()
        elif leader.is_gone:
            trouble = end_of(leader)
            if trouble is not None and leader.outcome is None and self.job.rank == self._first_alive():
                self._say(f"gradinspect: {trouble.sentence}")
            self._stop_program()

    def _first_alive(self) -> int:
        """Return the lowest rank that is still there."""
        everyone = Peers(self.job._replace(rank=0), self.meeting)
        everyone.refresh()
        return min((peer.rank for peer in everyone if peer.state is not None and not peer.is_gone), default=0)

    def _end_program(self, trouble: Trouble, now: float) -> None:
        """Say what is wrong, at once if a rank has died, as the launcher will end us next; then end the program."""
        if self.trouble is None:
            self.trouble = trouble
            self._say(f"gradinspect: {trouble.sentence}")
            self.meeting.put(REPORTED, b"")
        if self._failed_at is None or now - self._failed_at >= GRACE_S:
            self.meeting.put(STOP, b"")
            self._stop_program()

    def _stop_program(self) -> None:
        self.is_stopped = True
        if self._stop is not None:
            self._stop(SCRIPT_FAILED, FAILED_PATIENCE_S)
