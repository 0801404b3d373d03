"""What is wrong with a rank, in one sentence: it died, failed, hangs, or calls no backward."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gradinspect.errors import SCRIPT_FAILED, USER_CAN_FIX_IT
from gradinspect.ranks.job import FOLDER, Job
from gradinspect.ranks.peers import Peer
from gradinspect.ranks.records import State
from gradinspect.units import format_calls, format_ranges

GRACE_S = 5.0  # for a rank that may still reach what another did not
ARRIVAL_S = 5.0  # for ranks of other hosts to find the folder


class Trouble(NamedTuple):
    """What is wrong with one rank."""

    rank: int
    exit_code: int
    sentence: str


def whereabouts(state: State | None) -> str:
    """Say where a rank was last: `it was last at train.py:12, in barrier(), after 1 backward call`."""
    if state is None:
        return ""
    calls = f"after {format_calls(state.calls, 0)}" if state.calls else "before any backward call"
    inside = f", in {state.inside}()" if state.inside else ""
    return f"at {state.line}{inside}, {calls}" if state.line else calls


def end_of(peer: Peer) -> Trouble | None:
    """Return what is wrong with how a rank ended; None if nothing is, or it has not."""
    name, outcome = f"Rank {peer.rank}", peer.outcome
    if outcome is None:
        if peer.is_lost:
            return Trouble(peer.rank, USER_CAN_FIX_IT, f"{name} could not write in the folder where the ranks meet. "
                           f"Make room there, or name another one: {FOLDER}=FOLDER.")  # fmt: skip
        if not peer.is_gone:
            return None
        return Trouble(peer.rank, SCRIPT_FAILED, f"{name} died (killed?): it was last "
                       f"{whereabouts(peer.state)}.")  # fmt: skip
    if outcome.exit_code < USER_CAN_FIX_IT:
        return None
    line = "" if peer.state is None else peer.state.line
    if outcome.has_nothing:
        last = f", last at {line}" if line else ""
        return Trouble(peer.rank, outcome.exit_code, f"{name} called no backward before its program ended{last}.")
    last = f" It was last {whereabouts(peer.state)}." if line else ""
    return Trouble(peer.rank, outcome.exit_code, f"{name}: {outcome.sentence}{last}")


def hang_of(peer: Peer, now: float, patience_s: float) -> Trouble | None:
    """Return that a rank hangs: it runs, and has been where it is for too long."""
    if peer.has_ended or peer.state is None or peer.idle_s(now) < patience_s:
        return None
    idle = f"{peer.idle_s(now):.0f} s"
    return Trouble(
        peer.rank, SCRIPT_FAILED, f"Rank {peer.rank} hangs: for {idle} it has been {whereabouts(peer.state)}."
    )


def absence_of(peer: Peer, job: Job, waited_s: float) -> Trouble | None:
    """Return that a rank never came to where the others meet."""
    if peer.state is not None:
        return None
    sentence = f"Rank {peer.rank} never came: no process of that rank runs under gradinspect"
    if peer.rank in job.near:
        if waited_s < job.patience_s:
            return None
        return Trouble(peer.rank, USER_CAN_FIX_IT, f"{sentence}. Start every rank with the same command.")
    if waited_s < ARRIVAL_S:
        return None
    remedy = f"Name a folder that all hosts share: {FOLDER}=/shared/folder."
    return Trouble(peer.rank, 0, f"Rank {peer.rank} is on another host and was not compared. {remedy}")


def trouble_while_running(mine: State, idle_s: float, peers: Iterable[Peer], now: float, patience_s: float,
                          failed_for_s: float) -> Trouble | None:  # fmt: skip
    """Return why the program of rank 0 should be ended: what another rank did or does not do, or its own hanging.

    Args:
        mine: What rank 0 is doing.
        idle_s: For how long it has been where it is.
        peers: The other ranks.
        now: The time.
        patience_s: For a rank that does not move.
        failed_for_s: For how long another rank has been known to have failed.
    """
    known = list(peers)
    for peer in known:
        trouble = end_of(peer)
        if trouble is not None and (peer.outcome is None or failed_for_s >= GRACE_S):
            return trouble
    if idle_s < patience_s:
        return None
    for peer in known:
        trouble = hang_of(peer, now, patience_s)
        if trouble is not None and (mine.calls > peer.calls or any(ahead(other, peer) for other in known)):
            return trouble
    if known and all(peer.has_ended for peer in known):
        where = whereabouts(mine)
        return Trouble(0, SCRIPT_FAILED, f"Rank 0 hangs: for {idle_s:.0f} s it has been {where}, while all other ranks "
                       "have ended.")  # fmt: skip
    return None


def ahead(one: Peer, other: Peer) -> bool:
    """Return whether one rank has got further than another."""
    return one is not other and (one.calls > other.calls or (one.outcome is not None and not other.has_ended))


def standstill(mine: State, idle_s: float, peers: Sequence[Peer], now: float, patience_s: float) -> str:
    """Say where the ranks are if none of them has moved for a while, and they are not all in the same line; or ""."""
    running = [peer for peer in peers if not peer.has_ended and peer.state is not None]
    if idle_s < 2 * patience_s or any(peer.idle_s(now) < 2 * patience_s for peer in running):
        return ""
    places: dict[str, list[int]] = {}
    for rank, state in [(0, mine), *((peer.rank, peer.state) for peer in running)]:
        places.setdefault(whereabouts(state), []).append(rank)
    if len(places) < 2:
        return ""
    parts = [f"{named(ranks)} {'is' if len(ranks) == 1 else 'are'} {where}" for where, ranks in places.items()]
    return f"No rank has moved for {idle_s:.0f} s: {'; '.join(parts)}."


def named(ranks: Sequence[int]) -> str:
    """Name ranks: `rank 3`, `ranks 0-5, 7`."""
    return f"rank{'s' if len(ranks) > 1 else ''} {format_ranges(ranks)}"
