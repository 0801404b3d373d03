"""Every sample runs under the command, and shows what it is there to show."""

from pathlib import Path

import msgspec
import pytest
from runs import gradinspect

from gradinspect.graph import Graph, argument_name
from gradinspect.storage import read_graph

SAMPLES = Path(__file__).parent.parent / "samples"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.py"))


class Lesson(msgspec.Struct, frozen=True):
    """What a sample must show."""

    nodes: int
    leaves: int
    classes: tuple[str, ...] = ()


LESSONS = {
    "shared_leaf": Lesson(3, 1, ("MulBackward0", "AddBackward0")),
    "constant": Lesson(2, 1, ("MulBackward0",)),
    "unbind": Lesson(3, 1, ("UnbindBackward0",)),
    "two_leaves": Lesson(6, 2, ("MulBackward0", "AddBackward0")),
    "mlp": Lesson(16, 6, ("AddmmBackward0", "ReluBackward0")),
    "resnet": Lesson(91, 41, ("ConvolutionBackward0", "NativeBatchNormBackward0")),
    "transformer": Lesson(249, 76, ("ScaledDotProductFlashAttentionForCpuBackward0",)),
    "lstm": Lesson(318, 7, ("SigmoidBackward0", "TanhBackward0")),
    "operators": Lesson(96, 35, ("UpsampleBicubic2DBackward0", "ConvolutionBackward0")),
    "custom_function": Lesson(3, 1, ("LeakyClampBackward",)),
    "compiled": Lesson(25, 4, ("CompiledFunctionBackward",)),
    "gan": Lesson(17, 4, ("BinaryCrossEntropyWithLogitsBackward0",)),
    "ddp": Lesson(12, 4, ()),
}


@pytest.fixture(scope="module", params=NAMES)
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Graph]:
    """One sample, captured through the command line."""
    file = tmp_path_factory.mktemp(request.param) / "run.json"
    done = gradinspect("export", SAMPLES / f"{request.param}.py", "-o", file, "--quiet-script")

    assert (done.returncode, done.stderr) == (0, f"Wrote {file}\n")
    return request.param, read_graph(file)


@pytest.mark.slow
def test_the_sample_shows_its_lesson(sample: tuple[str, Graph]) -> None:
    """Nodes, leaves and classes are those that the lesson is about, and nothing is unreadable or unnamed by line."""
    name, graph = sample
    lesson = LESSONS.get(name)
    statuses = {value.status for node in graph.nodes for value in node.saved}
    made = [node for node in graph.nodes if node.leaf is None]

    assert "unreadable" not in statuses
    assert all(node.frame is not None for node in made)
    if lesson is not None:
        assert (lesson.nodes, lesson.leaves) == (len(graph.nodes), len(graph.nodes) - len(made))
        assert set(lesson.classes) <= {node.name for node in graph.nodes}


def test_edges_of_generated_nodes_have_arguments(sample: tuple[str, Graph]) -> None:
    """Every place of every generated node is named after the forward argument."""
    _, graph = sample
    unnamed = [
        (node.name, position)
        for node in graph.nodes
        if node.kind == "generated"
        for position in range(len(node.next_edges))
        if argument_name(graph, node, position) is None
    ]

    assert unnamed == []


# Each node: its class, or the name of its leaf; then where each place leads, with the input it feeds there.
EDGES = {
    "shared_leaf": ["MulBackward0: a/0 AddBackward0/0", "AddBackward0: a/0 None", "a:"],
    "constant": ["MulBackward0: x/0 None", "x:"],
    "unbind": ["MulBackward0: UnbindBackward0/0 UnbindBackward0/1", "UnbindBackward0: pair/0", "pair:"],
    "two_leaves": [
        "SumBackward0: AddBackward0/0",
        "AddBackward0: AddBackward0/0 z/0",
        "AddBackward0: MulBackward0/0 x/0",
        "MulBackward0: x/0 z/0",
        "z:",
        "x:",
    ],
    "broadcast_scalar": ["SumBackward0: MulBackward0/0", "MulBackward0: x/0 y/0", "x:", "y:"],
}


def test_small_samples_have_exactly_these_edges(sample: tuple[str, Graph]) -> None:
    """Place by place, as `next_functions` of the live nodes has them."""
    name, graph = sample

    def label(number: int) -> str:
        leaf = graph.nodes[number].leaf
        return graph.nodes[number].name if leaf is None else str(leaf.name)

    found = [
        " ".join([
            f"{label(number)}:",
            *("None" if edge is None else f"{label(edge.next_node)}/{edge.input_nr}" for edge in node.next_edges),
        ])
        for number, node in enumerate(graph.nodes)
    ]  # fmt: skip

    assert name not in EDGES or found == EDGES[name]
