"""Saved tensors that were modified afterwards, in words, on graphs made by hand."""

from functools import partial

import pytest
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.checks.facts.backward_calls import EarlierCall, Held, StaleGraph
from gradinspect.checks.facts.graphs import MASKED_ASSIGNMENT, StaleValue, Write
from gradinspect.checks.rules.graphs.stale_values import stale_findings
from gradinspect.graph import Frame, Graph, SavedValue

SAVED = Frame(file="train.py", line=4, code="y = x.exp()")
BACKWARD = Frame(file="train.py", line=9, code="loss_g.backward()")


def line(code: str, number: int = 6) -> Frame:
    """A line of the program."""
    return Frame(file="train.py", line=number, code=code)


def recorded() -> Graph:
    """Two nodes of one line."""
    return graph(
        op("ExpBackward0", 1, sequence_nr=1, frame=0), op("MulBackward0", 2, sequence_nr=0, frame=0), leaf("x", 2),
        frames=(SAVED,),
    )  # fmt: skip


def value(*writes: Write, node: int = 0, label: str = "y", expected: int | None = 0) -> StaleValue:
    """A value that was saved at version 0 and is at version 1 now."""
    return StaleValue(node=node, name="_saved_result", label=label, writes=writes, version=1, expected_version=expected)


@pytest.mark.parametrize(
    ("write", "remedy"),
    [
        (
            Write(op="add_", frame=line("y += 1"), is_tracked=True),
            "Write 'y = y + 1' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op="add_", frame=line("y += x * 2"), is_tracked=True),
            "Write 'y = y + x * 2' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op="copy_", frame=line("h[t + 1] = cell(h[t])"), is_tracked=True),
            "Collect the parts in a list and torch.stack() them instead of assigning to h at train.py:6.",
        ),
        (
            Write(op="relu_", frame=line("y.relu_()"), is_tracked=True, has_form=True),
            "Write 'y = y.relu()' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op="zero_", frame=line("y[0].zero_()"), is_tracked=True),
            "Write to a copy: add 'y = y.clone()' before train.py:6.",
        ),
        (
            Write(op=MASKED_ASSIGNMENT, frame=line("y[x > 0] = 0.5"), is_tracked=True),
            "Write 'y = y.masked_fill(x > 0, 0.5)' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op=MASKED_ASSIGNMENT, frame=line("y[m] = x[m]"), is_tracked=True),
            "Write 'y = torch.where(m, x, y)' at train.py:6, which makes a new tensor.",
        ),
        (
            Write(op="mul", frame=line("torch.mul(x, 2, out=y)")),
            "Remove out= at train.py:6 and assign the result, which is a new tensor.",
        ),
        (
            Write(op="relu_", frame=line("y = model(y)"), is_tracked=True, has_form=True),
            "Remove inplace=True from the function or module that runs relu_ at train.py:6.",
        ),
        (
            Write(op="div_", frame=line("w.div_(2)")),
            "Move train.py:6 after train.py:9, unless something in between needs the new values.",
        ),
        (
            Write(op="mul_", frame=None),
            "Look for code that writes to it outside torch, such as NumPy or another thread, and give it a copy.",
        ),
    ],
)
def test_each_way_of_writing_has_its_remedy(write: Write, remedy: str) -> None:
    """What to write instead."""
    (found,) = stale_findings(StaleGraph(recorded(), [value(write)], BACKWARD))

    assert found.code == "GI101"
    assert found.remedy == remedy


def test_an_optimizer_is_named() -> None:
    """With where to call it."""
    step = Write(op="addcdiv_", frame=line("opt_d.step()"), optimizer="opt_d")
    (found,) = stale_findings(StaleGraph(recorded(), [value(step)], BACKWARD))

    assert found.code == "GI102"
    assert found.text == (
        "y, saved for backward at train.py:4, was modified afterwards by opt_d.step(), so this backward will fail. "
        "(ExpBackward0 saved version 0; now it is at version 1.)"
    )
    assert found.remedy.startswith(
        "Compute train.py:4 again after opt_d.step() at train.py:6. Or call opt_d.step() after "
    )


