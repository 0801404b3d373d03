"""What a box says when it is pointed at."""

from factories import op

from gradinspect.renderers.picture.dot.tooltips import chain_tooltip


def test_a_chain_lists_its_nodes_with_their_shapes() -> None:
    """A node without an output has none."""
    words = chain_tooltip([3, 5], [op("ViewBackward0", shape=(2, 3)), op("TBackward0", forward_outputs=(None,))])

    assert "#3 ViewBackward0 f32[2, 3]" in words
    assert "#5 TBackward0" in words
