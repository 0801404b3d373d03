"""Nodes belong to the innermost call that was running when they were made."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from gradinspect.graph import ModuleCall
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.modules import CalledPaths, PathsOfCalls, assign_modules, called_around
from gradinspect.recording.names.names import Names
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.threads.threads import NOWHERE, ModuleWindow
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR


class Part(nn.Module):
    """A module."""


def recorded(windows: list[ModuleWindow], num_modules: int) -> tuple[Recorder, Names, list[nn.Module]]:
    """Make a recorder of these calls, and names of their modules."""
    parts: list[nn.Module] = [Part() for _ in range(num_modules)]
    recorder, names = Recorder(), Names()
    for number, part in enumerate(parts):
        assert recorder._number_of(part) == number
        names.module_paths[id(part)] = f"part{number}"
    recorder.own.module_windows = windows
    return recorder, names, parts


def test_calls_and_their_nodes() -> None:
    """Calls without a node are left out unless one in them has some; calls of a module are counted."""
    windows = [
        ModuleWindow(0, 10, 0, NOWHERE),
        ModuleWindow(1, 2, 1, 0),
        ModuleWindow(3, 6, 1, 0),
        ModuleWindow(4, 5, 2, 2),
        ModuleWindow(7, 7, 2, 0),  # makes no node
        ModuleWindow(12, 20, 3, NOWHERE),
        ModuleWindow(13, 15, 2, 5),
    ]
    recorder, names, _parts = recorded(windows, 4)
    numbers = [16, 14, 11, 10, 9, 7, 5, 4, 3, 1, 0]
    of_nodes, calls = assign_modules(recorder, names, [*numbers, ACCUMULATE_GRAD_NR])

    assert [(call.path, call.call, call.parent) for call in calls] == [
        ("part0", 1, None), ("part1", 1, 0), ("part1", 2, 0), ("part2", 1, 2), ("part3", 1, None), ("part2", 2, 4),
    ]  # fmt: skip
    assert dict(zip(numbers, of_nodes, strict=False)) == {
        16: 4, 14: 5, 11: None, 10: None, 9: 0, 7: 0, 5: 2, 4: 3, 3: 2, 1: 1, 0: 0,
    }  # fmt: skip
    assert of_nodes[-1] is None


def test_without_calls_no_node_has_one() -> None:
    """And there is none."""
    recorder, names, _ = recorded([], 0)

    assert assign_modules(recorder, names, [3, 2, ACCUMULATE_GRAD_NR]) == ([None, None, None], ())


def test_a_call_that_is_still_running_has_its_nodes() -> None:
    """A backward may run inside a forward."""
    recorder, names, _parts = recorded([ModuleWindow(0, NOWHERE, 0, NOWHERE), ModuleWindow(0, 1, 1, 0)], 2)
    of_nodes, calls = assign_modules(recorder, names, [0])

    assert of_nodes == [1]
    assert calls[0] == ModuleCall(path="part0", class_name="Part", call=1, parent=None)


@st.composite
def windows_of(draw: st.DrawFn) -> list[ModuleWindow]:
    """Draw calls in calls, each of which makes some nodes before, between and after those in it."""
    windows: list[ModuleWindow] = []
    counter = 0

    def call(parent: int, depth: int) -> None:
        nonlocal counter
        counter += draw(st.integers(0, 2))
        index = len(windows)
        windows.append(ModuleWindow(counter, NOWHERE, draw(st.integers(0, 2)), parent))
        for _ in range(draw(st.integers(0, 2)) if depth < 3 else 0):
            call(index, depth + 1)
        counter += draw(st.integers(0, 2))
        windows[index] = windows[index]._replace(end=counter)

    for _ in range(draw(st.integers(0, 3))):
        call(NOWHERE, 0)
    return windows


@given(windows_of(), st.sets(st.integers(0, 30)))
def test_a_node_is_in_the_last_call_that_began_before_it_and_ended_after_it(
    windows: list[ModuleWindow], made: set[int]
) -> None:
    """One pass finds what a search of all calls finds, for many nodes as for one."""
    recorder, names, _parts = recorded(windows, 3)
    numbers = sorted(made, reverse=True)
    around = [[index for index, one in enumerate(windows) if one.start <= number < one.end] for number in numbers]
    of_nodes, calls = assign_modules(recorder, names, numbers)

    assert [None if call is None else calls[call].path for call in of_nodes] == [
        f"part{windows[found[-1]].module}" if found else None for found in around
    ]
    assert [recorder.module_of(number) for number in numbers] == [
        windows[found[-1]].module if found else None for found in around
    ]


def test_the_modules_whose_calls_a_place_is_in() -> None:
    """Of a module that two others share: those that call it there, and itself."""
    shared = nn.ReLU()
    blocks = [nn.Sequential(nn.Linear(2, 2), shared) for _ in range(2)]
    model = nn.Sequential(*blocks)
    found: list[list[nn.Module | None]] = []

    def look(*_: object) -> None:
        call = recorder.running_call
        assert call is not None
        found.append([recorder.modules[number]() for number in sorted(called_around(recorder, call))])

    shared.register_forward_pre_hook(look)
    with Recorder() as recorder:
        model(torch.ones(1, 2))

    assert found == [[model, blocks[0], shared], [model, shared, blocks[1]]]


class Making(nn.Module):
    """A block that makes layers whenever it is called, as tutorials do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Make four layers, of which two are of one class and two have no parameters."""
        for _ in range(2):
            x = nn.Tanh()(nn.Linear(3, 3)(x))
        return x


def test_layers_that_forward_makes_are_named_after_the_call_that_makes_them() -> None:
    """So are their parameters, which no model has; what has no parameters is one that is called several times."""
    model = nn.Sequential(Making(), Making(), nn.LayerNorm(3))
    with Recorder() as recorder:
        output = model(torch.randn(2, 3)).sum()
    graph = record_graph(outputs_in(output), Moment(source="test"), recorder)
    made = [f"{block}.{name}" for block in "01" for name in ("Linear", "Tanh", "Linear#2", "Tanh")]

    assert [(call.path, call.call) for call in graph.modules if call.path not in ("", "0", "1", "2")] == [
        (path, 1 + (path in made[:number] and "Tanh" in path)) for number, path in enumerate(made)
    ]
    assert {node.leaf.name for node in graph.nodes if node.leaf is not None} == {
        f"{path}.{name}" for path in (*made, "2") if "Tanh" not in path for name in ("weight", "bias")
    }


def test_a_module_of_a_list_has_one_name_at_each_call() -> None:
    """A list is no ModuleList, so it is part of no model; its second call is no second module."""

    class Listing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 3)
            self.parts = [nn.Linear(3, 3), nn.Linear(3, 3)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for part in (*self.parts, self.parts[1]):
                x = part(x)
            return self.first(x)

    model = Listing()
    recorder, names = Recorder(), Names()
    with recorder:
        model(torch.randn(2, 3))
    names.add_module([("", model), ("first", model.first)], [], "")
    paths = PathsOfCalls(recorder, names)

    assert [paths.of(place) for place in range(5)] == ["", "Linear", "Linear#2", "Linear#2", "first"]


def test_a_shared_module_with_parameters_keeps_its_path_wherever_it_is_called() -> None:
    """Its parameters have that one; what a shared module without them makes belongs to the block that calls it."""

    class Calling(nn.Module):
        def __init__(self, *parts: nn.Module) -> None:
            super().__init__()
            self.first, self.second = parts

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x))

    head, act = nn.Linear(3, 3), nn.ReLU()
    model, loss = Calling(head, act), Calling(head, act)
    recorder, names = Recorder(), Names()
    with recorder:
        loss(model(torch.randn(2, 3)))
    for prefix, root in (("model", model), ("loss", loss)):
        names.add_module([("", root), ("first", head), ("second", act)], [], prefix)
    paths = CalledPaths(recorder, names)

    assert [paths.of(place) for place in range(6)] == [
        "model", "model.first", "model.second", "loss", "model.first", "loss.second",
    ]  # fmt: skip


def test_paths_are_kept_until_a_model_is_gone() -> None:
    """With the name of its variable, which the model itself does not know."""
    recorder, names = Recorder(), Names()
    model = nn.Sequential(nn.Linear(3, 3))
    with recorder:
        model(torch.randn(2, 3))
    names.add_module([("", model), ("0", model[0])], [], "model")
    recorder.keep_paths(names)
    names.module_paths.clear()
    del model

    assert [recorder.module_path(number, names) for number in range(2)] == ["model", "model.0"]
