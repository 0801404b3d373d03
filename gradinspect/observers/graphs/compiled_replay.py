"""Run each compiled graph again, operator by operator, and find the first one that computes something else.

NOTE [Two compiled graphs]
Each graph of AOTAutograd is compiled as it is, and a second time with the result of every operator among its outputs.
Both are run on copies of the arguments, with the same random numbers; so is the graph itself, one operator after the
other, and once more with other roundings. The first operator whose result is off by more than rounding is named. An
error that no single result shows, as in a fused kernel, is reported by the output of the graph that is off.
Random numbers that backward draws again are found where AOTAutograd cuts a graph: each run alone, they are right.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from msgspec.structs import replace
from torch.fx import GraphModule, Interpreter

from gradinspect.analyses.diff.compiled import OperatorValue, allowed
from gradinspect.analyses.structure.call_names import without_wrappers
from gradinspect.observers.gradients.rounding import OtherRoundings
from gradinspect.recording.frames import lines_in_stack, source_line
from gradinspect.torch_api.backends import BACKWARD, FORWARD, INFERENCE, PARTITION, Parts, boxed, run_boxed
from gradinspect.torch_api.compiled_graphs import forward_name, is_random, modules_of, operator_name, stack_of, whole_of
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops, without_grad

Direction = Literal["forward", "backward"]


class CompiledReplay:
    """Replaces the compilers of graphs."""

    def __init__(self, base_folder: Path) -> None:
        """Start without a graph.

        Args:
            base_folder: Files below it are named relative to it.
        """
        self.first_wrong: OperatorValue | None = None
        self.drawn_again: OperatorValue | None = None
        self.num_compared = 0
        self.problem = ""  # why a graph was not compared
        self._num_graphs = 0
        self._base_folder = base_folder

    def watch(self, parts: Parts) -> Parts:
        """Return compilers whose graphs are compared when they run for the first time."""
        directions: dict[str, Direction] = {FORWARD: "forward", BACKWARD: "backward", INFERENCE: "forward"}
        found = {name: self._watched(directions[name], part) for name, part in parts.items() if name in directions}
        return {**found, PARTITION: self._cutting(parts[PARTITION])} if PARTITION in parts else found

    def _cutting(self, partition: Callable[..., Any]) -> Callable[..., Any]:
        """Look for random numbers that backward draws again, of its own: an operator keeps its name in both parts."""

        @uncompiled
        def cut(*args: Any, **kwargs: Any) -> Any:
            parts = partition(*args, **kwargs)
            forward, backward = parts
            drawn = {call.name for call in forward.graph.nodes if is_random(call)}
            again = next((call for call in backward.graph.nodes if is_random(call) and call.name in drawn), None)
            if again is not None and self.drawn_again is None:
                found = self._named(again, "backward", self._num_graphs + 1)
                self.drawn_again = replace(found, is_drawn_again=True)
            return parts

        return cut

    def _watched(self, direction: Direction, compiler: Callable[..., Any]) -> Callable[..., Any]:

        @uncompiled
        def compiling(module: GraphModule, arguments: Sequence[Any]) -> Any:
            plain = deepcopy(module)
            whole = _with_all_results(module)
            compiled = compiler(module, arguments)
            try:
                every = compiler(whole, arguments)
            except Exception:  # a compiler of the program, given another graph than it expects
                every = None
            self._num_graphs += 1
            graph = _Graph(direction, self._num_graphs, plain, compiled, every)
            return self._comparing(graph)

        return compiling

    def _comparing(self, graph: "_Graph") -> Callable[[list[Any]], Any]:
        @uncompiled
        def run(arguments: list[Any]) -> Any:
            if graph.is_compared or self.first_wrong is not None:
                return run_boxed(graph.compiled, arguments)
            graph.is_compared = True
            before, copies = _random_states(), _copies(arguments)
            written = {call: arguments[place] for call, place in _writes(graph.plain)}  # running empties the list
            results = run_boxed(graph.compiled, arguments)
            with _random_numbers_kept(), without_grad(), unobserved():
                try:
                    self._compare(graph, copies, results, written, before)
                except Exception as error:  # of a backend, or of an operator that cannot run alone
                    self.problem = self.problem or f"{type(error).__name__} in compiled graph {graph.number}"
            return results

        return boxed(run)

    def _compare(
        self, graph: "_Graph", arguments: list[Any], results: Any, written: dict[Any, Any], before: Any
    ) -> None:
        exact = _Values(graph.plain).of(_copies(arguments), before)
        moved = _Values(graph.plain).of(_copies(arguments), before, rounds_otherwise=True)
        self.num_compared += 1
        if graph.every is not None:
            _set_random_states(before)
            found = run_boxed(graph.every, _copies(arguments))
            calls = _calls(graph.plain)
            values = list(found)[-len(calls) :] if calls else []
            first = next(_wrong(zip(calls, values, strict=False), exact, moved), None)
            self.first_wrong = None if first is None else self._described(graph, first.call, first)
        if self.first_wrong is None:
            flat = results if isinstance(results, tuple | list) else (results,)
            made = [*zip(_outputs(graph.plain), flat, strict=False), *written.items()]
            wrong = list(_wrong(made, exact, moved))
            self.first_wrong = self._of_outputs(graph, wrong) if wrong else None

    def _of_outputs(self, graph: "_Graph", wrong: Sequence["_Wrong"]) -> OperatorValue:
        """Name what all wrong outputs come from, or the first of them, with the largest error."""
        is_fused = graph.every is not None
        shared = last_shared([one.call for one in wrong]) if is_fused and len(wrong) > 1 else None
        if shared is not None and not stack_of(whole_of(shared)):  # its line is not known
            shared = None
        worst = wrong[0] if shared is None else max(wrong, key=lambda one: one.relative)
        found = self._described(graph, worst.call if shared is None else shared, worst)
        num_results = 1 if shared is None else len(wrong)
        return replace(found, is_fused=is_fused, num_results=num_results)

    def _described(self, graph: "_Graph", call: Any, wrong: "_Wrong") -> OperatorValue:
        named = self._named(call, graph.direction, graph.number)
        return replace(named, error=wrong.relative, rounding=wrong.noise / wrong.norm if wrong.norm else 0.0)

    def _named(self, call: Any, direction: Direction, number: int) -> OperatorValue:
        whole = whole_of(call)
        made = whole if stack_of(whole) else _given(whole)
        modules = modules_of(made)
        lines = list(lines_in_stack(stack_of(made)))
        return OperatorValue(
            direction=direction,
            operator=operator_name(whole) if whole.op == "call_function" else str(whole.name),
            forward=forward_name(made),
            module=without_wrappers(modules[-1][1].rpartition("]")[2].strip(".")) if modules else "",
            frame=source_line(*lines[-1][:2], self._base_folder) if lines else None,
            error=0.0,
            rounding=0.0,
            number=number,
        )


class _Graph:
    """A graph of AOTAutograd, and what its compiler has made of it."""

    def __init__(self, direction: Direction, number: int, plain: GraphModule, compiled: Any, every: Any) -> None:
        self.direction: Direction = direction
        self.number = number
        self.plain = plain
        self.compiled = compiled
        self.every = every  # the same, with the result of each operator among its outputs; None: it cannot be compiled
        self.is_compared = False


class _Wrong(NamedTuple):
    """A result that is off by more than rounding."""

    call: Any
    error: float
    noise: float
    norm: float

    @property
    def relative(self) -> float:
        return self.error / self.norm if self.norm else float("inf")


def _wrong(made: Iterable[tuple[Any, Any]], exact: dict[str, Any], moved: dict[str, Any]) -> Iterator[_Wrong]:
    """Yield those of some calls and their results that are off, in their order."""
    for call, value in made:
        name = getattr(call, "name", None)
        if name is None or name not in exact or name not in moved or not _is_comparable(value, exact[name]):
            continue
        norm, error = _off(exact[name], value)
        _, noise = _off(exact[name], moved[name])
        if error > allowed(noise, norm, str(value.dtype).removeprefix("torch."), ops.numel(value)):
            yield _Wrong(call, error, noise, norm)


def last_shared(calls: Sequence[Any]) -> Any:
    """Return the last operator that all of some calls come from; None if there is none."""
    shared = set.intersection(*map(_sources, calls))
    return next((call for call in reversed(calls[0].graph.nodes) if call in shared), None)


def _sources(call: Any) -> set[Any]:
    """Return the calls that one depends on, with itself."""
    found, todo = set(), [call]
    while todo:
        one = todo.pop()
        if one not in found and one.op == "call_function":
            found.add(one)
            todo += one.all_input_nodes
    return found


class _Values(Interpreter):
    """Runs a graph as it is, and keeps what each operator returns."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self._wanted = {call.name for call in _calls(module)} | {
            call.name for call in _outputs(module) if hasattr(call, "name")
        }
        self._found: dict[str, Any] = {}

    def of(self, arguments: Sequence[Any], random_states: Any, *, rounds_otherwise: bool = False) -> dict[str, Any]:
        _set_random_states(random_states)
        with OtherRoundings(1) if rounds_otherwise else nullcontext():
            self.run(*arguments, enable_io_processing=False)
        return self._found

    def run_node(self, n: Any) -> Any:
        result = super().run_node(n)
        if n.name in self._wanted and isinstance(result, torch.Tensor):
            self._found[n.name] = ops.clone(result)  # an operator that comes later may write into it
        return result


