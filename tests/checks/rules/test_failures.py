"""What is said of an error that no other rule explains."""

from typing import Any

import pytest

from gradinspect.checks.facts.failures import FailedCall, FailedTensor, MisfitState, SharedParameter
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.failures import failure_findings
from gradinspect.graph import Frame


def _frame(line: int) -> Frame:
    return Frame(file="train.py", line=line, code="...", function="<module>")


def _tensor(
    name: str, dtype: str = "float32", shape: tuple[int, ...] = (3,), device: str = "cpu", **more: Any
) -> FailedTensor:
    facts: dict[str, Any] = {"is_trained_leaf": False, "is_integer": dtype.startswith("int"), "made": _frame(4), **more}
    return FailedTensor(name=name, dtype=dtype, shape=shape, device=device, **facts)


def _finding(error: str, *tensors: FailedTensor) -> Finding:
    (found,) = failure_findings(FailedCall(error=error, frame=_frame(9), called=None, tensors=tensors))
    return found


def test_a_write_to_a_leaf_names_the_leaf_only() -> None:
    """The other tensors of the statement are not the reason."""
    weight, step = _tensor("weight", is_trained_leaf=True, made=None), _tensor("step")
    found = _finding("a leaf Variable that requires grad is being used in an in-place operation", weight, step)
    assert found.subjects == ("weight",)
    assert found.text.endswith("weight is float32 [3], a leaf that requires grad.")
    assert found.remedy.startswith("Put train.py:9 into 'with torch.no_grad():'")


def test_a_target_of_integers_is_converted() -> None:
    """Which one it is follows from the dtypes."""
    found = _finding(
        "result type Float can't be cast to the desired output type Long", _tensor("out"), _tensor("y", "int64")
    )
    assert found.text.endswith("out is float32 [3], made at train.py:4. y is int64 [3], made at train.py:4.")
    assert found.remedy == "At train.py:9, pass y.float()."


@pytest.mark.parametrize(
    ("error", "other", "question"),
    [
        ("expected all tensors on one device", {"device": "meta"}, "Which device"),
        ("mat1 and mat2 must have the same dtype", {"dtype": "float64"}, "Which dtype"),
        ("The size of tensor a must match", {"shape": (4,)}, "Which of these shapes"),
    ],
)
def test_without_a_sure_remedy_the_deciding_question_is_asked(error: str, other: dict[str, Any], question: str) -> None:
    """Only the program knows which of two is meant."""
    found = _finding(error, _tensor("a"), _tensor("b", **other))
    assert found.remedy.startswith(question)


def test_sparse_gradients_are_to_be_dense_or_to_have_an_optimizer_of_their_own() -> None:
    """Where the embeddings are made, if that is known."""
    error = "Adam does not support sparse gradients, please consider SparseAdam instead"
    known = _finding(error, _tensor("a", has_sparse_gradient=True), _tensor("b", has_sparse_gradient=True))
    unknown = _finding(error, _tensor("a", has_sparse_gradient=True, made=None))

    assert "a is float32 [3], and its gradient is sparse, made at train.py:4." in known.text
    assert known.remedy.startswith(
        "Remove sparse=True at train.py:4. Or pass these parameters to torch.optim.SparseAdam"
    )
    assert unknown.remedy.startswith("Remove sparse=True from their embeddings.")
    assert [(place.role, place.line) for place in known.places] == [("sparse", 4), ("failed", 9)]


def test_without_tensors_the_sentence_of_torch_is_left() -> None:
    """And what it leaves open."""
    found = _finding("Expected a proper Tensor but got None")
    assert found.text == "torch says: Expected a proper Tensor but got None."
    assert found.remedy == "What does this line pass, and what does torch say that it expects?"


def test_what_a_layer_was_given_begins_a_sentence() -> None:
    """The layer is named before it."""
    given = _tensor("the input of net.1", is_argument=True, made=None)
    fact = FailedCall(error="no", frame=_frame(9), called=None, tensors=(given,), layer="net.1, a Linear")
    (found,) = failure_findings(fact)
    assert found.text == "torch says: no. It was raised in net.1, a Linear. The input of net.1 is float32 [3]."


@pytest.mark.parametrize(
    ("names", "said", "remedy"),
    [
        (("a.w", "b.w"), "a.w, which is also b.w, is in the groups 0 and 2.", "Leave a.w out of one of"),
        ((), "A parameter is in the groups 0 and 2.", "Leave it out of one of"),
    ],
)
def test_a_parameter_in_two_groups(names: tuple[str, ...], said: str, remedy: str) -> None:
    """It is one tensor, whatever its names are."""
    shared = (SharedParameter(names=names, groups=(0, 2)),)
    (found,) = failure_findings(FailedCall(error="no", frame=_frame(9), called=None, tensors=(), shared=shared))
    assert found.text.endswith(said)
    assert found.remedy.startswith(remedy)


def test_a_list_of_layers_is_to_be_a_module_list() -> None:
    """The attribute is named."""
    fact = FailedCall(
        error="no", frame=_frame(9), called=None, tensors=(), unregistered=(("net.layers", "ModuleList"),)
    )
    (found,) = failure_findings(fact)
    assert found.remedy.startswith("Make net.layers an nn.ModuleList")


def test_labels_are_said_with_their_extremes() -> None:
    """Which of them is too large is seen."""
    found = _finding(
        "Target 5 is out of bounds", _tensor("y", "int64", extremes=(1, 5)), _tensor("k", "int64", extremes=(7, 7))
    )
    assert "y is int64 [3], from 1 to 5, made at" in found.text
    assert "k is int64 [3], of 7 only, made at" in found.text
    assert found.remedy.startswith("Count labels from 0")
    other = _finding("index 5 is out of bounds for dimension 0 with size 3", _tensor("y", "int64"))
    assert other.remedy.startswith("Dimension 0 has 3 entries")


def test_a_state_of_another_shape_names_its_parameter() -> None:
    """It was loaded in another order, which the shapes of the step alone do not say."""
    misfit = MisfitState(name="model.body.weight", shape=(24, 10), state=(2, 24))
    error = "The size of tensor a (10) must match the size of tensor b (24) at non-singleton dimension 1"
    (found,) = failure_findings(FailedCall(error=error, frame=_frame(9), called=None, tensors=(), misfit=misfit))
    assert "model.body.weight is [24, 10], and the optimizer has a state of [2, 24] for it." in found.text
    assert found.remedy.startswith("The optimizer was loaded with the state of other parameters, or in another order:")


def test_the_line_of_the_scheduler_is_the_cause() -> None:
    """step() only counts what it was made for."""
    error = "Tried to step 7 times. The specified number of total steps is 6"
    fact = FailedCall(error=error, frame=_frame(9), called=None, tensors=(), schedule=_frame(5), text=error)
    (found,) = failure_findings(fact)
    assert [(place.role, place.line) for place in found.places] == [("scheduler", 5), ("failed", 9)]
