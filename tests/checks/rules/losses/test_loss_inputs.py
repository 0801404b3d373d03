"""What goes into losses, judged on graphs made by hand."""

import pytest
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.losses.loss_inputs import activation_findings, log_probability_findings
from gradinspect.graph import Frame, Graph, ModuleCall, Node

MODEL = Frame(file="model.py", line=3, code="return self.last(h)")
LOSS = Frame(file="train.py", line=4, code="loss = criterion(output, y)")


def chain(*names: str, module: str = "Net", loss: Frame = LOSS) -> Graph:
    """Make a chain of nodes, the loss first; what is before the last loss node has the line of the model."""
    nodes: list[Node] = []
    for number, name in enumerate(names):
        is_loss = "Loss" in name or "Entropy" in name or (number == 1 and "LogSoftmax" in name)
        shape = () if number == 0 else (8, 10)
        nodes.append(op(name, number + 1, shape=shape, frame=int(is_loss), module=None if is_loss else 0))
    return graph(
        *nodes, leaf("weight", 10, 4), frames=(MODEL, loss), modules=(ModuleCall(path="last", class_name=module),)
    )


def activations(recorded: Graph) -> list[Finding]:
    """Judge what goes into losses that take logits."""
    return list(activation_findings(BackwardStarts(recorded)))


def log_probabilities(recorded: Graph) -> list[Finding]:
    """Judge what goes into losses that take log-probabilities."""
    return list(log_probability_findings(BackwardStarts(recorded)))


def test_both_lines_and_the_lowest_loss_are_named() -> None:
    """Where the softmax is applied, where the loss is, and what a perfect prediction costs."""
    (found,) = activations(chain("NllLossBackward0", "LogSoftmaxBackward0", "ViewBackward0", "SoftmaxBackward0"))

    assert [(place.role, place.file) for place in found.places] == [("applied", "model.py"), ("loss", "train.py")]
    assert "cross_entropy applies log_softmax itself" in found.text
    assert "with 10 classes it is never below 1.461." in found.text


def test_a_module_that_is_only_the_activation_can_be_removed() -> None:
    """Otherwise, its input is to be passed on."""
    names = "BinaryCrossEntropyWithLogitsBackward0", "SigmoidBackward0"
    (alone,), (inside,) = activations(chain(*names, module="Sigmoid")), activations(chain(*names))

    assert alone.remedy.startswith("Remove that Sigmoid from the model;")
    assert inside.remedy.startswith("Pass what goes into sigmoid at model.py:3 to the loss;")
    assert "a target of 0 costs at least 0.693" in inside.text


@pytest.mark.parametrize(
    "names",
    [
        ("NllLossBackward0", "LogSoftmaxBackward0", "AddmmBackward0"),
        ("NllLossBackward0", "LogSoftmaxBackward0", "LogSoftmaxBackward0"),
        ("NllLossBackward0", "LogSoftmaxBackward0", "MulBackward0", "SoftmaxBackward0"),
        ("MeanBackward0", "LogSoftmaxBackward0", "SigmoidBackward0"),
        ("MeanBackward0", "LogSoftmaxBackward0", "LogSoftmaxBackward0"),
        ("BinaryCrossEntropyBackward0", "SigmoidBackward0"),
        ("BinaryCrossEntropyWithLogitsBackward0", "AddmmBackward0"),
    ],
)
def test_what_is_right_or_changes_nothing_is_not_reported(names: tuple[str, ...]) -> None:
    """Logits, a second log_softmax, scaled probabilities, another loss."""
    assert activations(chain(*names)) == []


@pytest.mark.parametrize(
    ("names", "remedy"),
    [
        (("NllLossBackward0", "SoftmaxBackward0"), "Replace softmax at model.py:3 by log_softmax, or pass"),
        (("NllLoss2DBackward0", "ViewBackward0", "SigmoidBackward0"), "Replace sigmoid at model.py:3"),
        (("NllLossBackward0", "AddmmBackward0"), "Apply log_softmax to the output of model.py:3, or pass logits"),
        (("CtcLossBackward0", "AddmmBackward0"), "Apply log_softmax(-1) to the output of model.py:3."),
    ],
)
def test_a_loss_of_log_probabilities_gets_something_else(names: tuple[str, ...], remedy: str) -> None:
    """Probabilities, or scores; ctc_loss has no form that takes logits."""
    (found,) = log_probabilities(chain(*names))

    assert found.code == "GI352"
    assert found.remedy.startswith(remedy)


