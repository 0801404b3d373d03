"""Models that are trained in eval mode, and frozen parts that are not in it any more."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import DropoutInEval, EvalTraining, TrainModeEvaluation, UndoneEval
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

EVAL = Rule(
    code="GI371",
    title="the model is trained in eval mode",
    summary="An optimizer trains a model whose dropout or BatchNorm is in eval mode.",
    explanation="eval() stays in effect until train() is called. The usual case is an evaluation before "
    "training, or between two epochs. Dropout then does nothing, and BatchNorm "
    "normalizes with its running statistics and does not update them; if they were never computed, it does not "
    "normalize at all. Intentional uses are not reported: a model in train mode with layers or a frozen part in "
    "eval mode, a model that is in eval mode from its first call on, and BatchNorm with the statistics of a "
    "checkpoint.",
    change="""\
  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 4))
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(3):
+     model.train()
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
      optimizer.step()
      model.eval()
      with torch.no_grad():
          model(torch.randn(5, 8))  # an evaluation
""",
    remedy="Call model.train() before training, and again after each evaluation.",
)


def eval_findings(fact: EvalTraining) -> Iterator[Finding]:
    """Name the layers that act differently, and the line that switched the mode."""
    switched = "" if fact.switched is None else f" since {line_of(fact.switched)}"
    effects = []
    if fact.dropouts:
        effects.append(f"{listed(fact.dropouts)} {'drops' if len(fact.dropouts) == 1 else 'drop'} nothing")
    if fact.batch_norms:
        verb = "uses running statistics and does not update them"
        if len(fact.batch_norms) > 1:
            verb = "use running statistics and do not update them"
        effects.append(f"{listed(fact.batch_norms)} {verb}")
    yield EVAL.finding(
        text=f"{fact.model} is in eval mode{switched} while an optimizer trains it: {', and '.join(effects)}.",
        places=(*place_of("eval", fact.switched), *place_of("backward", fact.backward), *place_of("step", fact.step)),
        remedy=f"Call train() of the {fact.model} after the evaluation, before the forward pass of each training step.",
        subjects=(*fact.dropouts, *fact.batch_norms),
    )


JUDGE = Judge(EvalTraining, eval_findings)


DROPOUT = Rule(
    code="GI378",
    title="dropout stays active in eval mode",
    summary="F.dropout() without training= drops elements at random in the evaluation, too.",
    explanation="The module nn.Dropout follows model.eval(). The function F.dropout() does not: its argument training "
    "is True by default. So an evaluation is random, and worse than the model. Reported if the forward pass of a "
    "module in eval mode calls it and the call does not say training=, as one does that samples on purpose.",
    change="""\
  import torch
  from torch import nn
  from torch.nn import functional as F

  class Model(nn.Module):
      def __init__(self):
          super().__init__()
          self.layer = nn.Linear(8, 4)

      def forward(self, x):
-         return F.dropout(self.layer(x), 0.5)  # in eval mode too
+         return F.dropout(self.layer(x), 0.5, training=self.training)

  model = Model()
  for _ in range(2):
      model.train()
      model(torch.randn(5, 8)).square().mean().backward()
      model.eval()
      with torch.no_grad():
          model(torch.randn(5, 8))
