"""What a node class computes: found under any of its names, explained from the installed torch's own sources."""

from pathlib import Path

import pytest
from factories import graph, leaf, op, saved

from gradinspect.analyses.explain.custom_functions import read_custom_function
from gradinspect.analyses.explain.double_backward import double_backward
from gradinspect.analyses.explain.explanation import all_names, explain_class, explain_node, find_classes, search
from gradinspect.analyses.explain.hand_written import HAND_WRITTEN
from gradinspect.catalog import Catalog, load_catalog
from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Hook, ModuleCall, Storage
from gradinspect.torch_sources import (
    DERIVATIVES,
    MANUAL,
    SourceLocation,
    class_location,
    derivative_location,
    helper_location,
    web_address,
)

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The installed torch's."""
    return load_catalog()


@pytest.mark.parametrize(
    ("word", "classes"),
    [
        ("MulBackward0", ["MulBackward0"]),
        ("mul", ["MulBackward0", "MulBackward1"]),
        ("mul_", ["MulBackward0", "MulBackward1"]),
        ("mul.Tensor", ["MulBackward0"]),
        ("torch.addcdiv", ["AddcdivBackward0"]),
        ("aten::addcdiv", ["AddcdivBackward0"]),
        ("torch.Tensor.relu_", ["ReluBackward0"]),
        ("F.gelu", ["GeluBackward0"]),
        ("<AddBackward0 object at 0x7f2e>", ["AddBackward0"]),
        ("torch::autograd::AccumulateGrad", ["AccumulateGrad"]),
        ("accumulategrad", ["AccumulateGrad"]),
        ("convolutionbackward", ["ConvolutionBackward0", "ConvolutionBackward1"]),
    ],
)
def test_a_class_has_many_names(word: str, classes: list[str], catalog: Catalog) -> None:
    """Those of the node, of the operator, and what stands around them in programs and on screens."""
    assert list(find_classes(word, catalog)) == classes


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("MullBackward0", "There is no Backward class or operator 'MullBackward0'. Closest matches: MulBackward0"),
        ("conv2d", "'conv2d' has no node of its own: it is composed of other operators"),
        ("argmax", "'argmax' has no derivative."),
        ("", "There is no Backward class or operator ''."),
        ("§$%", "There is no Backward class or operator '§$%'. Try: gradinspect explain --search TEXT"),
    ],
)
def test_an_unknown_name_is_one_sentence(word: str, sentence: str, catalog: Catalog) -> None:
    """With the nearest names, or why there is none."""
    with pytest.raises(GradInspectError) as caught:
        find_classes(word, catalog)

    assert str(caught.value).startswith(sentence)


def test_a_generated_class(catalog: Catalog) -> None:
    """Formulas by input, places, what is saved, where it is."""
    found = explain_class("AddcdivBackward0", catalog)

    assert found.signature.startswith("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)")
    assert [(gradient.argument, gradient.place) for gradient in found.gradients] == [
        ("self", "0"), ("tensor1", "1"), ("tensor2", "2"),
    ]  # fmt: skip
    assert found.gradients[1].formula == "handle_r_to_c(tensor1.scalar_type(), grad * (value / tensor2).conj())"
    assert found.saved == ("_saved_tensor1", "_saved_tensor2", "_saved_value")
    assert found.breakpoint == "torch::autograd::generated::AddcdivBackward0::apply"
    assert [source.what for source in found.sources] == ["formulas", "struct AddcdivBackward0", "handle_r_to_c()"]


def test_tensors_without_a_gradient_are_named(catalog: Catalog) -> None:
    """An embedding's indices, an attention mask."""
    assert explain_class("EmbeddingBackward0", catalog).not_differentiable == ("indices",)
    assert explain_class("ScaledDotProductFlashAttentionForCpuBackward0", catalog).not_differentiable == ("attn_mask",)
    assert explain_class("MulBackward0", catalog).not_differentiable == ()


def test_every_class_is_explained(catalog: Catalog) -> None:
    """Each generated one has an input with a formula; each hand-written one has words."""
    for name in all_names(catalog):
        found = explain_class(name, catalog)
        assert found.text if name in HAND_WRITTEN else found.gradients, name

    assert len(all_names(catalog)) > 700


