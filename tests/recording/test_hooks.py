"""Hooks are found and none is added."""

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, ClassVar

import pytest
import torch
from torch.autograd.function import _HookMixin
from torch.utils.hooks import RemovableHandle

import gradinspect
from gradinspect.graph import Hook
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.hooks import node_hooks, tensor_hooks
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api import hooks as torch_hooks
from gradinspect.torch_api.hooks import hooks_can_be_read


def halve(*grads: Any) -> None:
    """Do nothing, under a name."""


def test_hooks_of_a_node_are_listed_by_kind_and_name() -> None:
    """Pre and post hooks are told apart."""
    node = (torch.ones(2, requires_grad=True) * 2).grad_fn
    assert node is not None
    node.register_prehook(halve)
    node.register_hook(lambda *grads: None)
    with hooks_can_be_read() as can:
        assert can
        hooks = node_hooks(node)

    assert hooks[0] == Hook(kind="pre", name="halve")
    assert hooks[1].kind == "post"
    assert len(hooks) == 2


def test_asking_registers_nothing() -> None:
    """A node without hooks still has none after it was asked, and registration works as before."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert y.grad_fn is not None
    seen: list[float] = []
    x.register_hook(lambda grad: None).remove()  # some hook existed once, so nodes are asked
    for _ in range(2):
        with hooks_can_be_read() as can:
            assert can
            assert node_hooks(y.grad_fn) == ()
    y.grad_fn.register_prehook(lambda grads: seen.append(float(grads[0].sum())))
    y.sum().backward()

    assert seen == [2.0]


def test_hooks_of_a_leaf_are_its_tensors() -> None:
    """`Tensor.register_hook` and `register_post_accumulate_grad_hook` show at the leaf."""
    x = torch.ones(2, requires_grad=True)
    x.register_hook(halve)
    x.register_post_accumulate_grad_hook(halve)

    assert [hook.kind for hook in tensor_hooks(x)] == ["tensor", "post_accumulate_grad"]


def test_a_hook_that_is_registered_while_nodes_are_asked_is_registered() -> None:
    """On the same thread, in the middle of a reading, whatever else is registered gets to torch."""
    node = (torch.ones(2, requires_grad=True) * 2).grad_fn
    assert node is not None
    node.register_prehook(halve)
    with hooks_can_be_read():
        node.register_prehook(halve)
        hooks = node_hooks(node)

    assert hooks == (Hook(kind="pre", name="halve"),) * 2


def test_captures_on_many_threads_leave_the_hooks_of_others_alone() -> None:
    """Overlapping captures all see their hooks, a thread that registers meanwhile never fails, backward is right."""
    before = vars(_HookMixin)["_register_hook"]
    is_over = threading.Event()

    def capture(number: int) -> tuple[int, float]:
        x = torch.full((4,), float(number), requires_grad=True)
        y = x
        for _ in range(100):
            y = y * 1.0
            assert y.grad_fn is not None
            y.grad_fn.register_prehook(halve)
        loss = (y * y).sum()
        graph = gradinspect.capture(loss)
        loss.backward()
        assert x.grad is not None
        return sum(len(node.hooks) for node in graph.nodes), float(x.grad[0])

    def register() -> int:
        count = 0
        while not is_over.is_set():
            node = (torch.ones(1, requires_grad=True) * 2).grad_fn
            assert node is not None
            node.register_prehook(halve).remove()
            node.register_hook(halve)
            count += 1
        return count

    with ThreadPoolExecutor(7) as pool:
        other = pool.submit(register)
        results = list(pool.map(capture, range(30)))
        is_over.set()
        assert other.result() > 0

    assert results == [(100, 2.0 * number) for number in range(30)]
    assert vars(_HookMixin)["_register_hook"] is before


def test_our_own_hooks_are_no_reason_to_look_for_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is asked for its hooks only where the program has made some."""
    ours = torch_hooks._Ours.number
    monkeypatch.setattr(torch_hooks, "_IDS_AT_IMPORT", RemovableHandle.next_id - ours)
    with Recorder():
        assert not torch_hooks.hooks_were_made()
        torch.randn(3, requires_grad=True).register_hook(print)
        assert torch_hooks.hooks_were_made()


