"""The screen of an explanation."""

import json
import re

import pytest

from gradinspect.analyses.explain.explanation import all_names, explain_class
from gradinspect.catalog import Catalog, load_catalog
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.terminal.explanation import ExplanationPage


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The installed torch's."""
    return load_catalog()


def test_the_screen_of_a_class(catalog: Catalog) -> None:
    """At 80 columns, line numbers apart; addresses are never broken."""
    lines = [text.plain for text in ExplanationPage(width=80).explanation(explain_class("ReluBackward0", catalog))]

    assert [re.sub(r"(?<=[:L])\d+", "N", line).rstrip() for line in lines] == [
        "ReluBackward0",
        "backward of      relu(Tensor self) -> Tensor",
        "",
        "gradient of self  next_functions[0]",
        "  threshold_backward(grad, result, 0)",
        "",
        "saves            _saved_result",
        "                 _saved_result is an output of the forward op",
        "double backward  yes, through ThresholdBackwardBackward0",
        "formulas         torchgen/packaged/autograd/derivatives.yaml:N",
        "  https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml#LN",
        "struct ReluBackward0",
        "  torch/include/torch/csrc/autograd/generated/Functions.h:N",
        "gdb              break torch::autograd::generated::ReluBackward0::apply",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_class_fits(width: int, catalog: Catalog) -> None:
    """All but places, addresses and single words of C++, which stay whole to be copied."""
    page = ExplanationPage(width=width)
    for name in all_names(catalog):
        for line in page.explanation(explain_class(name, catalog)):
            is_whole = "/" in line.plain or "::" in line.plain or " " not in line.plain.strip()
            assert line.cell_len <= width or is_whole or len(line.plain.split()[-1]) > width - 30, line.plain


def test_a_list_is_one_line_a_class(catalog: Catalog) -> None:
    """Cut at the edge."""
    lines = [text.plain for text in ExplanationPage(width=60).names([("ABackward0", "a(" + "Tensor x, " * 20 + ")")])]

    assert len(lines) == 1
    assert len(lines[0]) == 60


def test_json_has_everything(catalog: Catalog) -> None:
    """Each field of the record."""
    (found,) = json.loads(render_json([explain_class("MulBackward0", catalog)]))

    assert found["gradients"][0]["argument"] == "self"
    assert found["double"]["helpers"] == ["mul_tensor_backward"]
    assert found["sources"][0]["place"]["file"].endswith("derivatives.yaml")