@pytest.mark.parametrize(
    ("name", "verdict", "node"),
    [
        ("ReluBackward0", "yes", "ThresholdBackwardBackward0"),
        ("ConvolutionBackward0", "yes", "ConvolutionBackwardBackward0"),
        ("SigmoidBackward0", "yes", "SigmoidBackwardBackward0"),
        ("MulBackward0", "unknown", None),
        ("CdistBackward0", "no", None),
        ("ScaledDotProductFlashAttentionForCpuBackward0", "no", None),
    ],
)
def test_double_backward(name: str, verdict: str, node: str | None, catalog: Catalog) -> None:
    """Read from the formulas; the sweep compares it with what the engine does."""
    found = double_backward(catalog.entries[name], catalog)

    assert found.verdict == verdict
    assert node is None or node in found.nodes


def test_places_are_where_they_say(catalog: Catalog) -> None:
    """The line of each file holds the name."""
    import torchgen

    root = Path(str(torchgen.__file__)).parent.parent
    places = {
        "struct TORCH_API MulBackward0": class_location("MulBackward0"),
        "CopySlices": class_location("CopySlices"),
        "- name: mul.Tensor(": derivative_location("mul.Tensor"),
        "mul_tensor_backward(": helper_location("mul_tensor_backward"),
    }
    for text, place in places.items():
        assert place is not None
        lines = (root / place.file).read_text().splitlines()
        assert any(text.rpartition(" ")[2] in line for line in lines[place.line - 1 : place.line + 3]), text
    assert class_location("NoBackward0") is None


def test_addresses_are_those_of_the_release() -> None:
    """A nightly has no tag; generated files are in no repository."""
    address = web_address(SourceLocation(file=DERIVATIVES, line=7), "2.13.0+cpu")

    assert address == "https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml#L7"
    assert web_address(SourceLocation(file=MANUAL, line=7), "2.14.0.dev20260901") is None


def test_search_looks_into_names_signatures_and_formulas(catalog: Catalog) -> None:
    """Or matches a pattern."""
    assert "GeluBackward0" in search("gelu_backward", catalog)
    assert {"MaxPool2DWithIndicesBackward0", "MaxPool2DBackward0"} <= set(search("maxpool2d*", catalog))
    assert search("never heard of", catalog) == []


def test_a_node_of_a_capture_tells_what_it_holds(catalog: Catalog) -> None:
    """Its outputs, its line and module, its edges by argument, what it saved."""
    record = graph(
        op(
            "MulBackward0",
            1,
            None,
            module=0,
            frame=0,
            saved=(saved("_saved_other", 2, storage=0),),
            hooks=(Hook(kind="post", name="clip"), Hook(kind="pre")),
        ),
        leaf("fc.weight", 2),
        storages=(Storage(num_bytes=8),),
        modules=(ModuleCall(path="fc", class_name="Scale"),),
        frames=(Frame(file="a.py", line=3, code="y = w * x"),),
        arguments={"MulBackward0": ("self", "other")},
    )
    facts = explain_node(record, 0, catalog).facts

    assert facts is not None
    assert (facts.outputs, facts.module, facts.line) == (("f32[2, 3]",), "fc  Scale", "a.py:3  y = w * x")
    assert facts.edges == ("self: #1 AccumulateGrad fc.weight", "other: None")
    assert facts.saved == ("_saved_other  f32[2]  live",)
    assert facts.hooks == ("post: clip", "pre: a function")
    custom = graph(op("MyFnBackward", kind="custom", function="script.MyFn"))
    assert explain_node(custom, 0, catalog).text.startswith("The backward of a custom autograd.Function")


def test_a_custom_function_is_read_not_run(tmp_path: Path) -> None:
    """Its words, its backward, its line; a wrong name says which are there."""
    found = read_custom_function(SAMPLES / "custom_function.py", "LeakyClamp")

    assert found.docstring == "Clamp that lets a small gradient through outside its range."
    assert found.backward.startswith("@staticmethod\ndef backward(ctx, grad):\n    (inside,)")
    with pytest.raises(GradInspectError, match=r"There is no autograd\.Function 'Leaky' in .*It has LeakyClamp"):
        read_custom_function(SAMPLES / "custom_function.py", "Leaky")
    with pytest.raises(GradInspectError, match="cannot be read"):
        read_custom_function(tmp_path / "none.py", "A")
    (tmp_path / "bad.py").write_text("def (")
    with pytest.raises(GradInspectError, match="is not valid Python"):
        read_custom_function(tmp_path / "bad.py", "A")