@pytest.mark.parametrize("made", ["LogSoftmaxBackward0", "LogBackward0", "MulBackward0", "SubBackward0"])
def test_log_probabilities_may_be_computed_in_many_ways(made: str) -> None:
    """Only what cannot be one is reported."""
    assert log_probabilities(chain("NllLossBackward0", made)) == []


def test_a_softmax_before_another_is_wrong_in_any_loss() -> None:
    """A sigmoid before log_softmax only under a log-likelihood, where it is certainly meant to be one."""
    (of_mean,) = activations(chain("MeanBackward0", "LogSoftmaxBackward0", "SoftmaxBackward0"))
    (of_sigmoid,) = activations(chain("NllLossBackward0", "LogSoftmaxBackward0", "SigmoidBackward0"))

    assert of_mean.code == of_sigmoid.code == "GI351"
    assert "the output of sigmoid" in of_sigmoid.text


@pytest.mark.parametrize(
    ("shape", "end"),
    [
        ((8, 10), ": with 10 classes it is never below 1.461."),
        ((10,), ": with 10 classes it is never below 1.461."),
        ((8, 2), ": with 2 classes it is never below 0.313."),
        ((8, 1), "."),
        ((8, "s0"), "."),
        ((), "."),
    ],
)
def test_the_lowest_loss_follows_from_the_number_of_classes(shape: tuple[int, ...], end: str) -> None:
    """On axis 1, or the only one, if it is known."""
    first, loss, *others = chain("NllLossBackward0", "LogSoftmaxBackward0", "SoftmaxBackward0").nodes
    loss = op(loss.name, 2, shape=shape, frame=1)
    recorded = chain("NllLossBackward0", "LogSoftmaxBackward0", "SoftmaxBackward0")
    (found,) = activations(replace(recorded, nodes=(first, loss, *others)))

    assert found.text.endswith(f"the loss cannot come near 0{end}")


def test_every_loss_is_looked_at() -> None:
    """Also after one whose input needs no gradient; of several readers, the first names the function."""
    nodes = (
        op("AddBackward0", 1, 2, shape=(), frame=1), op("NllLossBackward0", None, shape=(), frame=1),
        op("NllLossBackward0", 3, shape=(), frame=1), op("SoftmaxBackward0", 4, shape=(8, 10), frame=0),
        leaf("weight", 10, 4),
    )  # fmt: skip
    several = (
        op("AddBackward0", 1, 2, shape=(), frame=1), op("NllLossBackward0", 3, shape=(), frame=1),
        op("MeanBackward0", 3, shape=(), frame=0), op("LogSoftmaxBackward0", 4, shape=(8, 10), frame=1),
        op("SoftmaxBackward0", 5, shape=(8, 10), frame=0), leaf("weight", 10, 4),
    )  # fmt: skip

    assert len(log_probabilities(graph(*nodes, frames=(MODEL, LOSS)))) == 1
    (found,) = activations(graph(*several, frames=(MODEL, LOSS)))
    assert found.text.startswith("cross_entropy applies log_softmax itself, but its input is the output of softmax")


@pytest.mark.parametrize(
    ("made", "module", "what", "remedy"),
    [
        ("AddmmBackward0", 0, "the output of a layer (module last, Net), which is", "Apply log_softmax to the output"),
        ("AddmmBackward0", None, "the output of addmm, which is not", "Apply log_softmax to the output of model.py:3"),
        ("SoftmaxBackward0", 1, "the output of softmax (module act, Softmax): ", "Replace that Softmax by nn.LogSoft"),
        ("SoftmaxBackward0", 0, "the output of softmax (module last, Net): ", "Replace softmax at model.py:3 by log_"),
        ("SigmoidBackward0", 2, "the output of sigmoid (module sig, Sigmoid): ", "Replace sigmoid at model.py:3 by "),
    ],
)
def test_what_a_log_likelihood_received(made: str, module: int | None, what: str, remedy: str) -> None:
    """The layer, the function or the module that made it."""
    modules = [ModuleCall(path=path, class_name=name) for path, name in (
        ("last", "Net"), ("act", "Softmax"), ("sig", "Sigmoid"),
    )]  # fmt: skip
    nodes = (
        op("NllLossBackward0", 1, shape=(), frame=1),
        op(made, 2, shape=(8, 10), frame=0, module=module),
        leaf("w", 4),
    )
    (found,) = log_probabilities(graph(*nodes, frames=(MODEL, LOSS), modules=tuple(modules)))

    assert what in found.text
    assert found.remedy.startswith(remedy)
