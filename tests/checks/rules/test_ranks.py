"""Ranks compared by what they are about to go backward through."""

from factories import graph, leaf, op

from gradinspect.checks.facts.ranks import RankNode, RanksOfCall, RankSummary, summarize_rank
from gradinspect.checks.rules.ranks import rank_findings
from gradinspect.graph import Frame, ModuleCall

BODY = Frame(file="net.py", line=8, code="h = body(x)")
EXTRA = Frame(file="net.py", line=10, code="h = extra(h)")
BACKWARD = Frame(file="train.py", line=30, code="loss.backward()")
BODY_NODE = RankNode(name="AddmmBackward0", module="body", frame=BODY)
EXTRA_NODE = RankNode(name="AddmmBackward0", module="extra", frame=EXTRA)


def rank(number: int, *nodes: RankNode, unused: tuple[str, ...] = (), may_differ: bool = False) -> RankSummary:
    """What one rank does."""
    return RankSummary(rank=number, unused=unused, nodes=nodes, may_differ=may_differ)


def test_a_loop_counts_once_however_long() -> None:
    """In the order of the forward pass, without leaves."""
    once = graph(op("SumBackward0", 1), op("AddmmBackward0", 2, frame=0), leaf("w", 4), frames=(BODY,))
    thrice = graph(
        op("SumBackward0", 1),
        op("AddmmBackward0", 2, frame=0),
        op("AddmmBackward0", 3, frame=0),
        op("AddmmBackward0", 4, frame=0),
        leaf("w", 4),
        frames=(BODY,),
    )

    assert summarize_rank(once, 0, ()).nodes == summarize_rank(thrice, 0, ()).nodes
    assert not summarize_rank(once, 0, ()).may_differ
    assert [node.name for node in summarize_rank(once, 0, ()).nodes] == ["AddmmBackward0", "SumBackward0"]


def test_a_parameter_that_one_rank_lacks_is_named_with_the_line() -> None:
    """The rank, the names, and what the other rank ran."""
    ranks = [rank(0, BODY_NODE, EXTRA_NODE), rank(1, BODY_NODE, unused=("extra.bias", "extra.weight"))]
    (found,) = rank_findings(RanksOfCall(ranks, BACKWARD))

    assert found.code == "GI901"
    assert found.text.startswith("Backward does not reach extra.bias and extra.weight on rank 1, but does on rank 0.")
    assert [(place.role, place.line) for place in found.places] == [("rank0", 10), ("backward", 30)]
    assert "at net.py:10" in found.remedy


def test_a_parameter_that_no_rank_reaches() -> None:
    """There is no line to show."""
    (found,) = rank_findings(RanksOfCall([rank(0, unused=("w",)), rank(1, unused=("w",))], BACKWARD))

    assert found.text.startswith("Backward does not reach w on any rank. DistributedDataParallel waits")
    assert [place.role for place in found.places] == ["backward"]
    assert found.remedy.startswith("Use w in forward, remove what has them from the module, or pass find_unused")


def test_parameters_are_grouped_by_the_ranks_that_lack_them() -> None:
    """Each rank lacks the other's head: two findings."""
    found = list(rank_findings(RanksOfCall([rank(0, unused=("a", "b")), rank(1, unused=("c",))], None)))

    assert [finding.subjects for finding in found] == [("a", "b"), ("c",)]


def test_graphs_that_differ_are_told_once() -> None:
    """With a line of each side that has one; equal ones and those that may differ are not reported."""
    (found,) = rank_findings(
        RanksOfCall([rank(0, BODY_NODE), rank(1, BODY_NODE, EXTRA_NODE), rank(2, EXTRA_NODE)], BACKWARD)
    )

    assert found.code == "GI902"
    assert found.text.startswith("Rank 1 has AddmmBackward0 here, and rank 0 does not. The averaged gradients")
    assert [(place.role, place.line) for place in found.places] == [("rank1", 10), ("backward", 30)]
    assert found.remedy.startswith(f"Base the decision that leads to {found.places[0].file}:10 on something that all")
    assert (
        list(rank_findings(RanksOfCall([rank(0, BODY_NODE, EXTRA_NODE), rank(1, EXTRA_NODE, BODY_NODE)], BACKWARD)))
        == []
    )
    assert list(rank_findings(RanksOfCall([rank(0, BODY_NODE, may_differ=True), rank(1, EXTRA_NODE)], BACKWARD))) == []


