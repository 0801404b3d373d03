"""Record a `Graph` from live tensors."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn

from gradinspect.catalog import Catalog, load_catalog
from gradinspect.errors import GradInspectError
from gradinspect.graph import CaptureKind, CapturePoint, Graph, ModuleCall, Node, Root
from gradinspect.recording.compilation import run_in_eager, with_compilation
from gradinspect.recording.compiled import open_compiled
from gradinspect.recording.frames import FrameTable, file_of, this_folder, user_frames
from gradinspect.recording.modules import assign_modules, name_parameters_of_calls
from gradinspect.recording.names.names import Names, collect_names
from gradinspect.recording.names.variables import Variable, named_model, variables_from
from gradinspect.recording.nodes import NodeRecorder
from gradinspect.recording.outputs import OutputTensor, outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.second_order import Maker
from gradinspect.recording.transparency.collector import collector_paused
from gradinspect.recording.values.local_shapes import with_local_shapes
from gradinspect.recording.values.tensors import PLAIN_TYPES, TensorInfoTable
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.hooks import hooks_can_be_read
from gradinspect.torch_api.nodes import UNKNOWN_NR
from gradinspect.torch_api.probes import missing_sentences, require_essentials
from gradinspect.torch_api.tensors import plain_tensors_only
from gradinspect.units import format_count


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The circumstances of a recording."""

    source: str
    kind: CaptureKind = "call"
    number: int | None = None
    other_grads: int = 0
    frame: FrameType | None = None  # the user's frame, where names are looked up
    base_folder: Path = Path()
    variables: tuple[Variable, ...] = ()  # in addition to those of the frame
    plain_types: frozenset[int] = PLAIN_TYPES  # identities of tensor types that do not count as subclasses
    warnings: tuple[str, ...] = ()
    opens_compiled: bool = (
        False  # whether nodes of torch.compile are followed by what is inside; no longer as they live
    )
    makers: Mapping[int, Maker] = field(default_factory=dict)  # identity -> the node whose backward made it


def capture_graph(outputs: object, *, model: nn.Module | None = None, recorder: Recorder | None = None) -> Graph:
    """Record the autograd graph of some tensors.

    Args:
        outputs: A tensor, or any container of tensors: tuple, list, dict, dataclass, ModelOutput.
        model: Names the parameters, if the model is not among the caller's variables.
        recorder: A recorder that was active during the forward pass; without it, modules and source lines are unknown.

    Returns:
        The record. No gradient is computed, no hook runs, and nothing is kept alive.

    Raises:
        GradInspectError: None of the outputs has a graph.
    """
    found = outputs_in(outputs)
    if not found:
        raise GradInspectError(
            f"No tensor in the output of type '{type(outputs).__name__}' has a graph.",
            "Compute it from a tensor that requires grad, outside torch.no_grad().",
        )
    frame = next(user_frames(sys._getframe(1)), None)
    named = [output._replace(name=output.name or _variable_name(output, frame)) for output in found]
    moment = Moment(
        source=file_of(frame, this_folder()),
        frame=frame,
        base_folder=this_folder(),
        variables=named_model(model, frame),
        opens_compiled=True,
    )
    return record_graph(named, moment, recorder)


class WalkedGraph(NamedTuple):
    """A record, and the live graph that it was made from. Close the walk as soon as it is no longer needed."""

    graph: Graph
    walk: Walk  # of the same nodes, under the same numbers
    storage_keys: tuple[int, ...]  # of `graph.storages`, under the same numbers: what `storage_key` gives


def record_graph(outputs: Sequence[OutputTensor], moment: Moment, recorder: Recorder | None = None) -> Graph:
    """Record the graph that starts at some output tensors; see `capture_graph`."""
    (graph, walk, _), names = _walk_graph(outputs, moment, recorder)
    try:
        if not moment.opens_compiled:
            return graph
        opened = open_compiled(graph, walk.nodes, names.module_paths, moment.base_folder, _catalog()[0])
        return with_compilation(opened, moment.base_folder, run_in_eager(graph, names.uncompiled))
    finally:
        walk.close()


def walk_graph(outputs: Sequence[OutputTensor], moment: Moment, recorder: Recorder | None = None) -> WalkedGraph:
    """Record a graph, and leave its walk open."""
    return _walk_graph(outputs, moment, recorder)[0]


