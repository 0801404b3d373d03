"""Nodes that other threads made have the line and module that made them, and those of the recorded thread keep theirs.

The second witness is the same program on one thread: the record must be equal, apart from threads and numbers.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
import torch
from described_graphs import described
from torch import nn

from gradinspect.api.live.recording import record
from gradinspect.graph import Graph, source_of
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.modes import num_function_modes
from gradinspect.torch_api.nodes import next_sequence_nr

Run = Callable[..., Any]


class Half(nn.Module):
    """A layer and an activation on lines of their own."""

    def __init__(self, activation: Run) -> None:
        """Set up."""
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply both."""
        h = self.layer(x)
        return self.activation(h) * 2


class Cube(torch.autograd.Function):
    """A custom Function."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Compute it."""
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Its derivative."""
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def here(function: Run, *args: Any) -> Any:
    """Run on this thread."""
    return function(*args)


def on_thread(function: Run, *args: Any) -> Any:
    """Run on a thread of its own."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function(*args)))
    thread.start()
    thread.join()
    return found[0]


def two_models(run: Run) -> torch.Tensor:
    """Two forward passes, the first on another thread."""
    first, second, x = Half(torch.tanh), Half(torch.sigmoid), torch.ones(2, 4)
    other = run(first, x)
    return (second(x) + other).square().sum()


def both_ways(run: Run) -> torch.Tensor:
    """There, here, and there again with what was made here."""
    first, second, third, x = Half(torch.tanh), Half(torch.sigmoid), Half(torch.relu), torch.ones(2, 4)
    h = run(first, x)
    h = second(h).exp()
    return run(third, h).sum()


def penalty(run: Run) -> torch.Tensor:
    """A gradient that is differentiated again, with its forward pass."""
    model, x = Half(torch.tanh), torch.ones(2, 4, requires_grad=True)

    def gradient() -> tuple[torch.Tensor, torch.Tensor]:
        out = model(x).sum()
        return out, torch.autograd.grad(out, x, create_graph=True)[0]

    out, found = run(gradient)
    return out.square() + (found.norm(dim=1) - 1).square().mean()


def product(run: Run) -> torch.Tensor:
    """A Hessian-vector product: the forward pass is here, both derivatives there."""
    model, x = Half(torch.tanh), torch.ones(2, 4, requires_grad=True)
    out = model(x).sum()
    gradient = run(lambda: torch.autograd.grad(out, x, create_graph=True)[0])
    return (gradient * torch.arange(8.0).view(2, 4)).sum()


