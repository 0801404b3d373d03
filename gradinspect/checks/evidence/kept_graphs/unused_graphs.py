"""Graphs that the program keeps although no backward goes through them: outputs of validation in a list.

NOTE [Kept for later]
A graph that is still held two calls after it was made was not meant for them. It may be meant for a later one: that of
an actor that learns at the end of an episode while its critic learns at every step, or of one of many samples that were
all predicted before. So where a call ever went through a graph that had waited for some calls, others may wait two
calls longer, and nothing is said of parameters that no backward has reached so far.
"""

import sys
from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from gradinspect.checks.evidence.kept_graphs.kept_history import stored_lines
from gradinspect.checks.facts.backward_calls import UnusedHistory
from gradinspect.checks.facts.graphs import KeptHistory
from gradinspect.checks.findings import Finding
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame
from gradinspect.observers.graphs.holders import HeldGroup, HolderSearch
from gradinspect.observers.graphs.live_graph import LiveGraph, reachable, reaching, tensors_with_graph
from gradinspect.recording.threads.other_threads import OtherThreads
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR, next_sequence_nr, sequence_nr


class UnusedGraphs:
    """Finds graphs that no observed call went through."""

    def __init__(self, folder: Path, reached: Collection[int], threads: OtherThreads | None = None) -> None:
        """Set up.

        Args:
            folder: Files below it are named relative to it.
            reached: The ids of all leaves that an observed call has reached; others add to it.
            threads: Those that may have made nodes.
        """
        self._threads = threads
        self._folder = folder
        self._reached = reached
        self._clocks: list[int] = []  # the next sequence number at the start of each call
        self._since = 0  # the sequence number from which calls were watched again
        self._unused: set[int] = set()  # numbers of nodes that no call went through
        self._longest_wait = 0  # calls between the making of a graph and its own. NOTE [Kept for later]
        self._backward: Frame | None = None
        self._held: list[tuple[KeptHistory, frozenset[int]]] = []  # with the numbers of its old nodes
        self._has_ended = False  # the program has
        self._first_seen: dict[str, int] = {}  # name of what holds such graphs -> the number of calls by then

    def begin(self, nodes: AbstractSet[int], clock: int, backward: Frame | None) -> None:
        """Look at a call that is about to start.

        Args:
            nodes: The identities of those of its graph.
            clock: The sequence number of the next node, on the recorded thread.
            backward: Its line.
        """
        made = range(max(self._since, self._clocks[-1] if self._clocks else 0), clock)
        oldest = min((number for number in nodes if number in made or number in self._unused), default=clock)
        self._longest_wait = max(self._longest_wait, sum(earlier > oldest for earlier in self._clocks))
        self._unused.difference_update(nodes)
        self._unused.update([number for number in made if number not in nodes])  # a set never shrinks: only these
        self._clocks.append(clock)
        self._backward = backward

    def rest(self) -> bool:
        """Forget what may go backward while calls are only counted; False if something is kept for good."""
        if any(holder.num_rounds for holder in self.look()):
            return False
        self._unused.clear()
        self._held = []
        return True

    def wake(self) -> None:
        """Look at what is made from now on."""
        self._since = next_sequence_nr()

    def waits(self) -> str | None:
        """Name what is kept, but not yet for long enough."""
        for holder in self.look():
            first = self._first_seen.setdefault(holder.name, len(self._clocks))
            if not holder.num_rounds and len(self._clocks) < first + self._patience:
                return f"the graphs that {holder.name} holds had not gone backward"
        return None

    def look(self) -> list[KeptHistory]:
        """Search for what keeps graphs that no call went through, now; what was found at the end stays."""
        if self._has_ended:
            return [holder for holder, _ in self._held]
        self._held = []
        if self._clocks and self._unused:
            live = LiveGraph(tensors_with_graph(), self._threads)
            try:
                self._held = list(self._search(live))
            finally:
                live.close()
        return [holder for holder, _ in self._held]

    def look_at_the_end(self) -> None:
        """Search once more: the program has ended, and may have dropped its variables.

        What was found before it ended stays, unless a backward has gone through it since.
        """
        before = [(holder, old) for holder, old in self._held if not self._unused.isdisjoint(old)]
        if not self.look():
            self._held = before
        self._has_ended = True

    def findings(self) -> Iterator[Finding]:
        """Report what was still kept when it was last looked for."""
        yield from findings_on(UnusedHistory([one for one, _ in self._held if one.num_rounds], self._backward))

    @property
    def _patience(self) -> int:
        """The number of calls after which a graph that is kept is old."""
        return 2 + self._longest_wait

    def _search(self, live: LiveGraph) -> Iterator[tuple[KeptHistory, frozenset[int]]]:
        unused = reaching(live, self._unused.__contains__)
        self._unused.intersection_update(map(live.number_of, unused))  # the others are gone
        roots = [
            tensor
            for tensor in live.tensors
            if tensor.grad_fn in unused and live.number_of(tensor.grad_fn) in self._unused
        ]
        for group in HolderSearch(sys._getframe()).groups(roots) if roots else ():
            if group.name and not group.is_cut and any(store.adds for store in group.stored_at):
                yield self._kept(group, live)

    def _kept(self, group: HeldGroup, live: LiveGraph) -> tuple[KeptHistory, frozenset[int]]:
        nodes = reachable(tensor.grad_fn for tensor in group.tensors)
        clock = self._clocks[-self._patience] if len(self._clocks) >= self._patience else 0
        old = {number for number in map(live.number_of, nodes) if number in self._unused and number < clock}
        holder = KeptHistory(
            held_by="variable",
            name=group.name,
            num_tensors=len(group.tensors),
            num_rounds=int(bool(old) and all(map(self._is_reached, nodes))),
            stores=stored_lines(group, self._folder),
            adds=True,
        )
        return holder, frozenset(old)

    def _is_reached(self, node: Any) -> bool:
        return sequence_nr(node) != ACCUMULATE_GRAD_NR or id(getattr(node, "variable", None)) in self._reached
