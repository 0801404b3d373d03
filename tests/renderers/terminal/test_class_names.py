"""Classes of nodes in fewer words."""

from hypothesis import given
from hypothesis import strategies as st

from gradinspect.renderers.terminal.class_names import brief_classes, without_backward

PIECES = st.sampled_from(["Native", "ScaledDotProduct", "BatchNorm", "WithIndices", "ForCpu", "Backward0", "Backward1"])


def test_what_says_which_kernel_computes_it_is_left_out() -> None:
    """What it computes stays, and what is no name of a kernel."""
    names = {
        "NativeBatchNormBackward0": "BatchNorm",
        "MaxPool2DWithIndicesBackward0": "MaxPool2D",
        "ScaledDotProductFlashAttentionForCpuBackward0": "FlashAttention",
        "AccumulateGrad h.0.weight": "AccumulateGrad h.0.weight",
        "MeanBackward1": "MeanBackward1",
        "Natives": "Natives",
    }

    assert brief_classes(names) == names


def test_two_classes_stay_two() -> None:
    """The user may have a Function of the name that is left."""
    names = ["NativeBatchNormBackward0", "BatchNormBackward0", "NativeLayerNormBackward0"]

    assert brief_classes(names) == {names[0]: "NativeBatchNorm", names[1]: "BatchNorm", names[2]: "LayerNorm"}


@given(st.sets(st.lists(PIECES, min_size=1, max_size=4).map("".join)))
def test_no_two_different_names_become_alike(names: set[str]) -> None:
    """As far as the end that nearly all have does not tell them apart."""
    brief = brief_classes(names)

    assert len(set(brief.values())) == len({without_backward(name) for name in names})
