"""The screens of the debugger, and the reports."""

from html.parser import HTMLParser

import pytest
from factories import graph, leaf, op
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.explain.explanation import InputGradient
from gradinspect.analyses.gradients.stepping import Arrived, Passed, SavedPreview, Step, SteppingOutcome, TensorPreview
from gradinspect.graph import Frame, Graph, ModuleCall, SavedValue
from gradinspect.renderers.terminal.nodes.number_rows import summarize_values, value_lines
from gradinspect.renderers.terminal.nodes.step_report import render_report_html, render_report_markdown
from gradinspect.renderers.terminal.nodes.steps import StepPage, simplified

FORMULAS = (
    InputGradient(argument="self", place="0", formula="mul_tensor_backward(grad, other, self.scalar_type())"),
    InputGradient(argument="other", place="1", formula="mul_tensor_backward(grad, self, other.scalar_type())"),
)


def product(name: str = "w") -> Graph:
    """A product in a module, and a leaf that was broadcast."""
    return graph(
        op("MulBackward0", 1, None, module=0, frame=0, shape=(2, 3)),
        leaf(name, 3),
        modules=(ModuleCall(path="scale", class_name="Scale", call=2),),
        frames=(Frame(file="train.py", line=9, code="y = w * x"),),
        arguments={"MulBackward0": ("self", "other")},
    )


def shown(*values: float, shape: tuple[int, ...] | None = None) -> TensorPreview:
    """Show a small tensor."""
    return TensorPreview(
        shape=(len(values),) if shape is None else shape, dtype="float32", values=values,
        norm=sum(value * value for value in values) ** 0.5, low=min(values), high=max(values),
        num_zeros=values.count(0.0),
    )  # fmt: skip


def first_step() -> Step:
    """The product has run."""
    ones = shown(1.0, 1.0, 1.0, 0.5, 0.5, 0.0, shape=(2, 3))
    return Step(
        order=1, node=0, incoming=(Arrived(tensor=ones, num_added=2, is_changed=True),),
        outgoing=(Passed(tensor=shown(1.5, 1.5, 1.0), made_shape=(2, 3), made_dtype="float64"), Passed()),
        saved=(SavedPreview(name="other", tensor=shown(2.0, shape=())), SavedPreview(name="alpha", text="1"),
               SavedPreview(name="self", text="freed")),
        check="equal",
    )  # fmt: skip


def leaf_step() -> Step:
    """The leaf has got its gradient."""
    return Step(
        order=2, node=1, incoming=(Arrived(tensor=shown(1.5, 1.5, 1.0), num_added=1),), check="leaf",
        before=shown(0.0, 0.0, 0.0),
    )  # fmt: skip


def lines(page: StepPage, step: Step) -> list[str]:
    """Return the screen of a step as text."""
    return [line.plain.rstrip() for line in page.step(product(), step, FORMULAS)]


def test_a_node_that_has_run() -> None:
    """What came in, what was saved, and for each input the formula and what went out."""
    assert lines(StepPage(width=72), first_step()) == [
        "#0 MulBackward0  scale Scale call 2                               step 1",
        "  train.py:9  y = w * x",
        "  in     f32[2, 3]  norm 1.87, 0 to 1, 17% zeros",
        "         the sum of 2 gradients",
        "         modified by a hook on the way",
        "         [[  1,   1,   1]",
        "          [0.5, 0.5,   0]]",
        "  saved  other  f32[]  2",
        "         alpha = 1, self = freed",
        "  out    self → #1 AccumulateGrad w",
        "         = mul_tensor_backward(grad, other, self.scalar_type())",
        "         f32[3]  norm 2.35, 1 to 1.5",
        "         the formula gives [2, 3]; the engine sums it to the shape of",
        "           the forward input; cast from f64 to f32",
        "         [1.5, 1.5,   1]",
    ]


def test_a_brief_step_leaves_out_what_is_rarely_looked_at() -> None:
    """Long tensors have their figures only, sizes and casts to real are left out."""
    column = shown(*(float(number) for number in range(1, 7)), shape=(6, 1))
    step = Step(
        order=1, node=0, incoming=(Arrived(tensor=column, num_added=1),), outgoing=(Passed(tensor=column), Passed()),
        saved=(SavedPreview(name="alpha", text="1"), SavedPreview(name="mat1_sym_sizes", text="(2, 3)")), check="equal",
    )  # fmt: skip
    formulas = (InputGradient(argument="self", place="0", formula="handle_r_to_c(self.scalar_type(), grad * other)"),)
    brief, whole = (
        [line.plain for line in StepPage(width=72, is_brief=is_brief).step(product(), step, formulas)]
        for is_brief in (True, False)
    )

    assert brief[2:] == [
        "  in     f32[6, 1]  norm 9.54, 1 to 6",
        "  saved  alpha = 1",
        "  out    self → #1 AccumulateGrad w",
        "         = grad * other",
        "         f32[6, 1]  norm 9.54, 1 to 6",
    ]
    assert "  saved  alpha = 1, mat1_sym_sizes = (2, 3)" in whole
    assert "         = handle_r_to_c(self.scalar_type(), grad * other)" in whole
    assert len(whole) > len(brief) + 5