def test_an_optimizer_and_something_else_are_no_optimizer() -> None:
    """Then to move the step would not help."""
    writes = (Write(op="add_", frame=line("o.step()"), optimizer="o"), Write(op="mul_", frame=line("y.mul_(2)", 7)))
    (found,) = stale_findings(StaleGraph(recorded(), [value(*writes)], BACKWARD))

    assert found.code == "GI101"
    assert [(place.role, place.line) for place in found.places] == [
        ("saved", 4), ("written", 6), ("written", 7), ("backward", 9),
    ]  # fmt: skip


def test_a_version_that_stayed_is_silent() -> None:
    """Torch will not notice, and it says so."""
    (found,) = stale_findings(
        StaleGraph(recorded(), [value(Write(op="mul_", frame=line("y.data.mul_(2)")), expected=None)], None)
    )

    assert found.code == "GI103"
    assert "mul_, which does not raise its version: gradients will be wrong, and torch raises no error." in found.text


def test_what_the_same_lines_did_is_one_finding() -> None:
    """Two tensors of one saving and one writing line; another writing line is another finding."""
    write, other = Write(op="add_", frame=line("y += 1")), Write(op="add_", frame=line("z += 1", 7))
    values = [value(write), value(write, node=1, label="z"), value(other, node=1, label="w")]
    found = list(stale_findings(StaleGraph(recorded(), values, BACKWARD)))

    assert [len(finding.subjects) for finding in found] == [2, 1]
    assert found[0].text.startswith("z and y, saved for backward at train.py:4, were modified afterwards by add_, so")


def test_what_one_step_did_to_several_lines_is_one_finding() -> None:
    """With each line that saved, in the order in which they ran; another remedy is another finding."""
    both = graph(
        op("MulBackward0", 1, sequence_nr=1, frame=1), op("ExpBackward0", 2, sequence_nr=0, frame=0), leaf("x", 2),
        frames=(SAVED, line("z = y * w", 5)),
    )  # fmt: skip
    step = Write(op="add_", frame=line("opt.step()"), optimizer="opt")
    (found,) = stale_findings(StaleGraph(both, [value(step, label="w"), value(step, node=1)], BACKWARD))

    assert [(place.role, place.line) for place in found.places] == [
        ("saved", 4), ("saved", 5), ("written", 6), ("backward", 9),
    ]  # fmt: skip
    assert found.text == (
        "y and w, saved for backward at train.py:4 and train.py:5, were modified afterwards by opt.step(), so this "
        "backward will fail. (ExpBackward0 and MulBackward0 saved version 0; now they are at version 1.)"
    )
    assert found.remedy.startswith("Compute train.py:4 and train.py:5 again after opt.step() at train.py:6. Or call ")


def test_two_tensors_of_one_node_are_spoken_of_as_two() -> None:
    """With each version that there is."""
    write = Write(op="add_", frame=line("y += 1"))
    one = value(write)
    both = [one, replace(value(write, label="z"), version=3, expected_version=2)]
    texts = [
        finding.text for values in ([one], both) for finding in stale_findings(StaleGraph(recorded(), values, BACKWARD))
    ]

    assert texts[0].endswith("(ExpBackward0 saved version 0; now it is at version 1.)")
    assert texts[1].endswith("(ExpBackward0 saved versions 0 and 2; now they are at versions 1 and 3.)")


