"""Inputs and targets that are flipped and turned by draws of their own."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import TurnedApart
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_count

APART = Rule(
    code="GI346",
    title="inputs and targets are turned apart",
    summary="A random flip, turn or shift of an image is drawn again for its mask, so that their places differ.",
    explanation="A mask belongs to its image place by place. A transform that draws by itself draws anew for the mask, "
    "so half of the flips of the image are none of the mask, and the model learns that nothing can be known. Reported "
    "where targets have three axes or more, and the flips, turns and shifts behind them differ from those behind the "
    "inputs in most of four batches or more, and not in the same way in all.",
    change="""\
  import torch
  from torch import nn

  def augment(x):
      return x.flip(-1) if torch.rand(1) < 0.5 else x

  model = nn.Conv2d(1, 1, 3, padding=1)
  criterion = nn.BCEWithLogitsLoss()
  for _ in range(6):
      pairs = []
      for image in torch.rand(8, 1, 12, 12):
          mask = (image > 0.5).float()
-         pairs.append((augment(image), augment(mask)))
+         pairs.append(augment(torch.stack([image, mask])).unbind())
      images, masks = map(torch.stack, zip(*pairs))
      criterion(model(images), masks).backward()
""",
    remedy="Draw once for both: turn image and mask as one tensor.",
)


def apart_findings(fact: TurnedApart) -> Iterator[Finding]:
    """Report the two lines."""
    is_one = fact.first == fact.second
    lines = line_of(fact.first) if is_one else f"{line_of(fact.first)} and {line_of(fact.second)}"
    yield APART.finding(
        text=f"{lines} flip, turn or shift inputs and targets, each by a draw of its own: in {fact.num_apart} of "
        f"{fact.num_calls} batches it was not done to both alike. In the last, "
        f"{format_count(fact.num_inputs, 'such call')} came to the inputs and {fact.num_targets:,} to the targets, "
        "whose places no longer belong together.",
        places=(
            *place_of("turned", fact.first), *place_of("turned", None if is_one else fact.second),
            *place_of("loss", fact.used),
        ),
        remedy=f"Draw once for both at {lines}: put image and mask into one tensor, as torch.cat() or torch.stack() "
        "does, turn that, and take it apart again.",
    )  # fmt: skip


JUDGE = Judge(TurnedApart, apart_findings)
