"""What to do about a detached parameter, chosen by the line that detached it."""

from collections.abc import Mapping
from textwrap import fill

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace
from rule_sentences import line

from gradinspect.checks.facts.value_flow import DetachCause
from gradinspect.checks.facts.values import MissingGradient, NoticedAt, SameCause
from gradinspect.checks.rules.flow.detached_parameters import detached_words
from gradinspect.checks.rules.flow.remade_tensors import way_to_array

LOSS = NoticedAt(kind="backward", frame=line(20))


def words(cause: DetachCause, code: str | None, op: str = "item", **fields: object) -> tuple[str, str]:
    """Return what is said of a parameter that a line detached."""
    given = {
        "noticed": NoticedAt(kind="step", frame=line(21)), "op": op, "cut": None if code is None else line(5, code),
        "backward": line(20, "loss.backward()"), **fields,
    }  # fmt: skip
    return detached_words(SameCause((MissingGradient(name="w", kind="cut", cause=cause, **given),)))  # type: ignore[arg-type]


def remedies(*rows: tuple[DetachCause, str | None, str, Mapping[str, object]]) -> str:
    """Return only what to do."""
    every = (words(cause, code, op, **fields)[1] for cause, code, op, fields in rows)
    return "\n".join(fill(one, 100, subsequent_indent="  ") for one in every)


def test_a_number_that_python_computes_with() -> None:
    """The method is removed, and the tensor that is made of the number later is named by what it was made of."""
    used = {"used": line(9, "loss = torch.tensor(values)")}
    one, listed = {"used": line(9, "x = torch.tensor(v)")}, {"used": line(9, "x = torch.tensor([v, u])")}

    assert remedies(
        ("python", "values.append(a.item())", "item", used),
        ("python", "v = a.item()", "item", one),
        ("python", "v = a.numpy()", "numpy", one),
        ("python", "v = a.tolist()", "tolist", listed),
        ("python", "v = a.item()", "item", {}),
        ("python", "v = a.item()", "item", {"used": line(5, "v = a.item()")}),
        ("python", "v = a.numpy()", "numpy", {}),
        ("python", "v = a.numpy()", "numpy", {"used": line(9, "x = v * 2")}),
        ("python", None, "numpy", {}),
    ) == snapshot("""\
Remove .item() at train.py:5, use torch functions only from there on, and torch.stack(values)
  instead of torch.tensor() at train.py:9.
Remove .item() at train.py:5, use torch functions only from there on, and v itself instead of
  torch.tensor() at train.py:9.
Remove .numpy() at train.py:5, use torch functions only from there on, and v itself instead of
  torch.tensor() at train.py:9.
Remove .tolist() at train.py:5, use torch functions only from there on, and torch.stack([v, u])
  instead of torch.tensor() at train.py:9.
Remove .item() at train.py:5 and go on with the tensor, by torch functions only.
Remove .item() at train.py:5 and go on with the tensor, by torch functions only.
Remove .numpy() at train.py:5, use torch functions only from there on, and the tensor itself where
  the array is made one.
Remove .numpy() at train.py:5, use torch functions only from there on, and the tensor itself where
  the array is made one.
Keep the tensor at an unknown line, and use torch functions only from there on.\
""")


def test_a_list_that_is_copied_on_the_line_itself() -> None:
    """It is stacked; a single tensor that is copied is used as it is."""
    several = {"num_read": 2}

    assert remedies(
        ("copy", "x = torch.tensor([a, b])", "tensor", several),
        ("copy", "x = torch.tensor([[a, b]])", "tensor", several),
        ("copy", "x = torch.tensor([{}, b])", "tensor", several),
        ("copy", "x = torch.tensor([a])", "tensor", {}),
        ("python", "x = torch.tensor([a.item()])", "item", {}),
        ("detach", "x = torch.tensor([a, b]).detach()", "detach", several),
        ("unknown", "x = torch.tensor([a, b]).frob()", "frob", several),
    ) == snapshot("""\
Use torch.stack([a, b]) at train.py:5, or torch.cat() if each has a dimension of its own.
Use torch.stack(), which takes a list of tensors: each number as a tensor too, such as
  torch.tensor(0.0), and each inner list by a torch.stack() of its own, at train.py:5.
Use torch.stack([{}, b]) at train.py:5, or torch.cat() if each has a dimension of its own.
At train.py:5, use the tensor itself, or torch.stack() on a list of tensors.
Use torch.stack([a]) at train.py:5, or torch.cat() if each has a dimension of its own.
Remove detach() at train.py:5 if this path should train.
At train.py:5, use a differentiable function instead of frob.\
""")
    assert words("python", "x = torch.as_tensor([a.item()])")[0] == (
        "No gradient reaches w. torch.as_tensor() copies values into a new tensor without a graph."
    )