def test_graphs_that_differ_without_a_line_say_so() -> None:
    """What differs was made by code that is not the user's."""
    nameless = RankNode(name="TanhBackward0", module=None, frame=None)
    (found,) = rank_findings(RanksOfCall([rank(0, BODY_NODE), rank(1, BODY_NODE, nameless)], BACKWARD))

    assert [place.role for place in found.places] == ["backward"]
    assert found.remedy.startswith("Base the decision that leads to an unknown line on")


def test_what_no_rank_reaches_is_used_or_removed() -> None:
    """What some reach is a question of what they run, and where."""
    (nowhere,) = rank_findings(RanksOfCall([rank(0, unused=("a",)), rank(1, unused=("a",))], BACKWARD))
    (on_one,) = rank_findings(
        RanksOfCall([rank(0, BODY_NODE, unused=("a",)), rank(1, BODY_NODE, EXTRA_NODE)], BACKWARD)
    )

    assert nowhere.text.startswith("Backward does not reach a on any rank. ")
    assert nowhere.remedy.startswith("Use a in forward, remove what has them from the module, or pass find_unused")
    assert on_one.text.startswith("Backward does not reach a on rank 0, but does on rank 1. ")
    assert on_one.remedy.startswith(f"Run the same layers on every rank at {on_one.places[0].file}:10, or pass")


def test_each_rank_has_a_line_of_its_own() -> None:
    """That of the rank that uses a parameter is the one to change; a rank that is equal to the first has none."""
    other = RankNode(name="TanhBackward0", module=None, frame=Frame(file="net.py", line=12))
    (unused,) = rank_findings(
        RanksOfCall([rank(0, BODY_NODE, other, unused=("w",)), rank(1, BODY_NODE, EXTRA_NODE)], BACKWARD)
    )
    ranks = [rank(0, BODY_NODE, EXTRA_NODE), rank(1, BODY_NODE, EXTRA_NODE), rank(2, BODY_NODE, other), rank(3)]
    (differs,) = rank_findings(RanksOfCall(ranks, BACKWARD))

    assert [(place.role, place.line) for place in unused.places] == [("rank1", 10), ("rank0", 12), ("backward", 30)]
    assert "on every rank at net.py:10, or pass" in unused.remedy
    assert [(place.role, place.line) for place in differs.places] == [("rank0", 10), ("rank2", 12), ("backward", 30)]
    assert differs.text.startswith("Rank 0 has AddmmBackward0 here, and rank 2 does not. ")
    assert differs.remedy.startswith("Base the decision that leads to net.py:10 on")


def test_a_node_is_recognized_by_its_class_module_and_line() -> None:
    """Whoever called that line."""
    called = Frame(file="net.py", line=8, code="h = body(x)", caller=1, function="f")
    one = graph(op("AddmmBackward0", 1, frame=0, module=0), leaf("w", 4), frames=(called, BACKWARD),
                modules=(ModuleCall(path="body", class_name="Linear"),))  # fmt: skip
    (node,) = summarize_rank(one, 3, ["w"], may_differ=True).nodes

    assert node == RankNode(
        name="AddmmBackward0", module="body", frame=Frame(file="net.py", line=8, code="h = body(x)", function="f")
    )
    assert summarize_rank(one, 3, ["w"], may_differ=True) == rank(3, node, unused=("w",), may_differ=True)
