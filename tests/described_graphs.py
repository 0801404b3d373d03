"""A description of a graph that does not depend on the order, the numbers or the threads of its nodes."""

from gradinspect.graph import Edge, Graph, source_of


def described(graph: Graph, *, without: str | None = None) -> list[str]:
    """Describe each node with its place and its edges, in the order in which they are reached from the roots.

    Args:
        graph: The graph.
        without: A class of nodes with one input, such as copies to a device, which are passed over.
    """
    places: dict[int, int] = {}
    todo = [
        _passed_over(graph, Edge(next_node=root.node, input_nr=0), without).next_node for root in reversed(graph.roots)
    ]
    found = []
    while todo:
        number = todo.pop()
        if number in places:
            continue
        places[number] = len(places)
        edges = [edge and _passed_over(graph, edge, without) for edge in graph.nodes[number].next_edges]
        todo.extend(edge.next_node for edge in reversed(edges) if edge is not None)
        found.append((number, edges))
    return [
        f"{graph.nodes[number].name} {source_of(graph, graph.nodes[number])} {_modules_of(graph, number)} "
        f"{[edge and (places[edge.next_node], edge.input_nr) for edge in edges]}"
        for number, edges in found
    ]


def _passed_over(graph: Graph, edge: Edge, without: str | None) -> Edge:
    while graph.nodes[edge.next_node].name == without:
        (following,) = graph.nodes[edge.next_node].next_edges
        if following is None:
            break
        edge = following
    return edge


def _modules_of(graph: Graph, number: int) -> list[str]:
    names, module = [], graph.nodes[number].module
    while module is not None:
        names.append(graph.modules[module].class_name)
        module = graph.modules[module].parent
    return names
