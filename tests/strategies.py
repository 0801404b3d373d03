"""Random valid graphs: every field of every record, ids topological, indices in range, strings of all kinds."""

from functools import cache
from typing import get_args

from factories import graph, leaf, op, saved
from hypothesis import settings
from hypothesis import strategies as st

from gradinspect.graph import (
    CaptureKind,
    CapturePoint,
    Edge,
    Frame,
    Gradients,
    GradientStats,
    Graph,
    Hook,
    HookKind,
    Leaf,
    LeafKind,
    ModuleCall,
    Node,
    NodeGradients,
    NodeKind,
    Origin,
    Root,
    SavedKind,
    SavedStatus,
    SavedTensor,
    SavedValue,
    Storage,
    TensorInfo,
)

ALL_EXAMPLES = 100  # that hypothesis draws, unless a test says another number


def examples(number: int) -> int:
    """Return how many examples a test draws in this run, of those that it draws if all are asked for: see conftest."""
    return max(1, number * settings().max_examples // ALL_EXAMPLES)


OTHER_NODE_KINDS = [kind for kind in get_args(NodeKind) if kind != "accumulate_grad"]
OTHER_SAVED_KINDS = [kind for kind in get_args(SavedKind) if kind != "tensor"]

ODD_STRINGS = ["", "fc.weight", "</script>", "a|b`c\n", "\x1b[31m", "f32[batch]", "=1+1", "重み", "\u202e"]
strings = st.one_of(
    st.sampled_from(ODD_STRINGS),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
counts = st.integers(0, 2**40)
node_names = st.sampled_from(["MulBackward0", "AddBackward0", "CatBackward0", "_Scale"]) | strings
sizes = st.integers(0, 2**20) | st.sampled_from(["s0", "2*s1"])
whole_numbers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.one_of(st.none(), st.booleans(), whole_numbers, floats, strings)
hooks = st.builds(Hook, kind=st.sampled_from(get_args(HookKind)), name=st.none() | strings)


@cache
def index_below(length: int) -> st.SearchStrategy[int | None]:
    """Draw an index into a table, or None."""
    return st.none() | st.integers(0, length - 1) if length else st.none()


tensor_infos = st.builds(
    TensorInfo,
    shape=st.lists(sizes, max_size=3).map(tuple),
    dtype=st.sampled_from(["float32", "bfloat16", "int64"]) | strings,
    device=st.sampled_from(["cpu", "cuda:0", "meta"]),
    layout=st.sampled_from(["strided", "sparse_coo"]),
    subclass=st.none() | strings,
)


@cache
def saved_values(num_nodes: int, num_storages: int) -> st.SearchStrategy[SavedValue]:
    """Draw a saved attribute: a tensor in any status, or a value of any other kind."""
    tensors = st.builds(
        SavedTensor,
        info=tensor_infos,
        num_bytes=counts,
        storage=index_below(num_storages),
        strides=st.none() | st.lists(sizes, max_size=3).map(tuple),
        storage_offset=counts,
        version=st.none() | counts,
        expected_version=st.none() | counts,
        made_by=index_below(num_nodes),
    )
    storages = st.lists(st.integers(0, num_storages - 1), max_size=2) if num_storages else st.just([])
    saved_tensors = st.builds(
        SavedValue,
        name=strings,
        kind=st.just("tensor"),
        index=st.none() | st.integers(0, 5),
        tensor=st.none() | tensors,
        status=st.none() | st.sampled_from(get_args(SavedStatus)),
        origin=st.none() | st.sampled_from(get_args(Origin)),
        origin_name=st.none() | strings,
        packed_as=st.none() | strings,
        held_storages=storages.map(tuple),
        unpack_hook=st.none() | strings,
    )
    other_values = st.builds(
        SavedValue,
        name=strings,
        kind=st.sampled_from(OTHER_SAVED_KINDS),
        value=scalars | st.lists(scalars, max_size=3).map(tuple),
    )
    return saved_tensors | other_values


@cache
def leaf_nodes(num_storages: int) -> st.SearchStrategy[Node]:
    """Draw an AccumulateGrad node with its leaf."""
    leaf = st.builds(
        Leaf,
        info=tensor_infos,
        kind=st.sampled_from(get_args(LeafKind)),
        name=st.none() | strings,
        aliases=st.lists(strings, max_size=2).map(tuple),
        storage=index_below(num_storages),
        requires_grad=st.booleans(),
        has_grad=st.booleans(),
    )
    return st.builds(
        Node,
        name=st.just("AccumulateGrad"),
        kind=st.just("accumulate_grad"),
        leaf=leaf,
        forward_outputs=st.tuples(tensor_infos),
    )


@st.composite
def nodes(draw: st.DrawFn, node_id: int, graph_sizes: tuple[int, int, int, int]) -> Node:
    """Draw one node whose edges point to later nodes; the last one has none, so it is a leaf."""
    num_nodes, num_storages, num_modules, num_frames = graph_sizes
    if node_id + 1 == num_nodes or draw(st.integers(0, 3)) == 0:
        return draw(leaf_nodes(num_storages))
    edges = st.builds(Edge, next_node=st.integers(node_id + 1, num_nodes - 1), input_nr=st.integers(0, 3))
    return Node(
        name=draw(node_names),
        kind=draw(st.sampled_from(OTHER_NODE_KINDS)),
        sequence_nr=draw(st.none() | counts),
        forward_outputs=tuple(draw(st.lists(st.none() | tensor_infos, max_size=2))),
        next_edges=tuple(draw(st.lists(st.none() | edges, max_size=4))),
        saved=tuple(draw(st.lists(saved_values(num_nodes, num_storages), max_size=3))),
        function=draw(st.none() | strings),
        module=draw(index_below(num_modules)),
        frame=draw(index_below(num_frames)),
        hooks=tuple(draw(st.lists(hooks, max_size=2))),
    )


@cache
def module_calls(index: int) -> st.SearchStrategy[ModuleCall]:
    """Draw the call at one index; its parent stands before it."""
    return st.builds(ModuleCall, path=strings, class_name=strings, call=st.integers(1, 3), parent=index_below(index))


@cache
def frames(index: int) -> st.SearchStrategy[Frame]:
    """Draw the frame at one index; its caller stands before it."""
    return st.builds(Frame, file=strings, line=counts, function=strings, code=strings, caller=index_below(index))


@cache
def gradients(num_nodes: int) -> st.SearchStrategy[Gradients]:
    """Draw what flowed back through some of the nodes. What is not a number equals nothing, so there is none here."""
    numbers = st.floats(allow_nan=False)
    sizes = st.floats(min_value=0, allow_nan=False)
    stats = (
        st.none()
        | strings
        | st.builds(
            GradientStats,
            shape=st.lists(counts, max_size=3).map(tuple),
            dtype=strings,
            norm=sizes,
            max_abs=sizes,
            mean=numbers,
            num_zeros=counts,
            num_nonfinite=counts,
            num_elements=counts,
        )
    )
    several = st.lists(stats, max_size=2).map(tuple)
    ids = st.sets(st.integers(0, num_nodes - 1)) if num_nodes else st.just(set[int]())
    ran = ids.flatmap(
        lambda chosen: st.tuples(*(
            st.builds(NodeGradients, node=st.just(node), order=counts, incoming=several, outgoing=several)
            for node in sorted(chosen)
        ))
    )  # fmt: skip
    norms = ids.flatmap(lambda chosen: st.fixed_dictionaries(dict.fromkeys(chosen, sizes)))
    return st.builds(Gradients, nodes=ran, weight_norms=norms, update_norms=norms, loss=st.none() | numbers,
                     notes=st.lists(strings, max_size=2).map(tuple))  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw a valid graph of up to eight nodes."""
    graph_sizes = draw(st.tuples(st.integers(0, 8), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)))
    num_nodes, num_storages, num_modules, num_frames = graph_sizes
    storage = st.builds(
        Storage,
        num_bytes=counts,
        device=st.sampled_from(["cpu", "cuda:0"]),
        origin=st.none() | st.sampled_from(get_args(Origin)),
        name=st.none() | strings,
    )
    root = st.builds(
        Root,
        node=st.integers(0, max(num_nodes - 1, 0)),
        output_nr=st.integers(0, 3),
        info=st.none() | tensor_infos,
        name=st.none() | strings,
    )
    return Graph(
        source=draw(strings),
        torch_version=draw(strings),
        captured_at=CapturePoint(
            kind=draw(st.sampled_from(get_args(CaptureKind))),
            number=draw(st.none() | st.integers(1, 9)),
            frame=draw(index_below(num_frames)),
        ),
        roots=tuple(draw(st.lists(root, max_size=3))) if num_nodes else (),
        nodes=tuple(draw(nodes(node_id, graph_sizes)) for node_id in range(num_nodes)),
        storages=tuple(draw(storage) for _ in range(num_storages)),
        modules=tuple(draw(module_calls(index)) for index in range(num_modules)),
        frames=tuple(draw(frames(index)) for index in range(num_frames)),
        arguments=draw(st.dictionaries(node_names, st.lists(strings, max_size=3).map(tuple), max_size=2)),
        warnings=tuple(draw(st.lists(strings, max_size=2))),
        gradients=draw(st.none() | gradients(num_nodes)),
    )


@st.composite
def connected_graphs(draw: st.DrawFn) -> Graph:
    """Draw a graph whose nodes are all reached from its first one, with module calls and saved tensors."""
    count = draw(st.integers(1, 12))
    nodes = []
    for number in range(count):
        nexts = draw(st.lists(st.none() | st.integers(number + 1, count), max_size=3))
        name = draw(st.sampled_from(["MulBackward0", "AddBackward0", "ViewBackward0"]))
        shape = draw(st.sampled_from([(2, 3), (6,)]))
        kept = draw(st.lists(st.integers(0, 3), max_size=2))
        nodes.append(
            op(name, number + 1, *nexts, shape=shape, module=draw(st.sampled_from([None, 0, 1, 2])),
               saved=tuple(saved(f"_saved_{place}", 2, storage=storage) for place, storage in enumerate(kept)))
        )  # fmt: skip
    calls = (("", None), ("h.0", 0), ("h.1", 0))
    return graph(
        *nodes, leaf(draw(st.sampled_from(["weight", "bias", None])), 3),
        storages=tuple(Storage(num_bytes=8, origin="activation") for _ in range(4)),
        modules=tuple(ModuleCall(path=path, class_name="Block", parent=parent) for path, parent in calls),
    )  # fmt: skip