@pytest.mark.parametrize(
    ("label", "write_line", "op_name", "remedy"),
    [
        ("x", 6, "div_", "Move train.py:6 after train.py:9, unless something in between needs the new values; in that "
         "case use x.clone() at train.py:4, so that backward still has the values it needs."),
        ("x", 12, "div_", "Use x.clone() at train.py:4, so that backward still has the values it needs."),
        ("w", 12, "div_", "Compute with a new tensor instead of writing to w at train.py:12, or compute train.py:4 "
         "again after the write."),
        ("w", 9, "div_", "Compute with a new tensor instead of writing to w at train.py:9, or compute train.py:4 "
         "again after the write."),
        ("w", 3, "div_", "Compute with a new tensor instead of writing to w at train.py:3, or compute train.py:4 "
         "again after the write."),
        ("w", 6, "div_", "Move train.py:6 after train.py:9, unless something in between needs the new values."),
        ("w", 6, "batch_norm_stats", "Compute train.py:4 after train.py:6, which changes the running statistics that "
         "it reads. Or call the module in eval mode at train.py:6."),
    ],
)  # fmt: skip
def test_a_write_that_is_not_recorded_moves_behind_backward_or_meets_a_copy(
    label: str, write_line: int, op_name: str, remedy: str
) -> None:
    """It can move if it stands between the line that saved and backward; a copy needs a name on the line that saved."""
    write = Write(op=op_name, frame=line("w.div_(2)", write_line))
    (found,) = stale_findings(StaleGraph(recorded(), [value(write, label=label)], BACKWARD))

    assert found.remedy == remedy


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("y[m] = -1e-3", "y = y.masked_fill(m, -0.001)"),
        ("y[m] *= 2", "y = torch.where(m, y * 2, y)"),
        ("y[m] = z", "y = y.masked_scatter(m, z)"),
        ("y[m] = z[n]", "y = y.masked_scatter(m, z[n])"),
        ("y[m] = -float('inf')", "y = y.masked_fill(m, -float('inf'))"),
        ("y[m] = -torch.inf", "y = y.masked_fill(m, -torch.inf)"),
        ("y[m] = -1e30", "y = y.masked_fill(m, -1e+30)"),
        ("y[m] = torch.finfo(y.dtype).min", "y = y.masked_fill(m, torch.finfo(y.dtype).min)"),
        ("y[m] = float(z) * z", "y = y.masked_scatter(m, float(z) * z)"),
        ("y[m] = z.min", "y = y.masked_scatter(m, z.min)"),
        ("y[m] = float('-inf')", "y = y.masked_fill(m, float('-inf'))"),
    ],
)
def test_an_assignment_by_a_mask_has_a_form_that_makes_a_new_tensor(code: str, written: str) -> None:
    """For a number, a tensor, and what is computed from the old values."""
    write = Write(op=MASKED_ASSIGNMENT, frame=line(code), is_tracked=True)
    (found,) = stale_findings(StaleGraph(recorded(), [value(write)], BACKWARD))

    assert found.remedy == f"Write '{written}' at train.py:6, which makes a new tensor."


