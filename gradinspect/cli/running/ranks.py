"""Run a verb as one rank of a job: rank 0 reports for all, and says which rank is in trouble; the others are silent.

NOTE [One report]
Each rank leaves what it found, and how it ended, where they meet (NOTE [Where ranks meet] in `ranks.meeting`). Rank 0
waits for them, but never for one that does not move; it prints, and then lets the others end. A launcher ends all ranks
as soon as one exits with an error, so no rank exits with one before rank 0 has reported.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from time import monotonic
from typing import Any, Generic, TypeVar

from gradinspect.cli.output.printing import print_message, print_problem
from gradinspect.cli.running.questions import Question
from gradinspect.cli.running.rank_results import RankResult, ReceivedResult, differences
from gradinspect.errors import SCRIPT_FAILED, USER_CAN_FIX_IT, GradInspectError, ScriptFailedError
from gradinspect.ranks.job import TICK_S, this_job
from gradinspect.ranks.peers import Peer
from gradinspect.ranks.presence import REPORTED, STOP, Presence
from gradinspect.ranks.records import Outcome
from gradinspect.ranks.troubles import ARRIVAL_S, Trouble, absence_of, end_of, hang_of, named
from gradinspect.units import escape_control

T = TypeVar("T")
PATIENCES = 20  # how many times as long to wait for a rank that moves on, but does not end
NEWS_S = 1.0  # for the news that another rank has failed before
GOODBYE_S = 2.0


@cache
def presence() -> Presence | None:
    """Return this process's presence in its job; None without a job."""
    job = this_job()
    return None if job is None else Presence(job, _say)


def _say(sentence: str) -> None:
    """Print a sentence from the thread of a rank."""
    with suppress(OSError, ValueError):
        print(escape_control(sentence), file=sys.__stderr__, flush=True)


def run_as_rank(run: Callable[[Callable[[str], None]], int]) -> int:
    """Run a command line as one rank of a job.

    Args:
        run: Runs it and returns the exit code; it gets what prints an error.
    """
    here = presence()
    if here is None:
        return run(print_problem)
    here.begin()
    try:
        if here.meeting.problem:
            if here.job.rank == here.job.near[0] or here.meeting.is_open:  # one of each host says it, or who lacks room
                print_problem(here.meeting.problem, even_if_silent=True)
            return USER_CAN_FIX_IT
        if here.job.is_leader:
            return _end_as_leader(here, run(print_problem))
        unsaid: list[str] = []
        return _end_as_other(here, run(unsaid.append), unsaid)
    finally:
        here.end()


def _end_as_leader(here: Presence, code: int) -> int:
    """Let the others end, also those that have only begun."""
    if code >= USER_CAN_FIX_IT:
        here.meeting.put(STOP, b"")
        until = monotonic() + GOODBYE_S
        while monotonic() < until and any(peer.state is None for peer in here.peers if peer.rank in here.job.near):
            here.sleep(TICK_S / 4)
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    here.meeting.put(REPORTED, b"")
    return code


def _end_as_other(here: Presence, code: int, unsaid: list[str]) -> int:
    """Leave what was not said to rank 0, and end when it has reported, or is gone."""
    if here.is_stopped:
        return code
    if (code >= USER_CAN_FIX_IT or unsaid) and not here.has_published_failure:
        here.publish(Outcome(exit_code=code, sentence=" ".join(unsaid) or f"It ended with exit code {code}."))
    here.enter("waiting")
    if not _leader_has_reported(here, may_come=bool(unsaid)):
        for sentence in unsaid:
            print_problem(sentence, even_if_silent=True)
    return code


def _leader_has_reported(here: Presence, *, may_come: bool) -> bool:
    """Wait until rank 0 has reported; it is not waited for where it is not found, has ended, or does not move."""
    start, leader = monotonic(), next(iter(here.peers))
    while here.meeting.get(REPORTED) is None:
        now = monotonic()
        running = leader.state is None or leader.state.phase == "running"
        hangs = running and leader.idle_s(now) > here.job.patience_s + 2 * TICK_S
        is_lost = not here.meeting.is_open and now - start > (ARRIVAL_S if may_come else TICK_S)
        if is_lost or leader.is_gone or hangs or now - start > PATIENCES * here.job.patience_s:
            return False
        here.sleep(TICK_S)
    until = monotonic() + GOODBYE_S  # an exit code other than 0 would have the launcher end it
    while not leader.is_gone and monotonic() < until:
        here.sleep(TICK_S / 4)
    return True


