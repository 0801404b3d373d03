"""Local shapes of what nodes made, from what saved it."""

from factories import leaf, op, saved, tensor_info
from msgspec.structs import replace

from gradinspect.graph import Node, SavedValue, TensorInfo
from gradinspect.recording.values.local_shapes import with_local_shapes

SHARD = replace(tensor_info(8, 4), local_shape=(2, 4))


def keeps(info: TensorInfo, *, origin: str = "activation", made_by: int | None = None) -> SavedValue:
    """Make the record of a saved tensor."""
    value = saved("_saved_self", 8, 4, storage=0, origin=origin)
    assert value.tensor is not None
    return replace(value, tensor=replace(value.tensor, info=info, made_by=made_by))


def outputs(*nodes: Node) -> list[object]:
    """Return the local shape of each node's first output."""
    return [node.forward_outputs[0] and node.forward_outputs[0].local_shape for node in with_local_shapes(nodes)]


def test_what_saves_a_tensor_knows_its_local_shape() -> None:
    """Its own output, or that of the node that made it; and a leaf knows its own."""
    own = op("ExpBackward0", shape=(8, 4), saved=(keeps(SHARD, origin="output"),))
    user = op("MulBackward0", 2, shape=(8, 4), saved=(keeps(SHARD, made_by=2),))
    parameter = leaf("w", 8, 4)
    assert parameter.leaf is not None
    known = replace(parameter, leaf=replace(parameter.leaf, info=SHARD))

    assert outputs(own) == [(2, 4)]
    assert outputs(user, op("A"), op("B", shape=(8, 4))) == [None, None, (2, 4)]
    assert outputs(known, leaf("v", 8, 4)) == [(2, 4), None]


def test_what_is_unlike_an_output_says_nothing_of_it() -> None:
    """Neither another shape or dtype, nor a tensor that no node has made, nor two that differ; None stays None."""
    other_dtype = replace(SHARD, dtype="float64")
    uneven = replace(SHARD, local_shape=(1, 4))
    plain = op("A", shape=(8, 4))

    assert outputs(op("U", saved=(keeps(SHARD, made_by=1),)), op("A", shape=(4, 8))) == [None, None]
    assert outputs(op("U", saved=(keeps(other_dtype, made_by=1),)), plain) == [None, None]
    assert outputs(op("U", saved=(keeps(SHARD),)), plain) == [None, None]
    assert outputs(op("U", saved=(keeps(SHARD, made_by=1), keeps(uneven, made_by=1))), plain) == [None, None]
    assert outputs(op("U", saved=(keeps(SHARD, made_by=1),) * 2), plain) == [None, (2, 4)]
    assert outputs(op("U", saved=(keeps(SHARD, made_by=1),)), replace(plain, forward_outputs=(None,))) == [None, None]
    assert outputs(op("U", saved=(keeps(tensor_info(8, 4), made_by=1),)), plain) == [None, None]
