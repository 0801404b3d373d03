"""What goes into a loss: a softmax that the loss applies itself, or something that is no log-probability.

A second log_softmax is not reported: it returns what it is given, so the loss and its gradients stay the same.
"""

from collections.abc import Iterator
from math import e, log

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding, Place, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.losses.loss_graph import (
    NEGATIVE_LOG_LIKELIHOOD,
    is_activation_module,
    made_input,
    maker,
    module_words,
    name_of_module,
    name_of_softmax,
    output_shape,
    readers_of,
)
from gradinspect.graph import Graph, Node, frame_of, nodes_named

_ACTIVATIONS = {"Softmax": "softmax", "Sigmoid": "sigmoid", "LogSoftmax": "log_softmax", "LogSigmoid": "logsigmoid"}
_LOGITS = ("Addmm", "Mm", "Bmm", "Convolution", "Relu")
_TAKES_LOGITS = "BinaryCrossEntropyWithLogitsBackward"
_NEEDS_LOG = (*NEGATIVE_LOG_LIKELIHOOD, "CtcLossBackward")

TWICE = Rule(
    code="GI351",
    title="the loss applies this activation again",
    summary="A softmax or sigmoid comes before a loss that takes logits and applies its own.",
    explanation="cross_entropy takes logits: it is log_softmax and nll_loss in one. "
    "binary_cross_entropy_with_logits is sigmoid and binary_cross_entropy in one. If the model ends with a "
    "softmax or a sigmoid, these losses squash values that lie between 0 and 1 already: a perfect prediction "
    "still has a large loss, the gradients are small, and training is slow or stops early. There is no error. "
    "Categorical(logits=) normalizes what it is given, too. A second log_softmax is not reported, because it changes "
    "neither the loss nor its gradients.",
    change="""\
  import torch
  from torch import nn

- model = nn.Sequential(nn.Linear(8, 4), nn.Softmax(dim=1))  # too much
+ model = nn.Sequential(nn.Linear(8, 4))
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  x, y = torch.randn(16, 8), torch.randint(4, (16,))
  for _ in range(2):
      optimizer.zero_grad()
      loss = nn.functional.cross_entropy(model(x), y)
      loss.backward()
      optimizer.step()
""",
    remedy="Pass the logits to the loss, and apply the softmax or sigmoid only where probabilities are read.",
)
NOT_LOG = Rule(
    code="GI352",
    title="the loss needs log-probabilities",
    summary="nll_loss, ctc_loss or kl_div received probabilities or logits instead of log-probabilities.",
    explanation="nll_loss picks an element of each row and negates it; ctc_loss adds up exponentials. Both expect "
    "the output of log_softmax, and so does kl_div as its first argument. Of probabilities, nll_loss "
    "makes a number between -1 and 0, whose gradient does not grow for wrong predictions. Of logits, it makes a "
    "number that falls forever: the scores of the classes only have to grow. There is no error.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  x, y = torch.randn(16, 8), torch.randint(4, (16,))
- p = torch.softmax(model(x), dim=1)  # probabilities
+ p = torch.log_softmax(model(x), dim=1)
  loss = nn.functional.nll_loss(p, y)
  loss.backward()
""",
    remedy="Pass the output of log_softmax, or pass logits to cross_entropy instead of nll_loss.",
)


def activation_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find losses that take logits and received the output of an activation."""
    graph = starts.graph
    taking_logits = nodes_named(graph, ("LogSoftmaxBackward", _TAKES_LOGITS))
    readers = readers_of(graph) if taking_logits else {}
    for number in taking_logits:
        node = graph.nodes[number]
        is_softmax = node.name.startswith("LogSoftmaxBackward")
        made = made_input(graph, node)
        kind = None if made is None else _activation(made.node)
        if made is None or kind is None:
            continue
        losses = [graph.nodes[reader] for reader in readers.get(number, ())]
        is_nll = any(loss.name.startswith(NEGATIVE_LOG_LIKELIHOOD) for loss in losses)
        if is_softmax and (kind.startswith("log") or (kind == "sigmoid" and not is_nll)):
            continue
        yield _twice(starts, node, made.node, kind, losses[0] if losses else None)


def log_probability_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find losses that take log-probabilities and received something else."""
    graph = starts.graph
    for number in nodes_named(graph, _NEEDS_LOG):
        node = graph.nodes[number]
        made = made_input(graph, node)
        if made is None:
            continue
        kind = _activation(made.node)
        if kind in ("softmax", "sigmoid"):
            yield _not_log(starts, node, made.node, kind)
        elif made.node.name.startswith(_LOGITS) or _adds_bias(graph, made.node):
            yield _not_log(starts, node, made.node, None)


def distribution_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find distributions that normalize logits, and received the output of a softmax."""
    graph = starts.graph
    for number in nodes_named(graph, ("LogsumexpBackward",)):
        node = graph.nodes[number]
        made, line = made_input(graph, node), frame_of(graph, node)
        if made is None or _activation(made.node) != "softmax":
            continue
        remedy = f"Pass what goes into softmax at {line_of(frame_of(graph, made.node))} to {line_of(line)}."
        if line is not None and "logits=" in line.code:
            remedy = f"At {line_of(line)}, write probs= instead of logits=."
        yield TWICE.finding(
            text=f"{line_of(line)} normalizes logits, but is given the output of softmax"
            f"{module_words(graph, made.node)} already. Those values lie between 0 and 1, so no class is more than "
            f"{e:.2f} times as likely as another.",
            places=_places(starts, made.node, node),
            remedy=remedy,
        )


TWICE_JUDGE = Judge(BackwardStarts, activation_findings)
DISTRIBUTION_JUDGE = Judge(BackwardStarts, distribution_findings)
NOT_LOG_JUDGE = Judge(BackwardStarts, log_probability_findings)


def _adds_bias(graph: Graph, node: Node) -> bool:
    """Return whether a node adds a leaf to a product of matrices: a Linear of what is not contiguous."""
    if not node.name.startswith("AddBackward") or len(node.next_edges) != 2:
        return False
    product, bias = node.next_edges
    made = None if product is None else maker(graph, product.next_node)
    is_leaf = bias is not None and graph.nodes[bias.next_node].leaf is not None
    return is_leaf and made is not None and made.node.name.startswith(("MmBackward", "BmmBackward"))


def _activation(node: Node) -> str | None:
    return _ACTIVATIONS.get(node.name.partition("Backward")[0])


def _twice(starts: BackwardStarts, loss: Node, made: Node, kind: str, reader: Node | None) -> Finding:
    graph = starts.graph
    name = module_words(graph, made)
    text = f"{_own_activation(graph, loss, reader)}, but its input is the output of {kind}{name} already. "
    remedy = f"Pass what goes into {kind} at {line_of(frame_of(graph, made))} to the loss"
    if is_activation_module(graph, made):
        remedy = f"Remove that {name_of_module(graph, made)} from the model"
    return TWICE.finding(
        text=text + _bound(loss, kind),
        places=_places(starts, made, loss),
        remedy=f"{remedy}; apply {kind} only where probabilities are read.",
    )


def _own_activation(graph: Graph, loss: Node, reader: Node | None) -> str:
    if loss.name.startswith(_TAKES_LOGITS):
        return "binary_cross_entropy_with_logits applies sigmoid itself"
    name = name_of_softmax(graph, loss, reader)
    return f"{name} {'takes logits' if name == 'log_softmax' else 'applies log_softmax itself'}"


def _bound(loss: Node, kind: str) -> str:
    """Say what the loss of a perfect prediction is."""
    if kind.startswith("log"):
        return "Those values are never above 0, so the loss takes every probability for one below 0.5."
    if loss.name.startswith(_TAKES_LOGITS):
        return f"Those values lie between 0 and 1, so a target of 0 costs at least {log(2):.3f} for each element."
    shape = output_shape(loss)
    num_classes = shape[1 if len(shape) > 1 else 0] if shape else 0
    least = ""
    if isinstance(num_classes, int) and num_classes > 1:
        least = f": with {num_classes} classes it is never below {log(e + num_classes - 1) - 1:.3f}"
    return f"Those values lie between 0 and 1, so the loss cannot come near 0{least}."


def _not_log(starts: BackwardStarts, loss: Node, made: Node, kind: str | None) -> Finding:
    graph = starts.graph
    name = "ctc_loss" if loss.name.startswith("Ctc") else "nll_loss"
    where = line_of(frame_of(graph, made))
    if kind is None:
        what = "a layer" if made.module is not None else made.name.partition("Backward")[0].lower()
        text = f"{name} received the output of {what}{module_words(graph, made)}, which is not made of "
        text += "log-probabilities: the loss falls without end as the scores grow."
        remedy = f"Apply log_softmax{'(-1)' if name == 'ctc_loss' else ''} to the output of {where}"
    else:
        text = f"{name} received the output of {kind}{module_words(graph, made)}: probabilities, not their logarithms. "
        text += "Its gradient does not grow for wrong predictions."
        is_module = is_activation_module(graph, made) and kind == "softmax"
        remedy = "Replace that Softmax by nn.LogSoftmax" if is_module else f"Replace {kind} at {where} by log_softmax"
    other = "." if name == "ctc_loss" else ", or pass logits to cross_entropy instead of nll_loss."
    return NOT_LOG.finding(text=text, places=_places(starts, made, loss), remedy=remedy + other)


def _places(starts: BackwardStarts, made: Node, loss: Node) -> list[Place]:
    before, after = frame_of(starts.graph, made), frame_of(starts.graph, loss)
    is_module = is_activation_module(starts.graph, made)
    return [
        *place_of("layer", starts.made_at(name_of_module(starts.graph, made)) if is_module else None),
        *place_of("applied", before if before != after else None),
        *place_of("loss", after),
        *place_of("backward", starts.backward),
    ]