def test_up_to_four_lines_that_wrote_are_shown() -> None:
    """The first ones, each once."""
    writes = [Write(op="add_", frame=line("y += 1", 10 + place // 2)) for place in range(12)]
    (found,) = stale_findings(StaleGraph(recorded(), [value(*writes)], BACKWARD))

    assert [place.line for place in found.places if place.role == "written"] == [10, 11, 12, 13]


@pytest.mark.parametrize(
    ("op_names", "by"),
    [
        (("add_",), "add_"),
        (("add_", "mul_", "add_"), "add_ and mul_"),
        (("item assignment",), "item assignment"),
        (("relu", "Tensor.set"), "relu and Tensor.set"),
        (("Tensor.set",), "Tensor.set"),
        (("relu",), "relu"),
        ((), "code outside torch, such as NumPy"),
    ],
)
@pytest.mark.parametrize("expected", [0, None])
def test_what_wrote_is_named(op_names: tuple[str, ...], by: str, expected: int | None) -> None:
    """Names of the program are written as they are."""
    writes = [Write(op=op_name, frame=line("y += 1")) for op_name in op_names]
    (found,) = stale_findings(StaleGraph(recorded(), [value(*writes, expected=expected)], BACKWARD))

    assert f"was modified afterwards by {by}, " in found.text


STEP = Write(op="addcdiv_", frame=line("opt.step()"), optimizer="opt")


def earlier(*nodes: int, clock: int = 2, frame: Frame | None = BACKWARD) -> EarlierCall:
    """Return an iteration before this one."""
    return EarlierCall(name="backward #1", frame=frame, root="loss", nodes=frozenset(nodes), clock=clock)


@pytest.mark.parametrize(
    ("calls", "begins"),
    [
        ([], "Compute train.py:4 again after opt.step() at train.py:6."),
        ([earlier(9)], "Compute train.py:4, and all that is read there, inside the loop, so that it is made anew"),
        ([earlier(9, clock=1)], "Compute train.py:4 again after"),  # it began before the value was saved
        ([earlier(9, clock=0)], "Compute train.py:4 again after"),
        ([earlier(9, frame=line("", 8))], "Compute train.py:4 again after"),  # another line is another loop
        ([earlier(9, frame=line("", 10))], "Compute train.py:4 again after"),
    ],
)  # fmt: skip
def test_what_was_computed_before_the_loop_in_which_it_is_written(calls: list[EarlierCall], begins: str) -> None:
    """If an earlier call of the same line had the value already."""
    (found,) = stale_findings(StaleGraph(recorded(), [value(STEP)], BACKWARD, calls))

    assert found.remedy.startswith(begins)


def test_a_write_in_the_loop_of_what_is_computed_before_it() -> None:
    """It is named by its line."""
    write = Write(op="mul_", frame=line("y.mul_(2)"))
    (found,) = stale_findings(StaleGraph(recorded(), [value(write)], BACKWARD, [earlier(9)]))
    (unknown,) = stale_findings(StaleGraph(recorded(), [value(Write(op="mul_", frame=None))], BACKWARD, [earlier(9)]))

    assert found.remedy.endswith("so that it is made anew after train.py:6; or run train.py:6 once, after the loop.")
    assert unknown.remedy.startswith("Look for code that writes to it outside torch")


def test_what_the_last_iteration_handed_on_is_detached() -> None:
    """The last one of those that went through the value decides."""
    old, new = line("h = cell(x, h)", 4), line("loss = head(h)", 5)
    carried = graph(
        op("SumBackward0", 1, sequence_nr=6, frame=1), op("TanhBackward0", 2, sequence_nr=5, frame=0),
        op("TanhBackward0", 3, sequence_nr=1, frame=0), leaf("w", 2), frames=(old, new),
    )  # fmt: skip
    remedies = [
        next(
            stale_findings(StaleGraph(carried, [value(STEP, node=2)], BACKWARD, calls, partial(Held, "tensor")))
        ).remedy
        for calls in ([earlier(9, clock=5), earlier(1, clock=5)], [earlier(1, clock=5), earlier(9, clock=5)])
    ]

    assert remedies[0].startswith(
        "Detach what one iteration hands on to the next: after loss_g.backward() at train.py:9, add 'h = h.detach()'."
    )
    assert remedies[1].startswith("Compute train.py:4, and all that is read there, inside the loop")


def test_what_the_loss_makes_of_a_value_is_computed_again_too() -> None:
    """If another line did; the call is named as its line has it."""
    first, second = recorded().nodes[:2]
    lines = (SAVED, line("loss = y.sum()", 8))
    other = replace(recorded(), nodes=(replace(first, frame=1), second, recorded().nodes[2]), frames=lines)
    (made_by_other,) = stale_findings(StaleGraph(other, [value(STEP, node=1)], BACKWARD))
    (made_by_same,) = stale_findings(StaleGraph(recorded(), [value(STEP)], None))
    (without_root,) = stale_findings(StaleGraph(replace(recorded(), roots=()), [value(STEP)], BACKWARD))

    assert made_by_other.remedy == (
        "Compute train.py:4 and what train.py:8 makes of that again after opt.step() at train.py:6. Or call "
        "opt.step() after loss_g.backward() at train.py:9, if the gradients of both should update these weights."
    )
    assert made_by_same.remedy.startswith(
        "Compute train.py:4 again after opt.step() at train.py:6. Or call opt.step() "
    )
    assert "call opt.step() after backward at an unknown line, if" in made_by_same.remedy
    assert without_root.remedy.startswith("Compute train.py:4 again after opt.step()")


def test_the_first_write_decides_how_to_write_instead() -> None:
    """Whatever else wrote, on the same line or on others."""
    frame = line("h[0].zero_(); h.relu_()")
    recorded_write = Write(op="zero_", frame=frame, is_tracked=True)
    unrecorded = Write(op="batch_norm_update", frame=frame)
    texts = [
        next(stale_findings(StaleGraph(recorded(), [value(*writes)], BACKWARD))).remedy
        for writes in ((recorded_write, unrecorded), (unrecorded, recorded_write))
    ]

    assert texts == [
        "Write to a copy at train.py:6: clone() the tensor first.",
        "Compute train.py:4 after train.py:6, which changes the running statistics that it reads. Or call the module "
        "in eval mode at train.py:6.",
    ]


@pytest.mark.parametrize(
    ("code", "has_form", "remedy"),
    [
        ("model(", True, "Write to a copy at train.py:6: clone() the tensor first."),
        ("model(y)", False, "Write to a copy at train.py:6: clone() the tensor first."),
        ("model(y)", True, "Remove inplace=True from the function or module that runs relu_ at train.py:6."),
        ("y[0].relu_()", True, "Write to a copy: add 'y = y.clone()' before train.py:6."),
    ],
)
def test_a_line_that_does_not_show_what_it_writes_to(code: str, has_form: bool, remedy: str) -> None:
    """It has a function or a module with inplace=True, unless it is only a part of a statement."""
    write = Write(op="relu_", frame=line(code), is_tracked=True, has_form=has_form)
    (found,) = stale_findings(StaleGraph(recorded(), [value(write)], BACKWARD))

    assert found.remedy == remedy


def test_an_operator_on_a_masked_part_by_a_tensor_has_no_such_form() -> None:
    """It is written to a copy."""
    write = Write(op=MASKED_ASSIGNMENT, frame=line("y[m] *= z"), is_tracked=True)
    (found,) = stale_findings(StaleGraph(recorded(), [value(write)], BACKWARD))

    assert found.remedy == "Write to a copy: add 'y = y.clone()' before train.py:6."


def test_the_first_of_several_optimizers_is_named() -> None:
    """Versions are part of what is named, if torch looks at them."""
    second = Write(op="addcdiv_", frame=line("opt_b.step()", 7), optimizer="opt_b")
    (found,) = stale_findings(StaleGraph(recorded(), [value(STEP, second)], BACKWARD))
    (untracked,) = stale_findings(StaleGraph(recorded(), [value(STEP, expected=None)], BACKWARD))

    assert "modified afterwards by opt.step()" in found.text
    assert found.subjects == ("y (saved at version 0, now 1)",)
    assert untracked.subjects == ("y",)


def test_a_variable_of_a_loop_is_no_element_of_its_list() -> None:
    """What is assigned to it changes the variable alone, so a new list is needed."""
    write = Write(op="clamp_", frame=line("part.clamp_(max=2)"), is_tracked=True, has_form=True)
    of_list, of_tuple = (
        next(stale_findings(StaleGraph(recorded(), [value(write, label="parts[0]")], BACKWARD, holds=holds))).remedy
        for holds in (partial(Held, "list"), partial(Held, "tuple"))
    )

    assert of_list == (
        "Collect the results in a new list, and use it in place of parts after the loop: 'part = part.clamp(max=2)' at "
        "train.py:6 changes the variable of the loop alone."
    )
    assert of_tuple == "Write 'part = part.clamp(max=2)' at train.py:6, which makes a new tensor."


@pytest.mark.parametrize(
    ("label", "is_parameter", "remedy"),
    [
        ("x", False, "Compute with a new tensor instead of writing to x at train.py:6."),
        ("x", True, "Use x.clone() at train.py:4, so that backward still has the values it needs."),
        ("y", False, "Compute with a new tensor instead of writing to y at train.py:6."),
    ],
)
def test_a_write_that_the_loss_reads_does_not_move_behind_backward(label: str, is_parameter: bool, remedy: str) -> None:
    """The loss needs what was written; a parameter has to stay the same tensor."""
    saved = SavedValue("_saved_result", "tensor", status="live", origin="parameter" if is_parameter else "activation")
    read = line(f"loss = {label}.sum()", 8)
    first, *others = recorded().nodes
    made = replace(recorded(), nodes=(replace(first, saved=(saved,)), *others), frames=(SAVED, read))
    write = Write(op="clamp_", frame=line("w.data.clamp_(0)"))
    (found,) = stale_findings(StaleGraph(made, [value(write, label=label)], BACKWARD))

    assert found.remedy == remedy


def test_what_was_computed_before_the_loop_is_not_detached_in_it() -> None:
    """Nothing hands it on to the next iteration, and without its graph the loss would have none."""
    old, new = line("guess = model(x)", 4), line("loss = (guess - y).square().mean()", 5)
    shared = graph(
        op("MeanBackward0", 1, sequence_nr=6, frame=1), op("AddmmBackward0", 2, sequence_nr=1, frame=0), leaf("w", 2),
        frames=(old, new),
    )  # fmt: skip
    call = earlier(1, clock=5)
    (found,) = stale_findings(StaleGraph(shared, [value(STEP, node=1)], BACKWARD, [call], partial(Held, "tensor")))

    assert found.remedy.startswith("Compute train.py:4, and all that is read there, inside the loop")