def _given(call: Any) -> Any:
    """Return what made the last argument of a call that AOTAutograd has added, as to write into an input."""
    return next((one for one in map(whole_of, reversed(call.all_input_nodes)) if stack_of(one)), call)


def _calls(module: GraphModule) -> list[Any]:
    """List the calls whose result is a tensor of numbers that are rounded."""
    return [
        call
        for call in module.graph.nodes
        if call.op == "call_function" and isinstance(value := call.meta.get("val"), torch.Tensor) and _is_number(value)
    ]


def _outputs(module: GraphModule) -> list[Any]:
    (output,) = (call for call in module.graph.nodes if call.op == "output")
    found = output.args[0]
    return list(found) if isinstance(found, tuple | list) else [found]


def _writes(module: GraphModule) -> Iterator[tuple[Any, int]]:
    """Yield the calls that write into an input, and which one."""
    places = {call: place for place, call in enumerate(module.graph.find_nodes(op="placeholder"))}
    for call in module.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        if call.args[0] in places:
            yield call, places[call.args[0]]


def _with_all_results(module: GraphModule) -> GraphModule:
    """Return a copy that also returns the result of each operator."""
    found = deepcopy(module)
    (output,) = (call for call in found.graph.nodes if call.op == "output")
    given = output.args[0]
    first = tuple(given) if isinstance(given, tuple | list) else (given,)
    output.args = ((*first, *_calls(found)),)
    found.recompile()
    return found