def test_the_record_of_a_node_has_its_hooks() -> None:
    """That of a leaf those of its tensor too."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert y.grad_fn is not None
    handles = [x.register_hook(halve), x.register_post_accumulate_grad_hook(halve), y.grad_fn.register_hook(halve)]
    handles.append(y.sum().grad_fn.next_functions[0][0].register_prehook(halve))
    product, leaf = capture_graph(y).nodes
    for handle in handles:
        handle.remove()

    assert sorted(hook.kind for hook in product.hooks) == ["post", "pre"]
    assert [hook.kind for hook in leaf.hooks] == ["tensor", "post_accumulate_grad"]
    assert {hook.name for hook in (*product.hooks, *leaf.hooks)} == {"halve"}


def test_hooks_of_a_tensor_are_on_the_node_that_made_it() -> None:
    """Also when nothing holds the tensor any more, before those of the node, as torch runs them; not once removed."""
    x = torch.ones(2, requires_grad=True)
    seen = list[str]()

    def first(_: torch.Tensor) -> None:
        seen.append("first")

    def kept(_: torch.Tensor) -> None:
        seen.append("kept")

    def inner() -> torch.Tensor:
        gone = x * 2
        gone.register_hook(first)
        return gone + 1

    with Recorder() as recorder:
        y = inner()
        y.register_hook(halve).remove()
        y.register_hook(kept)
        y.mul_(2)  # which leaves the hook where it is
        loss = y.sum()
        loss.register_hook(halve)
        assert loss.grad_fn is not None
        loss.grad_fn.register_prehook(halve)
    nodes = capture_graph(loss, recorder=recorder).nodes
    loss.backward()

    found = [(node.name, [(hook.kind, str(hook.name).rpartition(".")[2]) for hook in node.hooks]) for node in nodes]
    assert found == [
        ("SumBackward0", [("tensor", "halve"), ("pre", "halve")]),
        ("MulBackward0", []),
        ("AddBackward0", [("tensor", "kept")]),
        ("MulBackward0", [("tensor", "first")]),
        ("AccumulateGrad", []),
    ]
    assert seen == ["kept", "first"]


def test_no_hook_of_a_tensor_is_kept_alive() -> None:
    """A program that registers one in each step does not grow."""
    x = torch.ones(2, requires_grad=True)
    with Recorder() as recorder:
        for _ in range(3):
            y = x * 2
            y.register_hook(halve)
            y.sum().backward()
        left = weakref.ref(y._backward_hooks)
        del y

    assert left() is None
    assert recorder.tensor_hooks._found == {}


def test_a_hook_that_another_thread_registers_is_on_the_node_of_that_thread() -> None:
    """Its nodes have numbers of their own, which are those of other nodes here."""
    x = torch.ones(2, requires_grad=True)
    made = list[torch.Tensor]()

    def work() -> None:
        y = torch.nn.Identity()(x * 2)
        y.register_hook(halve)
        made.append(y)

    with Recorder() as recorder:
        here = x * 3
        here.register_hook(lambda _: None)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        loss = (made.pop() - here).sum()
    nodes = capture_graph(loss, recorder=recorder).nodes
    names = {node.thread: [hook.name for hook in node.hooks] for node in nodes if node.name == "MulBackward0"}

    assert len(names) == 2
    assert str(names[0]).endswith("<lambda>']")
    assert names[1] == ["halve"]


class Counting(torch.Tensor):
    """A tensor that counts the functions that are called with it."""

    calls: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_looking_at_a_tensor_with_a_hook_calls_nothing_of_its_class() -> None:
    """It counts what it counts without us."""
    found = list[list[str]]()
    for context in (nullcontext(), Recorder()):
        Counting.calls = []
        with context:
            y = (torch.ones(2, requires_grad=True) * 2).as_subclass(Counting)
            y.register_hook(halve)
        found.append(Counting.calls)

    assert found[0] == found[1] == ["register_hook"]
