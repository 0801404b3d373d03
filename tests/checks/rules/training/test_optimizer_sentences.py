"""What the rules about optimizers and gradients say, on facts made by hand."""

from inline_snapshot import snapshot
from msgspec.structs import replace
from rule_sentences import line, said

from gradinspect.checks.facts.training import GradientMisuse, OptimizerMisuse, UnheldParameters
from gradinspect.checks.rules.training.vanishing_rates import vanishing_findings
from gradinspect.graph import Frame


def test_learning_rates_that_fall_or_are_zero() -> None:
    """After how many steps nothing is left; with and without a scheduler."""
    one = OptimizerMisuse(kind="falls", optimizer="opt", created=line(1), scheduled=line(4), step=line(3), ratio=0.1)
    zero = replace(one, kind="zero")

    assert said(one, replace(one, ratio=0.95), zero, replace(zero, scheduled=None)) == snapshot("""\
GI381 step=3 scheduler=4 []
  train.py:4 multiplies the learning rate of opt by 0.1 each time. After 6 steps it is a millionth
  of what it was, or less.
  -> Call the scheduler's step() once per epoch: move train.py:4 out of the loop over the batches.
  Or choose a factor near 1.
GI381 step=3 scheduler=4 []
  train.py:4 multiplies the learning rate of opt by 0.95 each time. After 270 steps it is a
  millionth of what it was, or less.
  -> Call the scheduler's step() once per epoch: move train.py:4 out of the loop over the batches.
  Or choose a factor near 1.
GI368 optimizer=1 scheduler=4 step=3 []
  Every parameter group of opt has the learning rate 0, and the scheduler that steps at train.py:4
  has kept it there. Its steps change nothing.
  -> Let the function of the scheduler at train.py:4 return a factor above 0: e / 30, not e // 30.
GI368 optimizer=1 step=3 []
  Every parameter group of opt has the learning rate 0, and no scheduler changes it. Its steps
  change nothing.
  -> Pass a positive learning rate at train.py:1.\
""")


def test_optimizers_that_step_at_the_wrong_time() -> None:
    """Never, made anew, and after their scheduler."""
    one = OptimizerMisuse(
        kind="never", optimizer="opt", created=line(1), backward=line(2), cleared=line(3), step=line(5)
    )

    facts = [replace(one, kind=kind, scheduled=line(4)) for kind in ("never", "anew", "scheduled")]

    assert said(*facts) == snapshot("""\
GI365 optimizer=1 backward=2 scheduler=4 cleared=3 []
  backward at train.py:2 computes gradients of the parameters of opt, and train.py:3 clears them.
  opt has never stepped, so none of them changes. The scheduler steps at train.py:4, which only sets
  the learning rate.
  -> Call opt.step() after train.py:2, and before the scheduler's step() at train.py:4.
GI366 optimizer=1 step=5 []
  train.py:1 makes another opt of the same parameters after each step, so the state that it keeps
  for each parameter is lost.
  -> Move train.py:1 out of the loop, so that it runs once.
GI367 scheduler=4 step=5 []
  The scheduler has changed the learning rate at train.py:4 before the first step of opt, so the
  first learning rate of the schedule is skipped.
  -> Call the scheduler's step() after opt.step() at train.py:5, and as often as now.\
""")


def test_parameters_that_no_optimizer_holds() -> None:
    """Each reason, and a module as well as a parameter that is made again."""
    hidden = ("container", "attribute", "buffer", "computed")
    other = ("replaced", "later", "unfrozen", "model", "instead")
    one = UnheldParameters(kind="model", where="Net", names=("w", "b"), optimizer="opt", created=line(1), made=line(2),
                           backward=line(3))  # fmt: skip

    assert said(*(replace(one, kind=kind) for kind in hidden)) == snapshot("""\
GI361 optimizer=1 made=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: Net is a plain list or dict, so
  model.parameters() does not contain what is in it.
  -> Make Net an nn.ModuleList or nn.ModuleDict (nn.ParameterList for plain tensors).
GI361 optimizer=1 made=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: Net is a plain tensor, so
  model.parameters() does not contain it.
  -> Make Net an nn.Parameter.
GI361 optimizer=1 made=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: Net is a buffer, so model.parameters() does
  not contain it.
  -> Make Net an nn.Parameter instead of registering it as a buffer.
GI361 optimizer=1 made=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: Net was computed from an nn.Parameter, so
  it is a plain tensor, and model.parameters() contains neither.
  -> Compute the value first, and make an nn.Parameter of the result, at train.py:2:
  nn.Parameter(value * 0.02), not nn.Parameter(value) * 0.02.\
""")
    assert said(*(replace(one, kind=kind) for kind in other)) == snapshot("""\
GI361 optimizer=1 replaced=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: Net was replaced at train.py:2, after opt
  was made.
  -> Make opt after train.py:2, or pass the new parameters to its add_param_group().
GI361 optimizer=1 added=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: Net was added to the model at train.py:2,
  after opt was made.
  -> Make opt after train.py:2, or pass the new parameters to its add_param_group().
GI361 optimizer=1 unfrozen=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: they were frozen when opt was made, and
  train.py:2 unfreezes them later.
  -> After train.py:2, pass the parameters to add_param_group() of opt. Or pass all parameters at
  train.py:1: those without a gradient are left alone.
GI361 optimizer=1 made=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: opt was made without the parameters of this
  Net.
  -> Pass them as well at train.py:1. If the Net is to stay as it is, call requires_grad_(False) on
  it.
GI361 optimizer=1 made=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: backward reaches nothing that opt holds. It
  was made of another model, or before this Net was copied.
  -> Make opt at train.py:1 of the parameters of the model that is trained.\
""")
    assert said(replace(one, kind="remade", names=("w",)), replace(one, kind="remade", where="w")) == snapshot("""\
GI361 optimizer=1 replaced=2 backward=3 [w]
  Backward reaches w, but no optimizer holds it: train.py:2 assigns new ones each time it runs, and
  opt keeps the old ones.
  -> Make Net once, in __init__, instead of at train.py:2.
GI361 optimizer=1 replaced=2 backward=3 [w, b]
  Backward reaches w and b, but no optimizer holds them: train.py:2 assigns new ones each time it
  runs, and opt keeps the old ones.
  -> Assign no new nn.Parameter at train.py:2: write the values into the one that opt holds, under
  torch.no_grad(), by its copy_().\
""")


