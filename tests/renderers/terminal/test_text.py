"""Text that a terminal can be trusted with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_names import PARAMETERS
from rich.cells import cell_len

from gradinspect.renderers.terminal.page import Page
from gradinspect.renderers.terminal.text import Part, fit, listed_within, shorten, shorten_apart, visible


def test_parts_are_cut_before_their_numbers() -> None:
    """These tell blocks and layers apart."""
    names = [f"denseblock{block}.denselayer{layer}.conv2" for block in (1, 2) for layer in ("1-3", "4")]

    assert shorten_apart(names, 22, "…") == [
        "dense…1.den…1-3.conv2", "dense…1.dense…4.conv2", "dense…2.den…1-3.conv2", "dense…2.dense…4.conv2"
    ]  # fmt: skip


def test_a_name_is_not_cut_to_what_another_one_ends_with() -> None:
    """Though that one is not cut, and so they are not alike."""
    names = ["vision_backbone_of_two.layers.norm", "text_of_two.layers.norm"]

    assert shorten_apart(names, 24, "…") == ["vision_back….layers.norm", "text_of_two.layers.norm"]


def test_control_characters_become_escapes() -> None:
    """Escape sequences, line ends and direction marks are written out; letters of any script stay."""
    assert visible("\x1b[31m\n\u202e重み", unicode=True) == r"\x1b[31m\n\u202e重み"


def test_only_ascii_is_left_where_only_ascii_can_be_shown() -> None:
    """Without Unicode other letters are written out too."""
    assert visible("重み.weight", unicode=False) == r"\u91cd\u307f.weight"


def test_a_long_name_keeps_both_ends() -> None:
    """The middle is what is cut, measured in cells: wide letters take two."""
    assert shorten("encoder.layer.weight", 12, "…") == "encode…eight"
    assert shorten("重重重重重重", 7, "…") == "重…重"


def test_optional_parts_go_first() -> None:
    """What is optional is left out before a name is shortened."""
    parts = [Part("MulBackward0", can_shrink=True), Part(" ReLU", is_optional=True), Part(" f32[2]")]

    assert fit(parts, 19, "…").plain == "MulBackward0 f32[2]"
    assert fit(parts, 18, "…").plain == "MulBa…ward0 f32[2]"


@given(
    st.lists(st.builds(Part, text=st.text(max_size=30), can_shrink=st.booleans(), is_optional=st.booleans())),
    st.integers(0, 60),
)
def test_nothing_is_wider_than_its_room(parts: list[Part], num_cells: int) -> None:
    """Whatever the parts are, they fit."""
    shown = [part._replace(text=visible(part.text, unicode=True)) for part in parts]

    assert cell_len(fit(shown, num_cells, "…").plain) <= num_cells


@given(st.lists(st.text("abc", min_size=1, max_size=12), max_size=30), st.integers(1, 60), st.integers(0, 2))
def test_as_many_parts_as_fit(parts: list[str], width: int, least: int) -> None:
    """In order, and the rest is counted; no longer list would fit."""
    rests = [[f"+{len(parts) - number}"] if number < len(parts) else [] for number in range(len(parts) + 1)]
    lists = [", ".join([*parts[:number], *rest]) for number, rest in enumerate(rests)]
    most = max((number for number, line in enumerate(lists) if len(line) <= width), default=0)

    assert listed_within(parts, width, lambda rest: f"+{rest}", least=least) == lists[max(most, min(least, len(parts)))]


PARTS = ["transformer", "h", "0", "11", "attn", "mlp", "c_proj", "c_attn", "weight", "bias", "层"]


@given(
    st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map(".".join), unique=True, max_size=12),
    st.integers(8, 40),
    st.sampled_from(["…", "..."]),
)
def test_different_names_stay_different(names: list[str], num_cells: int, ellipsis: str) -> None:
    """However narrow the column is; what fits stays as it is."""
    shown = shorten_apart(names, num_cells, ellipsis)

    assert len(set(shown)) == len(names)
    assert all(cell_len(text) <= num_cells for text in shown)
    assert all(text == name for text, name in zip(shown, names, strict=True) if cell_len(name) <= num_cells)


def test_a_dotted_name_loses_its_first_parts() -> None:
    """The end tells it from its neighbors."""
    names = ["transformer.h.10.mlp.c_proj.weight", "transformer.h.1.mlp.c_proj.weight", "lm_head.weight"]

    assert shorten_apart(names, 24, "…") == ["…h.10.mlp.c_proj.weight", "…h.1.mlp.c_proj.weight", "lm_head.weight"]


def test_an_end_that_several_names_share_stands_for_none_of_them() -> None:
    """`…0.bn2` would not say of which layer."""
    names = ["layer1.0.bn2", "layer2.0.bn2", "layer2.0.conv1"]

    assert shorten_apart(names, 10, "…") == ["la…1.0.bn2", "la…2.0.bn2", "…0.conv1"]


def test_names_that_share_their_end_keep_the_start_of_each_part() -> None:
    """Of names that differ at the start and at the end both are seen; the last part is whole if it can be."""
    names = [f"{of}_backbone.0-3.{part}" for of in ("vision", "text") for part in ("attention.output", "dense.output")]

    assert shorten_apart(names, 24, "…") == [
        "visio….0-3.atten….output", "vision….0-3.dense.output",
        "text_….0-3.atten….output", "text_b….0-3.dense.output",
    ]  # fmt: skip
    assert shorten_apart([names[0], names[2]], 19, "…") == ["vis….0-3.att….out…", "tex….0-3.att….out…"]


def test_an_index_does_not_stand_without_its_name() -> None:
    """`…0-1.skip` would not say of which blocks; where all names begin alike, it is left out with them."""
    names = [f"model.{of}_blocks.{at}" for of in ("input", "output") for at in ("0-1.skip", "2-3.in_layers.1")]

    assert shorten_apart(names, 22, "…") == [
        "…input_blocks.0-1.skip", "…input_….2-3.in_lay….1",
        "…output_bloc….0-1.skip", "…output….2-3.in_lay….1",
    ]  # fmt: skip
    same = [f"transformer.h.0-11.{name}" for name in ("mlp.dropout", "attn.resid_dropout", "attn.c_proj")]

    assert shorten_apart(same, 17, "…") == ["…mlp.dropout", "…resid_dropout", "…attn.c_proj"]


def test_a_class_is_said_briefly_after_names() -> None:
    """It has one spelling in all rows as long as something else can be said briefly."""
    name = Part("encoder.drop", brief="…drop")
    parts = [Part("MulBackward0", brief="Mul", is_brief_last=True), Part("  "), name]

    assert fit(parts, 19, "…").plain == "MulBackward0  …drop"
    assert fit(parts, 18, "…").plain == "Mul  encoder.drop"
    assert fit(parts, 16, "…").plain == "Mul  …drop"


def test_what_is_dropped_makes_room_for_whole_words() -> None:
    """A class is spelled as in other rows if it fits once its shape is gone."""
    shape = "  f32[2, 8..64, 8..64]"
    parts = [Part("ConvBackward0", brief="Conv", is_brief_last=True), Part(shape, is_optional=True, brief=shape)]

    assert fit(parts, 20, "…").plain == "ConvBackward0"
    assert fit(parts, 12, "…").plain == "Conv"


@pytest.mark.parametrize("model", PARAMETERS)
def test_parameters_of_real_models_stay_different(model: str) -> None:
    """In a column of any width that a table gives to names."""
    for num_cells in range(16, 61, 4):
        shown = shorten_apart(PARAMETERS[model], num_cells, "…")

        assert len(set(shown)) == len(PARAMETERS[model])
        assert max(map(cell_len, shown)) <= num_cells


def test_a_sentence_breaks_no_name_at_its_hyphen() -> None:
    """`h.0-11` names twelve blocks, and is one word."""
    lines = [line.plain for line in Page(width=30).wrapped("forward of step 2, module transformer.h.0-11.mlp")]

    assert lines == ["forward of step 2, module", "  transformer.h.0-11.mlp"]


def test_a_long_name_keeps_its_first_part_where_another_has_the_same_end() -> None:
    """What stands between them is left out, and no index without the name before it."""
    names = [
        "up1-4.conv.double_conv.1,4.weight",
        "down1-4.maxpool_conv.1.double_conv.1,4.weight",
        "down1-4.maxpool_conv.1.double_conv.1,4.bias",
        "layers.0-5.maxpool_conv.1.double_conv.1,4.bias",
    ]
    assert shorten_apart(names, 36, "…") == [
        "up1-4.conv.double_conv.1,4.weight",
        "down1-4…double_conv.1,4.weight",
        "down1-4…double_conv.1,4.bias",
        "layers.0-5…double_conv.1,4.bias",
    ]
    assert shorten_apart(names[:3], 36, "…") == [
        "up1-4.conv.double_conv.1,4.weight",
        "down1-4…double_conv.1,4.weight",
        "…double_conv.1,4.bias",
    ]


def test_the_last_part_alone_is_too_long() -> None:
    """It keeps its start, which says more than the starts of all the parts before it."""
    names = ["layers.0-5.enc_self_attn.ScaledDotProductAttention", "layers.0-5.enc_self_attn.W_V", "linear"]

    assert shorten_apart(names, 24, "…") == ["…ScaledDotProductAttent…", "…enc_self_attn.W_V", "linear"]


def test_a_name_that_another_one_goes_on_from_is_cut_too() -> None:
    """What both begin with may be all of one of them."""
    names = ["encoder.layers.attention", "encoder.layers.attention.projection"]

    assert len({*shorten_apart(names, 14, "…")}) == 2