def penalty_of_what_is_there(run: Run) -> torch.Tensor:
    """A gradient that is differentiated again here, its forward pass there: it leads to nodes from between."""
    model = nn.Sequential(nn.Linear(4, 4), nn.SiLU(), nn.Linear(4, 1))
    x = torch.ones(2, 4, requires_grad=True)
    out = run(lambda: model(x).tanh())
    (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return gradient.square().sum() + out.mean()


def backward_with_graph(run: Run) -> torch.Tensor:
    """The gradient of a leaf, which no function returns."""
    model, x = Half(torch.tanh), torch.ones(2, 4, requires_grad=True)
    out = model(x).sum()
    run(lambda: out.backward(create_graph=True))
    assert x.grad is not None
    return x.grad.square().sum()


def custom(run: Run) -> torch.Tensor:
    """A custom Function in the middle."""
    model, x = Half(torch.tanh), torch.ones(2, 4)
    after = Half(torch.sigmoid)

    def compute() -> torch.Tensor:
        h = model(x)
        h = Cube.apply(h)
        return h + 1

    other = after(x)
    return (run(compute) * other).sum()


pytestmark = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")

PROGRAMS = (two_models, both_ways, penalty, penalty_of_what_is_there, product, backward_with_graph, custom)


def recorded(program: Callable[[Run], torch.Tensor], run: Run) -> Graph:
    """Record a program."""
    torch.manual_seed(0)
    with record() as recording:
        loss = program(run)
        return recording.capture(loss)


@pytest.mark.parametrize("program", PROGRAMS)
def test_lines_and_modules_are_those_of_one_thread(program: Callable[[Run], torch.Tensor]) -> None:
    """Wherever a part of a program runs."""
    watched = recorded(program, on_thread)

    assert described(watched) == described(recorded(program, here))
    assert {node.thread for node in watched.nodes} > {0}
    assert watched.warnings == ()


@pytest.mark.parametrize("program", PROGRAMS)
def test_identities_are_unique(program: Callable[[Run], torch.Tensor]) -> None:
    """Numbers are not, where several threads count."""
    graph = recorded(program, on_thread)
    found = [node.identity for node in graph.nodes if node.leaf is None]

    assert None not in found
    assert len(set(found)) == len(found)
    assert all(edge.next_node > number for number, node in enumerate(graph.nodes) for edge in node.next_edges if edge)


def test_threads_at_the_same_time_keep_their_own() -> None:
    """Eight forward passes in a pool, while one runs here."""
    models, x = [Half(torch.tanh) for _ in range(8)], torch.ones(2, 4)
    mine = Half(torch.sigmoid)
    for _ in range(10):
        with Recorder() as recorder, ThreadPoolExecutor(8) as pool:
            futures: list[Future[torch.Tensor]] = [pool.submit(model, x) for model in models]
            total = mine(x)
            for future in futures:
                total = total + future.result()
            graph = capture_graph(total.sum(), recorder=recorder)
        places: dict[str, set[str]] = {}
        for node in graph.nodes:
            if node.module is not None and graph.modules[node.module].parent is None:
                places.setdefault(graph.modules[node.module].path, set()).add(node.name)

        assert len(places) == 9
        assert sum("SigmoidBackward0" in names for names in places.values()) == 1
        assert sum("TanhBackward0" in names for names in places.values()) == 8


def test_a_pool_that_ran_before_is_followed_inside_modules() -> None:
    """Its threads have no mode of ours otherwise, and none afterwards."""
    model, x = Half(torch.tanh), torch.ones(2, 4)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(model, x).result()
        with Recorder() as recorder:
            other = pool.submit(model, x).result()
            left = pool.submit(num_function_modes).result()
            graph = capture_graph((other * other).sum(), recorder=recorder)

    names = {node.name: source_of(graph, node) for node in graph.nodes if node.thread}
    assert names.keys() == {"MulBackward0", "TanhBackward0", "AddmmBackward0", "TBackward0"}
    assert None not in names.values()
    assert left == 0


def test_a_node_of_a_thread_that_was_not_seen_is_counted() -> None:
    """It has no line rather than a wrong one; the others keep theirs."""
    x = torch.ones(2, requires_grad=True)
    reached = next_sequence_nr()  # a number that this thread has not reached
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: [x * 2 for _ in range(reached + 100)]).result()
        with Recorder() as recorder:
            h = x.sin()
            other = pool.submit(x.exp).result()  # outside of all modules, on a thread that ran before
            graph = capture_graph((h * other).sum(), recorder=recorder)
    lines = {node.name: source_of(graph, node) for node in graph.nodes if node.leaf is None}

    assert [name for name, line in lines.items() if line is None] == ["ExpBackward0"]
    assert graph.warnings == ("1 node was made by a thread that was not recorded: it has no module and no line.",)


def test_a_record_of_one_thread_says_nothing_of_threads() -> None:
    """Files are as before."""
    graph = recorded(two_models, here)

    assert b"thread" not in msgspec.json.encode(graph.nodes)


def test_a_long_chain_of_another_thread_can_be_freed() -> None:
    """Its nodes get no wrapper as long as they stay there."""
    x = torch.ones(1, requires_grad=True)

    def chain() -> torch.Tensor:
        y = x
        for _ in range(60_000):
            y = y + 1
        return y

    with Recorder():
        total = on_thread(chain) * 2
        del total

    assert x.grad is None