def test_a_formula_of_many_gradients_stands_at_the_first() -> None:
    """As that of `stack`: four of two hundred are shown, and all by `print`."""
    number = shown(1.0, shape=())
    formulas = (InputGradient(argument="tensors", formula="stack_backward(grad)", place="0 and up"),)
    record = graph(op("StackBackward0", *[1] * 200), leaf("w"),
                   arguments={"StackBackward0": tuple(f"tensors[{place}]" for place in range(200))})  # fmt: skip
    step = Step(order=1, node=0, incoming=(), outgoing=(Passed(tensor=number),) * 200, saved=())
    brief, whole = (
        [line.plain for line in StepPage(width=72, is_brief=is_brief).step(record, step, formulas)]
        for is_brief in (True, False)
    )

    assert sum("stack_backward" in line for line in brief) == 1
    assert "         196 more gradients: print" in brief
    assert sum("stack_backward" in line for line in whole) == sum("out " in line for line in whole) == 200


def test_a_brief_step_shows_the_first_of_many_tensors() -> None:
    """As a compiled node has; of thirteen it shows all, as the line in place of the last one would be no shorter."""
    number = shown(1.0, shape=())

    def page(count: int, *, is_brief: bool) -> list[str]:
        record = graph(op("CompiledFunctionBackward", *[1] * count, kind="compiled"), leaf("w"))
        saved = tuple(SavedPreview(name=f"mm[{place}]", tensor=number) for place in range(count))
        step = Step(order=1, node=0, incoming=(), outgoing=(Passed(tensor=number),) * count, saved=saved)
        return [line.plain for line in StepPage(width=72, is_brief=is_brief).step(record, step)]

    many, few = page(20, is_brief=True), page(13, is_brief=True)
    assert "         8 more saved tensors: print" in many
    assert "         8 more gradients: print" in many
    assert sum("mm[" in line for line in many) == sum("out " in line for line in many) == 12
    assert few == page(13, is_brief=False)
    assert sum("mm[" in line for line in page(20, is_brief=False)) == 20


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("handle_r_to_c(self, grad * f(x))", "grad * f(x)"),
        ("2 * handle_r_to_c(self.scalar_type(), a(b)) + handle_r_to_c(t, c)", "2 * a(b) + c"),
        ("handle_r_to_c(self, grad", "handle_r_to_c(self, grad"),
        ("grad.t()", "grad.t()"),
    ],
)
def test_a_formula_without_casts_to_real(formula: str, expected: str) -> None:
    """Wherever they are; what does not end is left as it is."""
    assert simplified(formula) == expected


def test_a_leaf() -> None:
    """The gradient, and what it is added to."""
    assert lines(StepPage(width=72, unicode=False), leaf_step()) == [
        "#1 AccumulateGrad w                                               step 2",
        "  in     f32[3]  norm 2.35, 1 to 1.5",
        "         [1.5, 1.5,   1]",
        "  to     w.grad, which was  f32[3]  all zero",
        "         [0, 0, 0]",
    ]


def test_a_node_that_was_only_watched() -> None:
    """The reason is said; no gradient is None."""
    step = Step(order=3, node=0, incoming=(Arrived(),), outgoing=(Passed(),), reason="a compiled backward runs once")

    assert lines(StepPage(width=72), step)[2:] == [
        "  in     None",
        "  out    self → #1 AccumulateGrad w",
        "         = mul_tensor_backward(grad, other, self.scalar_type())",
        "         None",
        "         Not called by hand: a compiled backward runs once.",
    ]


def test_the_introduction_says_what_will_fail() -> None:
    """Before the first step: where it begins, what is stale."""
    stale = SavedValue(name="_saved_self", kind="tensor", status="modified")
    found = graph(op("MulBackward0", 1, saved=(stale,)), leaf("w", 3), warnings=("What was saved was freed.",))

    assert [line.plain for line in StepPage(width=72).introduction(found, "ones")] == [
        "backward #1",
        "2 nodes, one step each. Type help for a list of commands.",
        "Backward starts with a gradient of ones.",
        "What was saved was freed.",
        "#0 MulBackward0 will fail: a tensor it saved was modified in place.",
    ]


