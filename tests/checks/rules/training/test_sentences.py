"""What the rules about models, parameters and hooks say, of one thing and of several, on facts made by hand."""

from inline_snapshot import snapshot
from msgspec.structs import replace
from rule_sentences import line, said

from gradinspect.checks.facts.training import (
    DroppedResult,
    EvalTraining,
    FrozenByAccident,
    HookPile,
    IneffectiveFlag,
    MovedFrozen,
    NothingLoaded,
    SharedLayer,
    SpoilingHook,
    TrainModeEvaluation,
    TwoInOneMemory,
    UndoneEval,
)
from gradinspect.checks.registry import findings_on


def test_frozen_parameters_that_move() -> None:
    """One, and several."""
    one = MovedFrozen(optimizer="opt", names=("a.weight",), frozen=line(3), step=line(7))

    assert said(one, replace(one, names=("a.weight", "a.bias"))) == snapshot("""\
GI376 frozen=3 step=7 [a.weight]
  a.weight does not require grad since train.py:3, but has a gradient left from before, so opt still
  changes it at train.py:7.
  -> Set .grad of this parameter to None after train.py:3: an optimizer passes over a parameter
  without a gradient.
GI376 frozen=3 step=7 [a.weight, a.bias]
  a.weight and a.bias do not require grad since train.py:3, but have a gradient left from before, so
  opt still changes them at train.py:7.
  -> Set .grad of these parameters to None after train.py:3: an optimizer passes over a parameter
  without a gradient.\
""")


def test_eval_mode_in_training() -> None:
    """Each kind of layer, one and several of them; without the line that switched."""
    one = EvalTraining(model="Net", dropouts=("drop",), switched=line(4), backward=line(8), step=line(9))

    assert said(
        one, replace(one, dropouts=(), batch_norms=("bn",)), replace(one, dropouts=("a", "b"), switched=None)
    ) == snapshot("""\
GI371 eval=4 backward=8 step=9 [drop]
  Net is in eval mode since train.py:4 while an optimizer trains it: drop drops nothing.
  -> Call train() of the Net after the evaluation, before the forward pass of each training step.
GI371 eval=4 backward=8 step=9 [bn]
  Net is in eval mode since train.py:4 while an optimizer trains it: bn uses running statistics and
  does not update them.
  -> Call train() of the Net after the evaluation, before the forward pass of each training step.
GI371 backward=8 step=9 [a, b]
  Net is in eval mode while an optimizer trains it: a and b drop nothing.
  -> Call train() of the Net after the evaluation, before the forward pass of each training step.\
""")  # fmt: skip


def test_hooks_that_pile_up() -> None:
    """Each kind of hook; on each of several tensors."""
    one = HookPile(kind="tensor", names=("w",), count=3, registered=line(2), backward=line(5))
    kinds = [replace(one, kind=kind) for kind in ("accumulated", "forward", "backward")]

    assert said(one, *kinds, replace(one, names=("w", "v"))) == snapshot("""\
GI802 hooked=2 backward=5 [w]
  train.py:2 registers one more hook on w in each iteration, and none is removed. By then there were
  3, and all of them run.
  -> Move train.py:2 before the loop, so that it runs once. Or keep the handle that it returns, and
  call handle.remove() after backward.
GI802 hooked=2 backward=5 [w]
  train.py:2 registers one more hook on w in each iteration, and none is removed. By then there were
  3, and all of them run.
  -> Move train.py:2 before the loop, so that it runs once. Or keep the handle that it returns, and
  call handle.remove() after backward.
GI802 hooked=2 backward=5 [w]
  train.py:2 registers one more forward hook on w in each iteration, and none is removed. By then
  there were 3, and all of them run.
  -> Move train.py:2 before the loop, so that it runs once. Or keep the handle that it returns, and
  call handle.remove() after backward.
GI802 hooked=2 backward=5 [w]
  train.py:2 registers one more backward hook on w in each iteration, and none is removed. By then
  there were 3, and all of them run.
  -> Move train.py:2 before the loop, so that it runs once. Or keep the handle that it returns, and
  call handle.remove() after backward.
GI802 hooked=2 backward=5 [w, v]
  train.py:2 registers one more hook on w and v in each iteration, and none is removed. By then
  there were 3 on each, and all of them run.
  -> Move train.py:2 before the loop, so that it runs once. Or keep the handle that it returns, and
  call handle.remove() after backward.\
""")