def test_the_backward_of_a_thread_is_recorded_with_its_graph() -> None:
    """All on the other thread, from the forward pass to backward."""
    model, x = Half(torch.tanh), torch.ones(2, 4)

    def train(recorder: Recorder) -> Graph:
        loss = model(x).sum()
        graph = capture_graph(loss, recorder=recorder)
        loss.backward()
        return graph

    with Recorder() as recorder:
        graph = on_thread(train, recorder)

    assert {node.name for node in graph.nodes if node.frame is None} == {"AccumulateGrad"}
    assert graph.modules[0].class_name == "Half"


def test_a_number_of_this_thread_does_not_make_a_node_one_of_its_own() -> None:
    """A thread that ran before has made nodes whose numbers fit: they, and what only they lead to, are unknown."""
    x, model = torch.ones(2, 4, requires_grad=True), Half(torch.tanh)
    reached = next_sequence_nr()

    def compute(h: torch.Tensor) -> torch.Tensor:
        return (x.exp() * h).cos()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: [x * 2 for _ in range(reached + 2)]).result()
        with Recorder() as recorder:
            model(x).exp().sum().add(1)  # has the numbers that the other thread gives to its nodes
            h = x.sin()
            other = pool.submit(compute, h).result()
            graph = capture_graph((h * other).sum(), recorder=recorder)
    unknown = {node.name for node in graph.nodes if node.leaf is None and source_of(graph, node) is None}

    assert unknown == {"CosBackward0", "ExpBackward0", "MulBackward0"}
    assert [node.name for node in graph.nodes if source_of(graph, node)] == [
        "SumBackward0", "MulBackward0", "SinBackward0",
    ]  # fmt: skip
    assert all(node.module is None for node in graph.nodes)
    assert graph.warnings == ("3 nodes were made by a thread that was not recorded: they have no module and no line.",)


def test_what_this_thread_makes_stays_its_own_beside_one_that_is_not_followed() -> None:
    """In functions, in hooks, by writes, and in custom Functions."""
    kept: list[torch.Tensor] = []

    def on_gradient(gradient: torch.Tensor) -> None:
        with torch.enable_grad():
            kept.append((x * gradient.sum()).sum())

    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        with Recorder() as recorder:
            x = torch.ones(2, 4, requires_grad=True)
            h = Cube.apply(x)
            h.register_hook(on_gradient)
            h.square().sum().backward()
            written = torch.zeros(2, 4)
            written[0] = Cube.apply(x)[1]
            parts = torch.stack(list(written.unbind())).split(1)
            graph = capture_graph((parts[0] + parts[1]).sum() + kept[0], recorder=recorder)

    assert recorder.others.is_strict
    assert {node.name for node in graph.nodes if node.frame is None} == {"AccumulateGrad"}
    assert graph.warnings == ()


@pytest.mark.slow
def test_no_mode_of_ours_is_there_while_a_thread_runs_compiled_code() -> None:
    """It would be traced and guarded on; afterwards the thread is followed again."""
    seen: list[int] = []

    def backend(graph: Any, _inputs: Any) -> Run:
        def run(*args: Any) -> Any:
            seen.append(num_function_modes())
            return graph.forward(*args)

        return run

    x, plain = torch.ones(2, 4, requires_grad=True), Half(torch.tanh)
    compiled = torch.compile(lambda x: x.sin() * 2, backend=backend)

    def compute() -> torch.Tensor:
        first = compiled(x)
        seen.append(num_function_modes())
        return plain(first)

    with Recorder() as recorder:
        graph = capture_graph(on_thread(compute).sum(), recorder=recorder)

    assert seen == [0, 1]
    assert {node.name for node in graph.nodes if node.thread} >= {"TanhBackward0", "AddmmBackward0"}
