"""Where a program is in its training step: forward, backward, the optimizer's step, and what lies between.

NOTE [Where a step ends]
A step ends with the first forward operator after an optimizer has stepped, and is complete then. Several backward calls
before it, of accumulated gradients, belong to one step. Where the process holds no optimizer, each backward call ends a
step. A step of an optimizer in code under torch.compile is noticed when that code returns, if it has changed parameters
after a backward call. An optimizer that is given a closure, as LBFGS is, runs forward and backward inside its step: one
step too.
"""

from dataclasses import dataclass, field
from threading import get_ident

from gradinspect.analyses.memory.step import Phase
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.nodes import next_sequence_nr


def _nodes_here() -> dict[int, int]:
    """Start counting the nodes of each thread: each has numbers of its own."""
    return {get_ident(): next_sequence_nr()}


@dataclass
class StepPhases:
    """Counts steps."""

    step: int = 0
    phase: Phase = "setup"
    num_optimizer_steps: int = 0
    num_unseen: int = 0  # of these, in code under torch.compile
    has_optimizer: bool = False
    _nodes: dict[int, int] = field(default_factory=_nodes_here)  # of each thread: made until the phase began
    _stepping: int = 0
    _has_closure: bool = False  # the optimizer steps, and no forward came before it: LBFGS runs it itself

    @property
    def is_between(self) -> bool:
        """Whether no step is under way: the last one is complete."""
        return self.phase in ("setup", "after step")

    @property
    def is_before_step(self) -> bool:
        """Whether the next node begins a step."""
        return self.is_between or self._has_closure

    def operator(self) -> None:
        """Go on to forward when a node has been made: a step begins, unless one is under way."""
        is_waiting = self.phase in ("setup", "after step", "after backward") or self._has_closure
        if is_waiting and next_sequence_nr() != self._nodes.setdefault(get_ident(), next_sequence_nr()):
            self.step += self.is_before_step
            self._has_closure = False
            self._enter("forward")

    def call_begins(self) -> None:
        """Go on to backward: a step begins whose forward was not seen, unless one is under way."""
        self.step += (self.is_between and not self._stepping) or self._has_closure
        self._has_closure = False
        self._enter("backward")

    def call_ends(self, call: EngineCall) -> None:
        """Leave backward."""
        if self._stepping:
            self._enter("optimizer")
            return
        self.has_optimizer = self.has_optimizer or bool(live_optimizers())
        if not self.has_optimizer:
            self._enter("after step")
        else:
            self._enter("after backward" if call.kind == "backward" else "forward")

    def optimizer_begins(self) -> None:
        """Go on to the optimizer's step; one may step inside another's."""
        self._has_closure = self.is_between and not self._stepping
        self._stepping += 1
        self.has_optimizer = True
        if self.phase != "backward":
            self._enter("optimizer")

    def optimizer_ends(self) -> None:
        """Leave the optimizer's step, if it is the outermost one and outside any backward call."""
        self._has_closure = False
        self._stepping = max(self._stepping - 1, 0)
        self.num_optimizer_steps += 1
        if not self._stepping and self.phase != "backward":
            self._enter("after step")

    def optimizer_has_stepped(self) -> None:
        """Leave a step whose optimizer ran in code under torch.compile."""
        self.num_optimizer_steps += 1
        self.num_unseen += 1
        self._enter("after step")

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._nodes = _nodes_here()