def _is_number(value: torch.Tensor) -> bool:
    return bool(ops.is_floating_point(value) or ops.is_complex(value))


def _is_comparable(value: Any, exact: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.shape == exact.shape and value.dtype == exact.dtype


def _off(exact: Any, value: Any) -> tuple[float, float]:
    """Return the norm of a tensor, and that of its difference from another; infinite if only one is finite."""
    kind = torch.complex128 if ops.is_complex(exact) else torch.float64
    mine, theirs = ops.to(exact, kind), ops.to(value, kind)
    is_number = ops.isfinite(mine)
    if not bool(ops.item(ops.all(ops.eq(is_number, ops.isfinite(theirs))))):
        return 1.0, float("inf")
    zero = ops.zeros_like(mine)
    norm = ops.vector_norm(ops.where(is_number, mine, zero))
    error = ops.vector_norm(ops.where(is_number, ops.sub(mine, theirs), zero))
    return float(ops.item(norm)), float(ops.item(error))


def _copies(arguments: Sequence[Any]) -> list[Any]:
    """Copy tensors with their strides, each storage apart: a compiled graph may write into what it is given."""
    return [_copy(one) if isinstance(one, torch.Tensor) else one for one in arguments]


def _copy(one: torch.Tensor) -> torch.Tensor:
    """Copy the whole storage: compiled code relies on strides, also those of a part or of an expanded tensor."""
    with without_grad():
        flat = ops.empty(0, dtype=one.dtype, device=one.device)
        return ops.set_(flat, ops.untyped_storage(one).clone(), ops.storage_offset(one), one.shape, one.stride())


def _random_states() -> dict[str, Any]:
    states: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _set_random_states(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])


@contextmanager
def _random_numbers_kept() -> Iterator[None]:
    """Leave the generators as they are."""
    after = _random_states()
    try:
        yield
    finally:
        _set_random_states(after)