""",
    remedy="Pass training=self.training, or use the module nn.Dropout.",
)


def dropout_findings(fact: DropoutInEval) -> Iterator[Finding]:
    """Name the line that calls the function."""
    yield DROPOUT.finding(
        text=f"{line_of(fact.called)} drops elements at random while the {fact.module} is in eval mode: the function "
        "does not know the mode.",
        places=place_of("called", fact.called),
        remedy=f"Pass training=self.training at {line_of(fact.called)}.",
    )


DROPOUT_JUDGE = Judge(DropoutInEval, dropout_findings)


UNDONE = Rule(
    code="GI383",
    title="train() puts a frozen part back into train mode",
    summary="BatchNorm of a frozen part updates its running statistics, although eval() was called of the part.",
    explanation="train() of a model sets the mode of all that it has, also of a part that was put into eval mode "
    "before. requires_grad does not matter for that: BatchNorm of a frozen part normalizes with the batch, and its "
    "running statistics move to the new data. Reported if eval() was called of the part itself, train() of the model "
    "around it undid that before the part was ever called, and none of its parameters requires grad.",
    change="""\
  import torch
  from torch import nn

  trunk = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16))
  model = nn.Sequential(trunk, nn.Linear(16, 4))
  trunk.requires_grad_(False)
  trunk.eval()
  optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
  for _ in range(3):
      model.train()
+     trunk.eval()
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
      optimizer.step()
""",
    remedy="Call eval() of the frozen part after each train() of the model.",
)


def undone_findings(fact: UndoneEval) -> Iterator[Finding]:
    """Name the lines that set both modes."""
    verb = "updates its" if len(fact.layers) == 1 else "update their"
    layers = tuple(f"{fact.part}.{name}" if name else fact.part for name in fact.layers)
    yield UNDONE.finding(
        text=f"{line_of(fact.put)} puts {fact.part} into eval mode, and train() at {line_of(fact.undone)} puts it "
        f"back: it is frozen, but {listed(layers)} {verb} running statistics in each forward pass.",
        places=(*place_of("eval", fact.put), *place_of("train", fact.undone)),
        remedy=f"Call eval() of {fact.part} again after each train() at {line_of(fact.undone)}. If its statistics "
        f"should follow the new data, remove eval() at {line_of(fact.put)}.",
        subjects=layers,
    )


UNDONE_JUDGE = Judge(UndoneEval, undone_findings)


TRAIN_MODE = Rule(
    code="GI394",
    title="the model is evaluated in train mode",
    summary="An evaluation under no_grad() runs a model whose dropout or BatchNorm is in train mode.",
    explanation="torch.no_grad() switches off the graph, and no layer. Until eval() of the model is called, dropout "
    "drops elements at random, and BatchNorm normalizes by the batch instead of by its running statistics, and changes "
    "these by the data of the evaluation. So the number is another one than that of the model, and depends on how the "
    "data are cut into batches. Reported if what such a layer makes without a graph is compared with labels without a "
    "graph as well, by a loss or by == with a chosen class, after an optimizer has stepped, and the program puts the "
    "layer nowhere into eval mode. Labels that are all the same, as for what a generator makes, count as none.",
    change="""\
  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
  optimizer = torch.optim.Adam(model.parameters())
  x, y = torch.randn(64, 4), torch.randint(2, (64,))
  for _ in range(2):
+     model.train()
      loss = nn.functional.cross_entropy(model(x[:48]), y[:48])
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
+     model.eval()
      with torch.no_grad():
          print((model(x[48:]).argmax(1) == y[48:]).float().mean())
""",
    remedy="Call eval() of the model before the evaluation, and train() after it.",
)
_ACTIVE = {
    "BatchNorm": "BatchNorm normalizes by the batch and changes its running statistics",
    "dropout": "dropout drops elements at random",
}


def train_mode_findings(fact: TrainModeEvaluation) -> Iterator[Finding]:
    """Name the line that evaluates, and what is active there."""
    compared, active = line_of(fact.compared), ", and ".join(_ACTIVE[one] for one in fact.layers)
    yield TRAIN_MODE.finding(
        text=f"{compared} evaluates a model in train mode without a graph: {active}. Nothing puts it into eval mode.",
        places=(
            *place_of("called", None if fact.called == fact.compared else fact.called),
            *place_of("evaluated", fact.compared),
        ),
        remedy=f"Call eval() of the model before the evaluation at {compared}, and train() after it.",
    )


TRAIN_MODE_JUDGE = Judge(TrainModeEvaluation, train_mode_findings)