def test_integers() -> None:
    """By the operator, and by whether they are the loss itself, or are hidden from backward."""
    forced = {"forced": line(9)}

    assert remedies(
        ("integer", "hit = (p > 0.5) & q", "gt", forced),
        ("integer", "hit = {p: (", "gt", forced),
        ("integer", "hit = {1: p > 0.5}", "gt", {}),
        ("integer", "hit = above(p)", "gt_", {}),
        ("integer", "hit = (p > 0.5)", "gt", {"noticed": LOSS}),
        ("integer", "i = p.argmax()", "argmax", {}),
        ("integer", "i = p.argmax()", "argmax", {"noticed": LOSS}),
        ("integer", "i = p.argmax()", "argmax", forced),
        ("integer", "i = p.multinomial(1)", "multinomial", {"noticed": LOSS}),
        ("integer", "i = p.frob()", "frob", {}),
        ("integer", None, "frob", {}),
    ) == snapshot("""\
At train.py:5, use p itself instead of p > 0.5, and keep floating-point numbers from there on: a * b
  for a & b, a + b - a * b for a | b. Remove requires_grad at train.py:9: it only hides that the
  loss has no graph.
At train.py:5, use the compared tensor itself instead of the comparison, and keep floating-point
  numbers from there on: a * b for a & b, a + b - a * b for a | b. Remove requires_grad at
  train.py:9: it only hides that the loss has no graph.
At train.py:5, use a straight-through estimator: p + ((p > 0.5).float() - p).detach().
At train.py:5, use a straight-through estimator: soft + (hard - soft).detach().
Compute the loss from the scores behind gt at train.py:5, before any softmax or sigmoid:
  cross_entropy(scores, target.long()) where each row has a score for each class,
  binary_cross_entropy_with_logits(scores, target) where there is one score for each target.
At train.py:5, use softmax() as weights, or torch.nn.functional.gumbel_softmax(scores, hard=True),
  instead of argmax.
Compute the loss from the scores behind argmax at train.py:5, before any softmax or sigmoid:
  cross_entropy(scores, target.long()) where each row has a score for each class,
  binary_cross_entropy_with_logits(scores, target) where there is one score for each target.
Compute the loss from the scores behind argmax at train.py:5, before any softmax or sigmoid:
  cross_entropy(scores, target.long()) where each row has a score for each class,
  binary_cross_entropy_with_logits(scores, target) where there is one score for each target. Delete
  train.py:9: it only hides that there is no graph.
At train.py:5, use log_prob() of the sample in the loss, or gumbel_softmax(), instead of
  multinomial.
At train.py:5, use a differentiable function instead of frob.
At an unknown line, use a differentiable function instead of frob.\
""")


def test_a_value_that_another_loss_needs_without_its_graph() -> None:
    """By how it was detached; a sample is advised on for itself."""
    other, off = {"other": line(12, "loss_d.backward()")}, {"off": line(4, "with torch.no_grad():")}
    sample = {"off": line(4, "z = p.sample()")}

    assert remedies(
        ("detach", "x = a.detach()", "detach", other),
        ("data", "x = a.data", "data", other),
        ("grad_off", "x = f(a)", "f", other | off),
        ("grad_off", "z = p.sample()", "normal", other | sample),
        ("detach", "x = a.detach()", "detach", {"other": line(12, "{x}.run()"), "backward": None}),
    ) == snapshot("""\
If only loss.backward() at train.py:20 should train them, keep detach() at train.py:5 for
  loss_d.backward() at train.py:12, and compute the same again with its graph for the other loss.
If only loss.backward() at train.py:20 should train them, keep .data at train.py:5 for
  loss_d.backward() at train.py:12, and compute the same again with its graph for the other loss.
If only loss.backward() at train.py:20 should train them, keep gradients disabled at train.py:4 for
  loss_d.backward() at train.py:12, and compute the same again with its graph for the other loss.
Use rsample() at train.py:4 if the distribution has it, or log_prob() of the sample in the loss.
If only backward should train them, keep detach() at train.py:5 for backward at train.py:12, and
  compute the same again with its graph for the other loss.\
""")