def test_hooks_that_spoil_a_gradient() -> None:
    """Of no parameter, one and several; with the sign reversed."""
    one = SpoilingHook(effect="zeroed", names=("w",), registered=line(2), backward=line(5))

    assert said(one, replace(one, names=("w", "v")), replace(one, names=()), replace(one, effect="reversed")) == (
        snapshot("""\
GI803 hooked=2 backward=5 [w]
  The hook registered at train.py:2 returns only zeros for the gradient of w, which does not learn.
  An optimizer holds it, and its momentum and weight decay still apply.
  -> To freeze it, call requires_grad_(False) on it and give it to no optimizer. Otherwise return
  the gradient from the hook, or None to leave it as it is.
GI803 hooked=2 backward=5 [w, v]
  The hook registered at train.py:2 returns only zeros for the gradient of w and v, which do not
  learn. An optimizer holds them, and its momentum and weight decay still apply.
  -> To freeze them, call requires_grad_(False) on them and give them to no optimizer. Otherwise
  return the gradient from the hook, or None to leave it as it is.
GI803 hooked=2 backward=5 []
  The hook registered at train.py:2 returns only zeros, so nothing behind its tensor learns from it.
  -> Return the gradient from the hook, or None to leave it as it is. If no gradient is to pass
  there, use detach() instead of the hook.
GI803 hooked=2 backward=5 [w]
  The hook registered at train.py:2 reverses the sign of the gradient of w, so the optimizer climbs
  instead of descending.
  -> Leave out the minus sign in the hook of train.py:2. If the loss is to grow, negate the loss
  instead.\
""")
    )


def test_flags_that_torch_does_not_read() -> None:
    """Of parameters and of modules, with and without the name that the program gives them."""
    one = IneffectiveFlag(attribute="require_grad", names=("w",), set=line(3), backward=line(6))
    of_module = replace(one, modules=("",), target="net", names=("w", "b"))

    assert said(one, replace(one, target="p"), of_module, replace(of_module, modules=("a", "b"), target="")) == (
        snapshot("""\
GI374 set=3 backward=6 [w]
  train.py:3 sets .require_grad of the parameters, but torch reads .requires_grad. w still requires
  grad, and backward computes the gradient.
  -> Write param.requires_grad = False at train.py:3.
GI374 set=3 backward=6 [w]
  train.py:3 sets .require_grad of the parameters, but torch reads .requires_grad. w still requires
  grad, and backward computes the gradient.
  -> Write p.requires_grad = False at train.py:3.
GI374 set=3 backward=6 [w, b]
  train.py:3 sets .require_grad of the model, a module, but torch reads .requires_grad of parameters
  only. w and b still require grad, and backward computes the gradient.
  -> Call net.requires_grad_(False) at train.py:3: it sets that of each parameter.
GI374 set=3 backward=6 [w, b]
  train.py:3 sets .require_grad of a and b, modules, but torch reads .requires_grad of parameters
  only. w and b still require grad, and backward computes the gradient.
  -> Call module.requires_grad_(False) at train.py:3: it sets that of each parameter.\
""")
    )


def test_a_checkpoint_of_which_nothing_is_loaded() -> None:
    """Nested, with a prefix too many or too few, and with other names."""
    one = NothingLoaded(model="Net", num_names=1234, given="model", wanted="fc.weight", loaded=line(2), is_nested=True)
    names = [("module.fc.weight", "fc.weight"), ("weight", "fc.weight"), ("lin.weight", "fc.weight")]
    others = [replace(one, is_nested=False, given=given, wanted=wanted) for given, wanted in names]

    assert said(one, *others) == snapshot("""\
GI373 loaded=2 []
  The checkpoint has 1,234 names, such as 'model', and Net has none of them: its own are like
  'fc.weight'. strict=False hides that, so the model keeps the weights that it had.
  -> Take the state dict that is under 'model' in the checkpoint before train.py:2.
GI373 loaded=2 []
  The checkpoint has 1,234 names, such as 'module.fc.weight', and Net has none of them: its own are
  like 'fc.weight'. strict=False hides that, so the model keeps the weights that it had.
  -> Remove the prefix 'module.' from each name before train.py:2.
GI373 loaded=2 []
  The checkpoint has 1,234 names, such as 'weight', and Net has none of them: its own are like
  'fc.weight'. strict=False hides that, so the model keeps the weights that it had.
  -> Add the prefix 'fc.' to each name before train.py:2.
GI373 loaded=2 []
  The checkpoint has 1,234 names, such as 'lin.weight', and Net has none of them: its own are like
  'fc.weight'. strict=False hides that, so the model keeps the weights that it had.
  -> Rename the keys of the checkpoint before train.py:2.\
""")