def test_the_path_and_the_source() -> None:
    """The chosen node and the line are marked."""
    page = StepPage(width=40)

    assert [line.plain for line in page.path(product(), (1, 0), 1)] == [
        "  #0 MulBackward0  scale  train.py:9",
        "> #1 AccumulateGrad w",
    ]
    narrow = list(StepPage(width=34).path(product(), (1, 0), 1))
    assert narrow[0].plain == "  #0 MulBackward0  train.py:9"  # the module gives way before the line
    assert [line.plain for line in page.source(["a = 1", "\tb", "", "d", "e", "f"], 2)] == [
        "     1  a = 1",
        ">    2      b",
        "     3",
        "     4  d",
        "     5  e",
    ]


def test_the_end() -> None:
    """What agrees with the engine is counted, what does not is named."""
    found = SteppingOutcome(
        graph=product(), num_steps=2, num_equal=1, differing=(0,), changed=(1,), watched=(("it runs once", 1),),
        num_leaves=1, differing_leaves=("w",),
    )  # fmt: skip

    assert [line.plain for line in StepPage(width=100).outcome(found)] == [
        "Backward is done: 2 steps.",
        "2 formulas called by hand; 1 of them gave exactly what the engine returned.",
        "  #0 MulBackward0 did not: a hook modified its result.",
        "  #1 AccumulateGrad received a gradient that a hook had modified.",
        "1 node only observed: it runs once.",
        "2 leaf gradients compared with the sums of these steps: 1 bit-equal.",
        "Not equal: w: something other than backward changed it.",
    ]
    left = SteppingOutcome(graph=product(), num_steps=1, is_complete=False)
    assert [line.plain for line in StepPage().outcome(left)] == [
        "Stopped after 1 step; nothing was compared: 'continue' goes to the end."
    ]


def test_values() -> None:
    """Nested lists; none where there is no room; a tensor in numbers."""
    cube = shown(*map(float, range(8)), shape=(2, 2, 2))

    assert value_lines(cube, 20) == ["[[[0, 1]", "  [2, 3]]", " [[4, 5]", "  [6, 7]]]"]
    assert value_lines(cube, 5) is None
    assert value_lines(TensorPreview(shape=(0,), dtype="float32", values=()), 20) is None
    assert summarize_values(
        TensorPreview(shape=(4,), dtype="float32", norm=1.0, low=0.0, high=1.0, num_nonfinite=3)
    ) == ("3 of 4 not finite")
    assert summarize_values(TensorPreview(shape=(4,), dtype="int64", num_zeros=1)) == ""


@given(st.integers(30, 120), st.booleans(), st.text(max_size=30))
def test_no_line_is_wider_than_the_page(width: int, unicode: bool, name: str) -> None:
    """Whatever a parameter is called."""
    page = StepPage(width=width, unicode=unicode)
    found = product(name or "w")
    for step in (first_step(), leaf_step()):
        for line in page.step(found, step):
            assert line.cell_len <= width
            assert line.plain.isprintable()


class _Tags(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


HOSTILE = "</pre><script>alert(1)</script>`|\n    # x"


def test_reports_hold_names_as_text() -> None:
    """Nothing of the user's program is markup."""
    found = product(HOSTILE)
    ending = SteppingOutcome(graph=found, num_steps=2, num_equal=1, num_leaves=1)
    passes = [("ones", [first_step(), leaf_step()])]
    page = _Tags()
    page.feed(render_report_html(ending, passes, {"MulBackward0": FORMULAS}))
    markdown = render_report_markdown(ending, passes, {"MulBackward0": FORMULAS})

    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert "mul_tensor_backward(grad, other, self.scalar_type())" in page.text
    assert "default-src 'none'" in render_report_html(ending, passes, {})
    for line in markdown.splitlines():
        assert "<script" not in line or line.startswith("    ")
    assert "### `1. #0 MulBackward0`" in markdown
    assert "## From ones" in markdown


def test_values_of_an_expression() -> None:
    """Each of several has its place; a repr keeps its lines, and what controls a terminal is shown."""
    page = StepPage(width=80)

    assert [line.plain for line in page.values((shown(1.0, 2.0), "None"))] == [
        "[0]  f32[2]  norm 2.24, 1 to 2", "[1, 2]", "[1]  None",
    ]  # fmt: skip
    assert [line.plain for line in page.values(("one\ntwo\x1b[2J",))] == ["one", "two\\x1b[2J"]
