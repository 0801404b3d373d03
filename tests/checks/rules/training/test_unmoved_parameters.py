"""What is said of parameters that have a gradient and do not change, on facts made by hand."""

from inline_snapshot import snapshot
from msgspec.structs import replace
from rule_sentences import line, said

from gradinspect.checks.facts.training import UnmovedParameters
from gradinspect.checks.rules.training.unmoved_parameters import unmoved_findings

FACT = UnmovedParameters(
    kind="undone", names=("body.weight", "body.bias"), num_steps=11, optimizer="opt", method="Adam", dtype="bfloat16",
    gradient=0.5, value=2.0, rate=1e-5, created=line(1), backward=line(2), step=line(3),
)  # fmt: skip


def test_a_step_that_is_undone() -> None:
    """With and without the line that writes."""
    assert said(replace(FACT, written=line(4)), replace(FACT, names=("w",))) == snapshot("""\
GI380 optimizer=1 backward=2 step=3 written=4 [body.weight, body.bias]
  body.weight and body.bias have the same values before each backward call, although opt has stepped
  11 times. The step at train.py:3 changes them, and train.py:4 sets them back before train.py:2.
  -> Do that once, before the loop, unless each iteration is meant to begin with the same values.
GI380 optimizer=1 backward=2 step=3 [w]
  w has the same values before each backward call, although opt has stepped 11 times. The step at
  train.py:3 changes it, and something sets it back before train.py:2.
  -> Do that once, before the loop, unless each iteration is meant to begin with the same values.\
""")


def test_a_step_that_changes_nothing() -> None:
    """By its learning rate in two dtypes, or for a reason that its class knows."""
    lost, idle = (replace(FACT, kind=kind) for kind in ("lost", "idle"))

    assert said(lost, replace(lost, dtype="float32"), idle, replace(idle, is_own=True)) == snapshot("""\
GI380 optimizer=1 backward=2 step=3 [body.weight, body.bias]
  body.weight and body.bias have the same values before each backward call, although opt has stepped
  11 times. Their learning rate is 1.0e-05, their gradients are up to 5.0e-01, and their values up
  to 2.0e+00: the step is less than bfloat16 can add to them.
  -> Keep the parameters in float32, and let torch.autocast compute in bfloat16, or in float16 with
  a GradScaler.
GI380 optimizer=1 backward=2 step=3 [body.weight, body.bias]
  body.weight and body.bias have the same values before each backward call, although opt has stepped
  11 times. Their learning rate is 1.0e-05, their gradients are up to 5.0e-01, and their values up
  to 2.0e+00: the step is less than float32 can add to them.
  -> Choose a larger learning rate for them at train.py:1.
GI380 optimizer=1 backward=2 step=3 [body.weight, body.bias]
  body.weight and body.bias have the same values before each backward call, although opt has stepped
  11 times. The gradient is up to 5.0e-01, and Adam.step() does not change them.
  -> Which option of Adam at train.py:1 makes its step so small, such as eps?
GI380 optimizer=1 backward=2 step=3 [body.weight, body.bias]
  body.weight and body.bias have the same values before each backward call, although opt has stepped
  11 times. The gradient is up to 5.0e-01, and Adam.step() does not change them.
  -> Change the parameters themselves in step() of Adam, in place and under torch.no_grad():
  p.add_(update), where p = p + update only assigns to a variable.\
""")


def test_gradients_that_are_zero() -> None:
    """From backward on, or only when the step comes."""
    assert said(*(replace(FACT, kind=kind) for kind in ("zero", "cleared"))) == snapshot("""\
GI380 optimizer=1 backward=2 step=3 [body.weight, body.bias]
  body.weight and body.bias have the same values before each backward call, although opt has stepped
  11 times. Every gradient that train.py:2 leaves is exactly zero: what the loss is made of does not
  depend on them, or its parts cancel.
  -> Ask for the gradient of each term of the loss by itself, with torch.autograd.grad(term,
  parameters, retain_graph=True). Terms that are computed twice from the same parameters cancel:
  detach the one that is to stay as it was.
GI380 optimizer=1 backward=2 step=3 [body.weight, body.bias]
  body.weight and body.bias have the same values before each backward call, although opt has stepped
  11 times. Backward leaves a gradient of up to 5.0e-01, but it is zero when train.py:3 uses it.
  -> Which line between train.py:2 and train.py:3 makes them zero?\
""")


def test_values_that_are_assigned_to_a_variable() -> None:
    """There is no optimizer."""
    fact = UnmovedParameters(kind="assigned", names=("w",), num_steps=4, backward=line(2), written=line(3))

    assert said(fact) == snapshot("""\
GI380 backward=2 assigned=3 [w]
  w has the same values before each backward call. train.py:3 makes new tensors of parameters and
  gradients, assigns them to a variable, and nothing reads them: the parameters stay what they are.
  -> At train.py:3, write the update into the parameter, under torch.no_grad(): p -= lr * p.grad,
  not p = p - lr * p.grad.\
""")


def test_the_share_of_what_is_lost_is_told() -> None:
    """Where some elements change."""
    fact = UnmovedParameters(
        kind="rounded", names=("w",), num_steps=3, optimizer="opt", dtype="bfloat16", num_lost=95, num_elements=100,
        rate=1e-5,
    )  # fmt: skip
    (finding,) = unmoved_findings(fact)

    assert finding.text.startswith(
        "In 3 steps of opt, 95% of the elements of w that had a gradient have stayed the same:"
    )
    assert (finding.remedy or "").startswith("Keep the parameters in float32")
    assert finding.subjects == ("w",)
