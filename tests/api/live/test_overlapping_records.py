"""Recordings that overlap on one thread: each sees its own calls, and the stack of modes is as before."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import softmax
from torch.overrides import TorchFunctionMode

from gradinspect.api.live.recording import Recording, record
from gradinspect.errors import GradInspectError
from gradinspect.torch_api.modes import num_function_modes


async def _train(num_layers: int, turns: "asyncio.Barrier") -> Recording:
    """Record a forward and a backward pass, in which other tasks take turns."""
    layers = [nn.Linear(2, 2) for _ in range(num_layers)]
    with record() as recording:
        h = torch.ones(1, 2)
        for layer in layers:
            h = layer(h)
            await asyncio.sleep(0)
        await turns.wait()
        h.sum().backward()
        await turns.wait()
        for _ in range(num_layers):  # so that they end in another order than that of their beginnings
            await asyncio.sleep(0)
    return recording


def test_a_task_records_itself_alone() -> None:
    """Its modules, its nodes and its backward, and nothing is left when all have ended."""

    async def all_tasks() -> list[Recording]:
        turns = asyncio.Barrier(3)
        return list(await asyncio.gather(_train(4, turns), _train(2, turns), _train(3, turns)))

    found = asyncio.run(all_tasks())

    assert [len(one.graphs) for one in found] == [1, 1, 1]
    assert [len(one.graph.modules) for one in found] == [4, 2, 3]
    assert num_function_modes() == 0


def test_what_a_task_starts_belongs_to_it() -> None:
    """A task inside, and a thread of its own."""

    async def inner(x: torch.Tensor) -> None:
        (x * 2).sum().backward()

    async def outer() -> Recording:
        x = torch.ones(2, requires_grad=True)
        with record() as recording:
            await asyncio.create_task(inner(x))
            h = await asyncio.to_thread(lambda: nn.Linear(2, 2)(x))
            h.sum().backward()
        return recording

    found = asyncio.run(outer())
    lines = [node.frame for graph in found.graphs for node in graph.nodes if node.leaf is None]

    assert None not in lines
    assert len(found.graphs) == 2


def _opened(recordings: list[Recording]) -> Iterator[None]:
    with record() as recording:
        recordings.append(recording)
        yield


def test_generators_may_end_in_any_order() -> None:
    """The first that began ends first; the other still records."""
    found: list[Recording] = []
    first, second = _opened(found), _opened(found)
    next(first)
    next(second)
    assert num_function_modes() == 2

    next(first, None)
    (torch.ones(2, requires_grad=True) * 2).sum().backward()
    num_left = num_function_modes()
    next(second, None)

    assert ([len(one.graphs) for one in found], num_left, num_function_modes()) == ([0, 1], 1, 0)


@pytest.mark.parametrize("is_outer_first", [False, True])
def test_a_mode_of_the_program_that_ends_inside_leaves_none(is_outer_first: bool) -> None:
    """It would pop the mode of the block that began last, and stay itself; the other block still records."""
    mode, outer, inner = TorchFunctionMode(), record(), record()  # a mode in which any torch function fails
    mode.__enter__()
    outer.__enter__()
    inner.__enter__()
    mode.__exit__(None, None, None)
    first, second = (outer, inner) if is_outer_first else (inner, outer)
    first.__exit__(None, None, None)
    (torch.ones(2, requires_grad=True) * 2).sum().backward()
    second.__exit__(None, None, None)

    assert (len(second.graphs), num_function_modes()) == (1, 0)


@pytest.mark.parametrize("num_blocks", [1, 2])
def test_blocks_that_end_in_a_hook_leave_no_mode_after_anything_was_compiled(num_blocks: int) -> None:
    """Compiled code would be guarded on a mode that stays, and compiled again."""
    torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))
    blocks = [record() for _ in range(num_blocks)]
    for block in blocks:
        block.__enter__()
    y = torch.ones(2, requires_grad=True) * 2

    def end(_gradient: torch.Tensor) -> None:
        for block in blocks:
            block.__exit__(None, None, None)

    y.register_hook(end)
    y.sum().backward()

    assert num_function_modes() == 0


def test_a_recording_that_ends_inside_a_function_in_cpp_leaves_with_the_next_one_in_python() -> None:
    """There is nothing in the former that could wait for its end."""

    class Ends(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, _types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if func is torch.Tensor.exp:
                recording.__exit__(None, None, None)
            return func(*args, **(kwargs or {}))

    recording, x = record(), torch.ones(2)
    with Ends():
        recording.__enter__()
        x.exp()
        inside = num_function_modes()
        softmax(x, 0)

        assert (inside, num_function_modes()) == (2, 1)
    assert num_function_modes() == 0


def test_a_recording_closed_on_another_thread_says_so() -> None:
    """It has ended nevertheless."""
    errors: list[str] = []

    def work() -> None:
        recording.__enter__()
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
        nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()

    def close() -> None:
        with pytest.raises(GradInspectError) as caught:
            recording.__exit__(None, None, None)
        errors.append(caught.value.message)

    recording = record()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert errors == ["This recording was closed on another thread than the one where it began."]
    assert recording.graphs == ()
