"""What one run shows of everything: the graph, what it holds, its gradients, what is wrong, and the peak of a step."""

from msgspec.structs import replace

from gradinspect.analyses.memory.alive import AliveBytes
from gradinspect.analyses.memory.step import StepMemory
from gradinspect.checks.findings import Findings
from gradinspect.graph import Graph, Record
from gradinspect.methods import Shown


class OtherCall(Record, frozen=True):
    """The first backward() call on another line of the program, such as that of a generator."""

    number: int
    file: str
    line: int
    code: str


class Overview(Shown, Record, frozen=True, kw_only=True):
    """The headlines of one run."""

    source: str
    graph: Graph  # of the first backward() call that was observed, with its gradients if it has completed
    opened: Graph | None = None  # the same with what is inside compiled nodes, before it ran; None: there is none
    other_calls: tuple[OtherCall, ...] = ()  # that were seen on other lines than that of the graph
    findings: Findings | None  # None: nothing was checked, as in a capture file
    step_memory: StepMemory | None = None  # of the first steps
    whole_steps: int = 0  # of these, that were seen from their beginning to their end
    no_memory: str = ""  # why there is none, in a sentence
    least_memory: AliveBytes | None = None  # where there is none: the peak is no less, as far as this was measured

    @property
    def whole(self) -> Graph:
        """The graph with all that is known of it, apart from its gradients."""
        return self.opened or self.graph

    def with_findings(self, findings: Findings) -> "Overview":
        """Report these findings in place of those that were found."""
        return replace(self, findings=findings)