def test_two_parameters_in_one_memory() -> None:
    """Tied by data, in any way it is written, or not readable from the line; of the same and of another shape."""
    lines = [
        "self.out.w.data = self.emb.w.data", "self.out.w = nn.Parameter(self.emb.w.detach())", "a = b", "x.y = f(z)",
        "a = b = c", "tie(a, b)", "for a in b:",
    ]  # fmt: skip
    one = TwoInOneMemory(first="emb.weight", second="head.weight", step=line(9))
    remedies = [
        finding.remedy.partition("is made: ")[2]
        for code in lines
        for finding in findings_on(replace(one, made=line(5, code)))
    ]

    assert said(one, replace(one, is_same_shape=False, made=line(5))) == snapshot("""\
GI375 step=9 [emb.weight, head.weight]
  emb.weight and head.weight are two parameters in one memory since an unknown line. Each has its
  own gradient and its own state in the optimizer, so train.py:9 updates that memory twice, each
  time with a part of the gradient.
  -> Assign the parameter itself at an unknown line, before the optimizer is made: head.weight =
  emb.weight
GI375 shared=5 step=9 [emb.weight, head.weight]
  emb.weight and head.weight are two parameters in one memory since train.py:5. Each has its own
  gradient and its own state in the optimizer, so train.py:9 updates that memory twice, each time
  with a part of the gradient.
  -> Keep one parameter, and use its transpose for the other layer: F.linear(x, emb.weight.t()) in
  place of head.weight.\
""")
    assert remedies == snapshot(
        [
            "self.out.w = self.emb.w",
            "self.out.w = self.emb.w",
            "head.weight = emb.weight",
            "head.weight = emb.weight",
            "head.weight = emb.weight",
            "head.weight = emb.weight",
            "head.weight = emb.weight",
        ]
    )


def test_a_layer_in_several_places() -> None:
    """Of a container or of the model; not where a name says that it is meant."""
    one = SharedLayer(container="blocks", layer="Linear", count=3, made=line(2, "[layer] * 3"), backward=line(5))
    meant = replace(one, made=line(2, "[shared] * 3"))

    assert said(one, replace(one, container=""), replace(one, made=None), meant) == snapshot("""\
GI372 made=2 backward=5 [blocks]
  All 3 places of blocks have the same Linear, so they share one set of parameters.
  -> Make 3 layers at train.py:2: call the constructor of Linear for each, in a comprehension, or
  use copy.deepcopy(). If they are meant to share, call the one layer in a loop.
GI372 made=2 backward=5 []
  All 3 places of the model have the same Linear, so they share one set of parameters.
  -> Make 3 layers at train.py:2: call the constructor of Linear for each, in a comprehension, or
  use copy.deepcopy(). If they are meant to share, call the one layer in a loop.
GI372 backward=5 [blocks]
  All 3 places of blocks have the same Linear, so they share one set of parameters.
  -> Make 3 layers at an unknown line: call the constructor of Linear for each, in a comprehension,
  or use copy.deepcopy(). If they are meant to share, call the one layer in a loop.\
""")


def test_a_result_that_is_thrown_away() -> None:
    """The call, and the assignment that would keep it, as far as the line shows what it is."""
    one = DroppedResult(name="clamp", called=line(3), backward=line(5))
    codes = [
        "x.clamp(0, 1)", "F.relu(self.x)", "torch.clamp(h[0], 1)", "relu(x)", "f(x).clamp(0)", "x.view(2).clamp(0)",
        "y = x.clamp(0)", "x", "if x.clamp(0):",
    ]  # fmt: skip
    remedies = [
        finding.remedy.removeprefix("Assign the result at train.py:3")
        for code in codes
        for finding in findings_on(replace(one, called=line(3, code)))
    ]

    assert said(one, replace(one, called=None)) == snapshot("""\
GI307 called=3 backward=5 []
  clamp() returns a new tensor and leaves the one that it is given as it is. train.py:3 does not use
  what it returns, so the call has no effect, and backward goes through the tensor as it was.
  -> Assign the result at train.py:3 to a variable, and use that from there on.
GI307 backward=5 []
  clamp() returns a new tensor and leaves the one that it is given as it is. The program does not
  use what it returns, so the call has no effect, and backward goes through the tensor as it was.
  -> Assign the result to a variable, and use that from there on.\
""")
    assert remedies == snapshot(
        [
            ": x = x.clamp(0, 1)",
            ": self.x = F.relu(self.x)",
            ": h[0] = torch.clamp(h[0], 1)",
            ": x = relu(x)",
            " to a variable, and use that from there on.",
            " to a variable, and use that from there on.",
            " to a variable, and use that from there on.",
            " to a variable, and use that from there on.",
            " to a variable, and use that from there on.",
        ]
    )


def test_an_evaluation_in_train_mode() -> None:
    """What is active there; the line that calls the layers is left out where it is the same."""
    one = TrainModeEvaluation(function="eq", layers=("BatchNorm", "dropout"), called=line(4), compared=line(9))

    assert said(one, replace(one, layers=("dropout",), called=line(9))) == snapshot("""\
GI394 called=4 evaluated=9 []
  train.py:9 evaluates a model in train mode without a graph: BatchNorm normalizes by the batch and
  changes its running statistics, and dropout drops elements at random. Nothing puts it into eval
  mode.
  -> Call eval() of the model before the evaluation at train.py:9, and train() after it.
GI394 evaluated=9 []
  train.py:9 evaluates a model in train mode without a graph: dropout drops elements at random.
  Nothing puts it into eval mode.
  -> Call eval() of the model before the evaluation at train.py:9, and train() after it.\
""")


