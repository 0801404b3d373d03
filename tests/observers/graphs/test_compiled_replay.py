"""The operator that several wrong results come from."""

from torch.fx import Graph

from gradinspect.observers.graphs.compiled_replay import last_shared


def test_the_last_operator_that_all_wrong_results_come_from() -> None:
    """Not one that only some need, nor an input; a result may come from another one."""
    graph = Graph()
    given, other = graph.placeholder("given"), graph.placeholder("other")
    early = graph.call_function(abs, (given,))
    source = graph.call_function(max, (early, other))
    weight = graph.call_function(min, (source, given))
    side = graph.call_function(abs, (other,))
    bias = graph.call_function(max, (source, side))

    assert last_shared([weight, bias]) is source
    assert last_shared([source, bias]) is source
    assert last_shared([side, early]) is None
