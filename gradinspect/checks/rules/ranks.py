"""What the ranks of a distributed program do in the same backward call, compared: by the names of parameters."""

from collections.abc import Iterator, Sequence

from gradinspect.checks.facts.ranks import RanksOfCall, RankSummary, ranks_in_words
from gradinspect.checks.findings import Finding, Place, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.graph import Frame

UNUSED = Rule(
    code="GI901",
    title="DistributedDataParallel would wait for unused parameters",
    summary="Backward does not reach some parameters on some ranks, so the other ranks would hang.",
    explanation="DistributedDataParallel averages each gradient over all ranks as soon as it is ready, so every "
    "rank waits for every parameter. If one rank skips a layer, the others hang, or the next forward fails with "
    "'Expected to have finished reduction in the prior iteration' and a list of indices. Under torchrun, the ranks "
    "exchange before each backward which parameters it will not reach. gradinspect names them and the line that "
    "only some ranks ran, then stops all ranks. Not reported with find_unused_parameters=True or "
    "static_graph=True.",
    change="""\
  import torch
  import torch.distributed as dist
  from torch import nn
  from torch.nn.parallel import DistributedDataParallel

  dist.init_process_group("gloo")


  class Net(nn.Module):
      def __init__(self):
          super().__init__()
          self.body, self.extra = nn.Linear(4, 4), nn.Linear(4, 4)

      def forward(self, x):
          h = self.body(x)
-         if dist.get_rank() == 0:  # on rank 1, extra gets no gradient
-             h = self.extra(h)
+         h = self.extra(h)
          return h


  model = DistributedDataParallel(Net())
  for _ in range(2):
      model(torch.randn(8, 4)).mean().backward()
  dist.destroy_process_group()
""",
    remedy="Run the same layers on every rank, or pass find_unused_parameters=True to DistributedDataParallel.",
    command="torchrun --nproc-per-node 2 -m gradinspect check",
    stops_run=True,
)
DIFFERENT = Rule(
    code="GI902",
    title="ranks build different graphs",
    summary="Gradients are averaged over ranks that compute different functions.",
    explanation="Averaging gradients over ranks makes sense only if all ranks compute the same function. Under "
    "torchrun, the ranks compare which lines made which nodes. The number of loop iterations does not matter, so "
    "sequences may differ in length. With find_unused_parameters=True ranks may differ, and nothing is reported.",
    change="""\
  import torch
  import torch.distributed as dist
  from torch import nn
  from torch.nn.parallel import DistributedDataParallel

  dist.init_process_group("gloo")
  model = DistributedDataParallel(nn.Linear(4, 4))
  for _ in range(2):
      loss = model(torch.randn(8, 4)).mean()
-     if dist.get_rank() == 0:  # averaged with ranks that have no penalty
-         loss = loss + model.module.weight.norm()
+     loss = loss + model.module.weight.norm()
      loss.backward()
  dist.destroy_process_group()
""",
    remedy="Base the decision on something that all ranks share, such as a value that rank 0 broadcasts.",
    command="torchrun --nproc-per-node 2 -m gradinspect check",
)


def rank_findings(call: RanksOfCall) -> Iterator[Finding]:
    """Compare the ranks of one call: parameters that some do not reach, or else graphs that differ."""
    ranks, backward = call
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in dict.fromkeys(name for rank in ranks for name in rank.unused):
        groups.setdefault(tuple(rank.rank for rank in ranks if name in rank.unused), []).append(name)
    for missing, names in groups.items():
        yield _unused(ranks, names, missing, backward)
    if not groups and not any(rank.may_differ for rank in ranks):
        yield from _differing(ranks, backward)


JUDGE = Judge(RanksOfCall, rank_findings)


def _unused(
    ranks: Sequence[RankSummary], names: Sequence[str], missing: Sequence[int], backward: Frame | None
) -> Finding:
    using = next((rank for rank in ranks if rank.rank not in missing), None)
    lacking = next(rank for rank in ranks if rank.rank in missing)
    where = "any rank" if using is None else f"{ranks_in_words(missing)}, but does on rank {using.rank}"
    places = () if using is None else (*_parting(using, lacking), *_parting(lacking, using))
    line = f" at {places[0].file}:{places[0].line}" if places else ""
    return UNUSED.finding(
        text=f"Backward does not reach {listed(names)} on {where}. DistributedDataParallel waits for every parameter "
        "on every rank: this backward would hang, or the next forward would fail.",
        places=(*places, *place_of("backward", backward)),
        remedy=(
            f"Use {listed(names)} in forward, remove what has them from the module"
            if using is None
            else f"Run the same layers on every rank{line}"
        )
        + ", or pass find_unused_parameters=True to DistributedDataParallel.",
        subjects=tuple(names),
    )


def _differing(ranks: Sequence[RankSummary], backward: Frame | None) -> Iterator[Finding]:
    """Compare each rank with the first one; one difference is enough."""
    for other in ranks[1:]:
        if set(other.nodes) == set(ranks[0].nodes):
            continue
        here, there = _parting(ranks[0], other), _parting(other, ranks[0])
        yield DIFFERENT.finding(
            text=f"{_only(ranks[0], other) or _only(other, ranks[0])}. The averaged gradients then belong to different "
            "functions, and collective operations inside the graph may not match.",
            places=(*here, *there, *place_of("backward", backward)),
            remedy=f"Base the decision that leads to {_line((*here, *there))} on something that all ranks share.",
        )
        return


def _parting(one: RankSummary, other: RankSummary) -> tuple[Place, ...]:
    """Return the first line of one rank that made a node that another rank does not have."""
    theirs = set(other.nodes)
    frame = next((node.frame for node in one.nodes if node not in theirs and node.frame is not None), None)
    return place_of(f"rank{one.rank}", frame)


def _only(one: RankSummary, other: RankSummary) -> str:
    theirs = set(other.nodes)
    names = list(dict.fromkeys(node.name for node in one.nodes if node not in theirs))
    return f"Rank {one.rank} has {listed(names)} here, and rank {other.rank} does not" if names else ""


def _line(places: Sequence[Place]) -> str:
    return f"{places[0].file}:{places[0].line}" if places else line_of(None)