class RankedAnswer(Generic[T]):
    """Answers a question on one rank."""

    def __init__(self, here: Presence, question: Question[T], report: Callable[[T], None]) -> None:
        """Set up.

        Args:
            here: This rank among the others.
            question: What is asked.
            report: Prints the result, and writes files.
        """
        self._here = here
        self._question = question
        self._report = report
        self._troubles: list[Trouble] = []

    def run(self, answer: Callable[[Callable[[T], None]], None]) -> None:
        """Run the program, and report for all ranks.

        Args:
            answer: Runs the program, and hands over the result.

        Raises:
            ScriptFailedError: A rank failed, died or hangs; which one has been said, or is.
        """
        if self._here.job.is_leader:
            self._run_as_leader(answer)
        else:
            self._run_as_other(answer)

    def _run_as_other(self, answer: Callable[[Callable[[T], None]], None]) -> None:
        here = self._here
        try:
            answer(self._deliver_to_leader)
        except (GradInspectError, ScriptFailedError) as error:
            here.program_has_ended()
            if here.is_stopped:
                raise ScriptFailedError("", SCRIPT_FAILED) from None
            if isinstance(error, GradInspectError) and not here.calls:
                here.publish(Outcome(exit_code=USER_CAN_FIX_IT, sentence=str(error), has_nothing=True))
            raise

    def _run_as_leader(self, answer: Callable[[Callable[[T], None]], None]) -> None:
        here = self._here
        try:
            answer(self._deliver_for_all)
        except (GradInspectError, ScriptFailedError) as error:
            here.program_has_ended()
            if here.trouble is not None:
                raise ScriptFailedError("", here.trouble.exit_code) from None
            raise self._with_news(error) from None
        if here.trouble is not None:
            raise ScriptFailedError("", here.trouble.exit_code)
        if self._troubles:
            sentences = " ".join(trouble.sentence for trouble in self._troubles)
            raise ScriptFailedError(sentences, max(trouble.exit_code for trouble in self._troubles))

    def _deliver_to_leader(self, result: T) -> None:
        """Write what this rank has to write, silently, and leave the rest to rank 0."""
        self._here.program_has_ended()
        self._report(result)
        sent = self._question.summarize(result)
        self._here.meeting.put(f"result.{self._here.job.rank}", sent.content)
        self._here.publish(Outcome(moment=sent.moment, facts=sent.facts))

    def _deliver_for_all(self, result: T) -> None:
        """Wait for the others, and report."""
        here = self._here
        here.program_has_ended()
        here.enter("waiting")
        with _held_end():
            notes = self._settle()
            own = self._question.summarize(result)
            others = {peer.rank: peer for peer in here.peers if peer.outcome is not None and not end_of(peer)}
            contents = {rank: here.meeting.get(f"result.{rank}") or b"" for rank in others}
            if self._question.merge is not None:
                others_sent = {rank: content for rank, content in contents.items() if content}
                result = self._question.merge(result, others_sent)
            self._report(result)
            self._troubles += _without_backward(own, others)
            received = [ReceivedResult(own, 0)]
            received += [ReceivedResult(_result_of(peer, contents[rank]), rank) for rank, peer in others.items()]
            alike = [one for one in received if one.result.moment == own.moment]
            for sentence in (*notes, *(differences(alike) if len(alike) > 1 else ())):
                print_message(f"note: {sentence}")

    def _settle(self) -> list[str]:
        """Wait until each rank has ended, or is known to be in trouble; return what else is to be said."""
        here, notes = self._here, []
        for peer in here.peers:
            trouble = self._trouble_of(peer)
            if trouble is not None and here.trouble is not None and trouble.rank == here.trouble.rank:
                continue
            if trouble is not None and trouble.exit_code:
                self._troubles.append(trouble)
            elif trouble is not None:
                notes.append(trouble.sentence)
        return notes

    def _trouble_of(self, peer: Peer) -> Trouble | None:
        """Wait for one rank."""
        here, start = self._here, self._here.peers.start
        limit = monotonic() + PATIENCES * here.job.patience_s
        while not peer.has_ended:
            now = monotonic()
            trouble = hang_of(peer, now, here.job.patience_s) or absence_of(peer, here.job, now - start)
            if trouble is not None:
                return trouble
            if now > limit:
                return hang_of(peer, now, 0.0)
            here.sleep(TICK_S / 4)
        return end_of(peer)

    def _with_news(self, error: GradInspectError | ScriptFailedError) -> Exception:
        """Add what happened to other ranks, which may be the cause."""
        here = self._here
        until = monotonic() + NEWS_S
        found: list[Trouble] = []
        while not found and monotonic() < until:
            found = [trouble for peer in here.peers if (trouble := end_of(peer)) is not None]
            here.sleep(TICK_S / 4)
        recorded = [peer.rank for peer in here.peers if peer.outcome is not None and peer.outcome.moment]
        parts = [trouble.sentence for trouble in found]
        parts += [f"{named(recorded).capitalize()} recorded a graph."] if recorded else []
        if not parts:
            return error
        code = error.exit_code if isinstance(error, ScriptFailedError) else USER_CAN_FIX_IT
        return ScriptFailedError(" ".join([f"Rank 0: {error}", *parts]), code)


def _result_of(peer: Peer, content: bytes) -> RankResult:
    outcome = peer.outcome or Outcome()
    return RankResult(outcome.moment, outcome.facts, content)


def _without_backward(own: RankResult, others: dict[int, Peer]) -> Iterator[Trouble]:
    """Yield ranks that called no backward, while others did."""
    moments = {0: own.moment, **{rank: peer.outcome.moment for rank, peer in others.items() if peer.outcome}}
    lacking = [rank for rank, moment in moments.items() if moment == "end"]
    calling = [rank for rank, moment in moments.items() if moment and moment != "end"]
    if lacking and calling:
        yield Trouble(lacking[0], USER_CAN_FIX_IT, f"{named(lacking).capitalize()} called no backward before the end "
                      f"of the program, while {named(calling)} did.")  # fmt: skip


@contextmanager
def _held_end() -> Iterator[None]:
    """Delay a request to end: the launcher sends one as soon as another rank has failed, and we still report that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before: Any = signal.signal(signal.SIGTERM, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