def _walk_graph(
    outputs: Sequence[OutputTensor], moment: Moment, recorder: Recorder | None
) -> tuple[WalkedGraph, Names]:
    require_essentials()
    catalog, warnings = _catalog()
    with collector_paused(), plain_tensors_only(), hooks_can_be_read() as has_hooks:
        edges = [output.edge for output in outputs]
        walk = Walk(node for node, _ in edges)
        try:
            num_unknown = 0 if recorder is None else _identify(walk, outputs, recorder)
            names = _names(walk, moment, recorder)
            infos = TensorInfoTable(moment.plain_types)
            nodes = NodeRecorder(walk, catalog, names, infos, has_hooks=has_hooks, recorder=recorder)
            origins = _origins(walk, moment.makers)
            modules, calls = _modules(walk, names, recorder, origins)
            frames = _frames(recorder, origins)
            table = recorder.frames if recorder is not None else FrameTable()
            point = table.number_of(moment.frame)
            index, frame_records = table.records({f for f in (*frames, point) if f is not None}, moment.base_folder)
            lines = [None if frame is None else index[frame] for frame in frames]
            records = tuple(nodes.records(modules, lines, moment.makers))
            records = with_local_shapes(records) if infos.has_local_shapes else records
            roots = tuple(
                Root(
                    node=walk.numbers[node],
                    output_nr=output_nr,
                    info=nodes.infos.of_tensor(output.value) if isinstance(output.value, torch.Tensor) else None,
                    name=output.name,
                )
                for output, (node, output_nr) in zip(outputs, edges, strict=True)
            )
        except BaseException:
            walk.close()
            raise
        finally:
            del edges
    graph = Graph(
        source=moment.source,
        torch_version=str(torch.__version__),
        captured_at=CapturePoint(
            kind=moment.kind,
            number=moment.number,
            other_grads=moment.other_grads,
            is_second_order=bool(moment.makers),
            frame=None if point is None else index[point],
        ),
        roots=roots,
        nodes=records,
        storages=nodes.storages.records(),
        modules=calls,
        frames=frame_records,
        arguments=_arguments(records, catalog.entries),
        warnings=(
            *moment.warnings,
            *missing_sentences(),
            *warnings,
            *nodes.storages.warnings,
            *_of_unknown_threads(num_unknown),
        ),
        model_name=names.model_name,
        unreached=tuple(names.unreached),
    )
    return WalkedGraph(graph, walk, nodes.storages.keys()), names


def _identify(walk: Walk, outputs: Sequence[OutputTensor], recorder: Recorder) -> int:
    """Find out which thread made each node, and return for how many that is not known."""
    others = recorder.others
    if others.has_nodes or others.is_strict:
        others.took(others.index_here(), [output.value for output in outputs])
    return walk.identify(others)


def _of_unknown_threads(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    were, they, have = ("was", "it", "has") if count == 1 else ("were", "they", "have")
    return (
        f"{format_count(count, 'node')} {were} made by a thread that was not recorded: {they} {have} no module and no "
        "line.",
    )


def _catalog() -> tuple[Catalog, tuple[str, ...]]:
    """Load the catalog; without it, a graph is recorded without argument names."""
    try:
        return load_catalog(), ()
    except Exception as error:
        reason = f"The operator catalog of this PyTorch cannot be read, so edges have no argument names: {error}"
        return Catalog(torch_version=str(torch.__version__), entries={}), (reason,)


def _names(walk: Walk, moment: Moment, recorder: Recorder | None) -> Names:
    leaves = list(walk.leaves().values())
    called = recorder.called_modules() if recorder is not None else []
    gone = recorder.kept_names.gone() if recorder is not None else []
    variables = [*moment.variables, *variables_from(moment.frame, outermost_first=True)]
    names = collect_names(leaves, called, variables, gone)
    if recorder is not None:
        names.inputs = recorder.inputs.storage_keys()
        name_parameters_of_calls(recorder, names, leaves)
    return names


def _origins(walk: Walk, makers: Mapping[int, Maker]) -> list[int]:
    """Return each node's sequence number, or that of the node whose backward made it."""
    if not makers:
        return walk.sequence_nrs
    return [makers[number].identity if number in makers else number for number in walk.sequence_nrs]


def _modules(
    walk: Walk, names: Names, recorder: Recorder | None, origins: Sequence[int]
) -> tuple[list[int | None], tuple[ModuleCall, ...]]:
    if recorder is None:
        return [None] * len(walk.nodes), ()
    if origins is walk.sequence_nrs and walk.is_in_creation_order:
        return assign_modules(recorder, names, origins)
    order = sorted(range(len(origins)), key=origins.__getitem__, reverse=True)
    ordered, calls = assign_modules(recorder, names, [origins[number] for number in order])
    by_number = dict(zip(order, ordered, strict=True))
    return [by_number[number] for number in range(len(origins))], calls


def _frames(recorder: Recorder | None, origins: Sequence[int]) -> list[int | None]:
    """Find the frame number of the user's line that made each node."""
    if recorder is None:
        return [None] * len(origins)
    return [None if identity >= UNKNOWN_NR else recorder.frame_of(identity) for identity in origins]


def _arguments(nodes: Sequence[Node], entries: Any) -> dict[str, tuple[str, ...]]:
    names = sorted({node.name for node in nodes})
    return {name: entries[name].arguments for name in names if name in entries}


def _variable_name(output: OutputTensor, frame: FrameType | None) -> str | None:
    return next((name for name, value in variables_from(frame) if value is output.value), None)