def test_gradients_that_were_cleared_in_part() -> None:
    """The line that clears the others."""
    one = GradientMisuse(kind="added", optimizer="opt", names=("w",), backward=line(5), step=line(7), cleared=line(6))

    assert said(one) == snapshot("""\
GI362 step=7 cleared=6 backward=5 [w]
  train.py:6 clears a part of what opt holds, but not w. Their gradients are still there from the
  step at train.py:7, and backward at train.py:5 adds to them. The next step applies them again.
  -> Call opt.zero_grad() at train.py:6, which clears all of it.\
""")


def test_gradients_that_were_cleared_clipped_or_added_to_at_the_wrong_moment() -> None:
    """All words of each kind; a step that stands before backward in one function is what is to be moved."""
    cleared, clipped = ("added", "closure", "cleared", "partial"), ("early", "late", "scaled", "unscaled", "other")
    one = GradientMisuse(kind="added", optimizer="opt", names=("w",), backward=line(5), step=line(7), cleared=line(6),
                         clipped=line(4), unscaled=line(8), other=line(2))  # fmt: skip
    before = replace(one, kind="cleared", step=line(3), cleared=None)
    elsewhere = replace(before, step=Frame(file="train.py", line=3, function="step"))

    assert said(*(replace(one, kind=kind) for kind in cleared)) == snapshot("""\
GI362 step=7 backward=5 [w]
  opt has applied the gradients at train.py:7, nothing has cleared them since, and backward at
  train.py:5 adds to them. The next step applies them again.
  -> Call opt.zero_grad() right before train.py:5: backward at train.py:2 leaves gradients there
  too.
GI362 backward=5 step=7 [w]
  The step at train.py:7 calls its closure several times, and backward at train.py:5 adds to the
  gradients of the calls before: nothing clears them in between.
  -> Call opt.zero_grad() inside the closure, before train.py:5.
GI363 backward=5 cleared=6 step=7 [w]
  backward at train.py:5 computes the gradients, train.py:6 clears them, and opt steps without any.
  -> Clear the gradients after train.py:7, or before train.py:5.
GI363 cleared=6 backward=5 step=7 [w]
  Backward runs several times for each step, and train.py:6 clears all that the call at train.py:5
  has computed before it is used: opt applies only what later calls compute.
  -> Clear the gradients only where train.py:7 has just run, not for each backward.\
""")
    assert said(*(replace(one, kind=kind) for kind in clipped)) == snapshot("""\
GI364 clipped=4 backward=5 step=7 []
  train.py:4 clips before backward computes the gradients at train.py:5, so opt applies gradients
  that were not clipped.
  -> Clip between backward at train.py:5 and the step at train.py:7.
GI364 backward=5 step=7 clipped=4 []
  train.py:4 clips when opt has applied the gradients already.
  -> Clip between backward at train.py:5 and the step at train.py:7.
GI364 backward=5 clipped=4 unscaled=8 []
  train.py:4 clips gradients that a GradScaler has scaled; they are unscaled only at train.py:8.
  Compared with them, the limit is far too small.
  -> Call unscale_(optimizer) of the GradScaler before train.py:4.
GI369 backward=5 step=7 [w]
  A GradScaler has multiplied the loss of backward at train.py:5, and train.py:7 applies the
  gradients as they are: nothing divides them by the scale.
  -> Replace the step at train.py:7 by step(opt) of the GradScaler.
GI370 other=2 backward=5 step=7 [w]
  backward at train.py:2 is for another optimizer, but leaves gradients in what opt holds too.
  Nothing clears them before backward at train.py:5 adds to them, and opt applies both.
  -> Call opt.zero_grad() right before train.py:5.\
""")
    assert said(before, elsewhere, replace(before, step=line(5))) == snapshot("""\
GI363 backward=5 step=3 [w]
  backward at train.py:5 computes the gradients, something clears them, and opt steps without any.
  -> Move the step at train.py:3 behind train.py:5.
GI363 backward=5 step=3 [w]
  backward at train.py:5 computes the gradients, something clears them, and opt steps without any.
  -> Clear the gradients after train.py:3, or before train.py:5.
GI363 backward=5 step=5 [w]
  backward at train.py:5 computes the gradients, something clears them, and opt steps without any.
  -> Clear the gradients after train.py:5, or before train.py:5.\
""")


def test_a_rate_that_is_next_to_nothing_has_a_line() -> None:
    """And it is said after how many steps it was."""
    fact = OptimizerMisuse(
        kind="sunken", optimizer="opt", scheduled=line(4), step=line(3), ratio=1e-8, num_steps=40, sunken_after=20
    )
    (found,) = vanishing_findings(fact)

    assert found.code == "GI381"
    assert "to a ten-thousandth of its largest value after 20 steps, and after 40 steps it is 1e-08 times" in found.text
    assert found.remedy.startswith("If the schedule counts epochs, move ")
    (less,) = vanishing_findings(replace(fact, sunken_to=1.01e-3))
    assert "to a thousandth of its largest value" in less.text