def test_disabled_gradients() -> None:
    """A decorator is removed, a scope is left, sample() has a form with a gradient."""
    assert remedies(
        ("grad_off", "x = f(a)", "f", {"off": line(3, "@torch.no_grad()")}),
        ("grad_off", "x = f(a)", "f", {"off": line(3, "with torch.no_grad():")}),
        ("grad_off", "z = p.sample()", "normal", {"off": line(5, "z = p.sample()")}),
        ("grad_off", "x = f(a)", "f", {}),
        ("checkpoint", "x = f(a)", "f", {"off": line(3, "z = p.sample()")}),
    ) == snapshot("""\
Remove the decorator at train.py:3 if this path should train.
Enable gradients at train.py:3 if this path should train.
Use rsample() at train.py:5 if the distribution has it, or log_prob() of the sample in the loss.
Enable gradients at train.py:5 if this path should train.
Use use_reentrant=False at train.py:3.\
""")


@pytest.mark.parametrize(
    ("length", "path"),
    [
        (0, ""),
        (1, ""),
        (2, " The path of w: op0, op1."),
        (6, " The path of w: op0, op1, op2, op3, op4, op5."),
        (7, " The path of w: op0, op1, op2, 1 more, op4, op5, op6."),
    ],
)
def test_the_path_is_named_if_it_has_steps(length: int, path: str) -> None:
    """At most six of them."""
    why, _ = words("detach", "x = a.detach()", "detach", path=tuple(f"op{place}" for place in range(length)))

    assert why == f"No gradient reaches w. detach() stops gradient flow.{path}"


def test_a_line_that_may_mean_its_detach_is_asked_about() -> None:
    """A straight-through estimator in either order, one of two detached sides, and a plain detach()."""
    assert remedies(
        ("detach", "out = z + (q - z).detach()", "detach", {}),
        ("detach", "out = (self.q(x) - x).detach() + x", "detach", {}),
        ("detach", "out = z.detach() + (q - z).detach()", "detach", {}),
        ("detach", "loss = f(q.detach(), z.detach()) + f(z, q.detach())", "detach", {}),
        ("detach", "h = z.detach()", "detach", {}),
    ) == snapshot("""\
Keep detach() there: z + (q - z).detach() is a straight-through estimator, and passes the gradient
  to z alone. What should train w? Usually a term of its own, such as (q -
  z.detach()).square().mean().
Keep detach() there: x + (self.q(x) - x).detach() is a straight-through estimator, and passes the
  gradient to x alone. What should train w? Usually a term of its own, such as (self.q(x) -
  x.detach()).square().mean().
Write a straight-through estimator, z + (q - z).detach(), whose first z keeps its graph.
Which of the 3 calls of detach() on that line are meant? Each keeps the gradient from what it is
  called on. Remove it from the side that should learn, into which w goes, and keep it on the other.
Remove detach() at train.py:5 if this path should train.\
""")


def test_a_tensor_of_another_function_is_not_named() -> None:
    """Its name means something else there."""
    elsewhere = replace(line(9, "return torch.tensor(label)"), function="batch")

    assert remedies(("python", "signal = wave.detach().numpy()", "numpy", {"used": elsewhere})) == (
        "Remove .detach().numpy() at train.py:5, use torch functions only from there on, and the tensor\n"
        "  itself where the array is made one."
    )


def test_the_way_to_an_array_is_named_as_it_is_written() -> None:
    """From the first call that leaves the graph; a line that makes no array has none."""
    assert way_to_array("z = net(x)[0].data.cpu().numpy() * 2") == ".data.cpu().numpy()"
    assert way_to_array("z = x.detach().tolist()") == way_to_array("z = x.cpu(") == ""


def test_arithmetic_of_numbers_means_the_same_of_tensors() -> None:
    """Any other call may not."""
    used = {"used": line(9, "loss = torch.tensor(total / len(rows), requires_grad=True)")}
    other = {"used": line(9, "loss = torch.tensor(math.sqrt(total) / 2)")}

    first, second = (remedies(("python", "total += a.item()", "item", one)) for one in (used, other))
    assert "total / len(rows) itself instead of torch.tensor() at train.py:9." in " ".join(first.split())
    assert second == "Remove .item() at train.py:5 and go on with the tensor, by torch functions only."


@pytest.mark.parametrize(
    ("forced", "advice"),
    [
        ("loss.requires_grad_()", "Delete train.py:9:"),
        ("self.x[0].requires_grad = True  # needed", "Delete train.py:9:"),
        ("loss = Variable(loss, requires_grad=True)", "Delete train.py:9:"),
        ("w = [(p.data - g).requires_grad_() for p in ps]", "Leave out .data and .requires_grad_() at train.py:9:"),
    ],
)
def test_a_line_that_makes_a_leaf_may_compute_something_too(forced: str, advice: str) -> None:
    """Only a line that does nothing else is deleted."""
    told = words("gradient", "g = torch.autograd.grad(loss, ps)", "grad", forced=line(9, forced))[1]

    assert told.endswith(f"{advice} it only hides that there is no graph.")