def test_a_frozen_part_in_train_mode() -> None:
    """One layer in it, and a part that is two."""
    one = UndoneEval(part="trunk", layers=("1",), put=line(3), undone=line(7))

    assert said(one, replace(one, layers=("1", "4")), replace(one, part="norm", layers=("",))) == snapshot("""\
GI383 eval=3 train=7 [trunk.1]
  train.py:3 puts trunk into eval mode, and train() at train.py:7 puts it back: it is frozen, but
  trunk.1 updates its running statistics in each forward pass.
  -> Call eval() of trunk again after each train() at train.py:7. If its statistics should follow
  the new data, remove eval() at train.py:3.
GI383 eval=3 train=7 [trunk.1, trunk.4]
  train.py:3 puts trunk into eval mode, and train() at train.py:7 puts it back: it is frozen, but
  trunk.1 and trunk.4 update their running statistics in each forward pass.
  -> Call eval() of trunk again after each train() at train.py:7. If its statistics should follow
  the new data, remove eval() at train.py:3.
GI383 eval=3 train=7 [norm]
  train.py:3 puts norm into eval mode, and train() at train.py:7 puts it back: it is frozen, but
  norm updates its running statistics in each forward pass.
  -> Call eval() of norm again after each train() at train.py:7. If its statistics should follow the
  new data, remove eval() at train.py:3.\
""")


def test_what_nobody_froze() -> None:
    """A tensor that never required grad, and what is frozen by default."""
    one = FrozenByAccident(kind="plain", names=("scale",), optimizer="opt", made=line(3), created=line(5), step=line(9))

    assert said(one, replace(one, kind="default", made=None, frozen=line(2), names=("words.weight",))) == snapshot("""\
GI379 made=3 optimizer=5 step=9 [scale]
  opt holds scale, which does not require grad: backward computes no gradient for it, and no step
  has changed it.
  -> If it should learn, call requires_grad_() on what train.py:3 assigns. If not, do not pass it to
  opt at train.py:5.
GI379 frozen=2 optimizer=5 step=9 [words.weight]
  opt has a group that no step changes, of words.weight alone: from_pretrained() at train.py:2
  freezes what it makes, by default.
  -> If that group should learn, pass freeze=False at train.py:2. If not, remove the group at
  train.py:5.\
""")  # fmt: skip


def test_what_is_frozen_by_accident() -> None:
    """A copy, since a phase, from the start, and by a name that no parameter has."""
    one = FrozenByAccident(
        kind="copy", names=("a.weight",), optimizer="opt", frozen=line(3), copied=line(4), created=line(5),
        step=line(9), num_steps=4,
    )  # fmt: skip
    phase = replace(one, kind="phase", copied=None)
    by_name = FrozenByAccident(kind="filter", names=("a.weight",), frozen=line(3), asked="lora")

    assert said(one, replace(one, frozen=None), phase, replace(phase, kind="never"), by_name) == snapshot("""\
GI379 frozen=3 copied=4 optimizer=5 step=9 [a.weight]
  opt holds a.weight, but no step changes them. They do not require grad: they are copies of what
  was frozen at train.py:3.
  -> If they should learn, call requires_grad_(True) on the copy of train.py:4. If not, do not pass
  them to opt at train.py:5.
GI379 copied=4 optimizer=5 step=9 [a.weight]
  opt holds a.weight, but no step changes them. They do not require grad: they are copies of frozen
  ones.
  -> If they should learn, call requires_grad_(True) on the copy of train.py:4. If not, do not pass
  them to opt at train.py:5.
GI379 frozen=3 optimizer=5 step=9 [a.weight]
  a.weight learned until train.py:3, which set requires_grad to False, and nothing has set it again.
  opt has stepped 4 times since, without a gradient.
  -> Set requires_grad to True again before the forward pass that the step of opt at train.py:9
  belongs to. If they are to stay frozen, remove that step.
GI379 frozen=3 optimizer=5 step=9 [a.weight]
  opt has stepped 4 times, each without a gradient: it holds a.weight, which train.py:3 has frozen.
  -> Set requires_grad to True again before the forward pass that the step of opt at train.py:9
  belongs to. If they are to stay frozen, remove that step.
GI379 frozen=3 [a.weight]
  train.py:3 freezes a.weight, and spares what is called 'lora'. No parameter is called so.
  -> Which parameters should learn? Ask for a part of their names at train.py:3, in place of 'lora'.\
""")
