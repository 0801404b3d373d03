"""The walk meets every node once and puts them into topological order."""

import threading
from typing import Any

import torch

from gradinspect.recording.walk import Walk


def nodes_that_backward_runs(loss: torch.Tensor) -> list[Any]:
    """Let the engine itself say which nodes there are: a prehook on each that anything leads to."""
    ran: list[Any] = []
    todo, seen = [loss.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        node.register_prehook(lambda grads, node=node: ran.append(node))
        todo.extend(next_node for next_node, _ in node.next_functions)
    loss.backward()
    return ran


def test_every_node_of_the_engine_is_walked_once() -> None:
    """The walk and a real backward meet the same nodes."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    loss = model(torch.ones(5, 3)).square().sum()
    walk = Walk([loss.grad_fn])
    walked = list(walk.nodes)
    walk.close()

    ran = nodes_that_backward_runs(loss)

    assert set(ran) == set(walked)
    assert len(walked) == len(set(walked)) == len(ran)


def test_edges_keep_position_input_number_and_empty_places() -> None:
    """`next_edges` says what `next_functions` says."""
    first, second = torch.ones(2, requires_grad=True).unbind()
    total = (second * 2) + first
    walk = Walk([total.grad_fn])
    named = [
        [None if edge is None else (walk.nodes[edge.next_node].name(), edge.input_nr) for edge in edges]
        for edges in walk.next_edges
    ]
    walk.close()

    assert named[0] == [("MulBackward0", 0), ("UnbindBackward0", 0)]
    assert named[1] == [("UnbindBackward0", 1), None]


def test_parallel_edges_stay_two() -> None:
    """`y * y` has two edges to one node."""
    y = torch.ones(2, requires_grad=True) + 1
    product = y * y
    walk = Walk([product.grad_fn])

    assert [edge.next_node for edge in walk.next_edges[0] if edge is not None] == [1, 1]
    walk.close()


def test_every_edge_points_to_a_larger_number() -> None:
    """Ids are topological, also when two threads numbered their nodes on their own."""
    parts: list[torch.Tensor] = []
    x = torch.ones(2, requires_grad=True)
    ahead = x
    for _ in range(50):
        ahead = ahead * 1.5

    thread = threading.Thread(target=lambda: parts.append((ahead * 2).sum()))
    thread.start()
    thread.join()
    walk = Walk([(parts[0] + 1).grad_fn, parts[0].grad_fn])
    points_forward = [
        edge.next_node > number for number, edges in enumerate(walk.next_edges) for edge in edges if edge is not None
    ]
    in_creation_order = walk.is_in_creation_order
    names = [node.name() for node in walk.nodes]
    numbers = dict(walk.numbers)
    places = {node: number for number, node in enumerate(walk.nodes)}
    walk.close()

    assert all(points_forward)
    assert names == ["AddBackward0", "SumBackward0", *["MulBackward0"] * 51, "torch::autograd::AccumulateGrad"]
    assert numbers == places
    assert not in_creation_order


def test_several_roots_are_one_walk() -> None:
    """Nodes that two roots share are met once."""
    x = torch.ones(2, requires_grad=True)
    shared = x * 2
    walk = Walk([shared.exp().grad_fn, shared.log().grad_fn])
    names = [node.name() for node in walk.nodes]
    walk.close()

    assert names == ["LogBackward0", "ExpBackward0", "MulBackward0", "torch::autograd::AccumulateGrad"]


def test_a_closed_walk_is_empty() -> None:
    """Nothing of the graph is kept once the walk is closed."""
    walk = Walk([(torch.ones(1, requires_grad=True) * 2).grad_fn])
    walk.close()

    assert (walk.nodes, walk.numbers) == ([], {})


class Keeps(torch.autograd.Function):
    """Keeps something on ctx under the name that AccumulateGrad has for its leaf."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Double."""
        ctx.variable = torch.ones(1)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Double."""
        return grad * 2


def test_the_leaves_are_what_backward_accumulates_into() -> None:
    """By number, also when asked again; what a custom Function keeps on ctx is none."""
    x, w = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    walk = Walk([(Keeps.apply(x) * w).grad_fn])
    found = [walk.leaves(), walk.leaves()]
    numbers = [number for number, node in enumerate(walk.nodes) if node.name() == "torch::autograd::AccumulateGrad"]
    walk.close()

    assert [list(leaves) for leaves in found] == [numbers, numbers]
    assert {id(leaf) for leaf in found[0].values()} == {id(x), id(w)}
    assert walk.leaves() == {}


def test_nodes_of_two_threads_are_sorted_by_their_edges_latest_first() -> None:
    """Those that nothing orders keep the order of their numbers."""
    x = torch.ones(1, requires_grad=True)
    parts: list[torch.Tensor] = []
    for _ in range(20):
        x.exp()
    late = x.sin()

    def work() -> None:
        parts.append(late.cos())
        parts.append(parts[0].tan())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    walk = Walk([(parts[1] + x.exp()).grad_fn])
    names = [node.name().removeprefix("torch::autograd::") for node in walk.nodes]
    walk.close()

    assert names == ["AddBackward0", "ExpBackward0", "TanBackward0", "CosBackward0", "SinBackward0", "AccumulateGrad"]
