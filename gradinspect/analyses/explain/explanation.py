"""What a node class computes: its forward op, the gradient of each input, what it saves, its source."""

import difflib
import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gradinspect.analyses.explain.double_backward import DoubleBackward, double_backward
from gradinspect.analyses.explain.hand_written import COMPOSED, HAND_WRITTEN, HandWritten
from gradinspect.analyses.memory.saved_rows import saved_rows_of
from gradinspect.analyses.structure.call_names import node_shown
from gradinspect.analyses.structure.node_names import function_words, hook_names
from gradinspect.analyses.summary import describe_capture
from gradinspect.catalog import Catalog, Entry, operator_of
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, Node, NodeKind, Record, argument_name, frame_of, module_name
from gradinspect.torch_sources import SourceLocation, class_location, derivative_location, helper_location, web_address
from gradinspect.units import format_tensor, name_matches

NEAR = 4  # suggested names
_PREFIXES = (
    "torch::autograd::generated::", "torch::autograd::", "torch.nn.functional.", "torch.ops.aten.", "torch.Tensor.",
    "torch.", "aten::", "aten.", "Tensor.", "F.",
)  # fmt: skip
_ARGUMENT = re.compile(r"(Tensor\S*)\s+(\w+)")


class InputGradient(Record, frozen=True, kw_only=True):
    """The formula for the gradient of one forward argument."""

    argument: str
    place: str  # in next_functions: "0", "2 and up" for a list; "" if torch does not say
    formula: str


class SourceLine(Record, frozen=True, kw_only=True):
    """A location in source code."""

    what: str
    place: SourceLocation
    address: str | None = None


class NodeFacts(Record, frozen=True, kw_only=True):
    """One node of a recorded graph."""

    node: int
    where: str  # "loss of backward #1  mlp.py:24": which graph
    outputs: tuple[str, ...]  # "f32[32, 4]"
    module: str | None
    line: str | None  # "mlp.py:22  loss = ..."
    edges: tuple[str, ...]  # "self: #4 ReluBackward0"
    saved: tuple[str, ...]  # "_saved_mat1  f32[32, 64]  live"
    hooks: tuple[str, ...] = ()  # "post: clip"
    function: str | None = None  # qualified class of a custom Function
    made_by: str | None = None  # class of the node whose backward made it


class Explanation(Record, frozen=True, kw_only=True):
    """Everything known about one class."""

    name: str
    signature: str = ""  # of the forward op; "" for a hand-written node
    text: str = ""  # for a hand-written node
    gradients: tuple[InputGradient, ...] = ()
    not_differentiable: tuple[str, ...] = ()  # tensor arguments without a gradient
    saved: tuple[str, ...] = ()  # "_saved_other"
    outputs: tuple[str, ...] = ()  # those of `saved` that are outputs of the forward op
    double: DoubleBackward | None = None
    double_text: str = ""  # for a hand-written node
    sources: tuple[SourceLine, ...] = ()
    breakpoint: str = ""
    facts: NodeFacts | None = None  # if the request was for a node of a graph


def explain_node(graph: Graph, number: int, catalog: Catalog) -> Explanation:
    """Explain one node of a recorded graph: its class, and the facts about this node."""
    node = graph.nodes[number]
    is_known = node.name in catalog.entries or node.name in HAND_WRITTEN
    known = explain_class(node.name, catalog) if is_known else Explanation(name=node.name, text=_UNKNOWN[node.kind])
    return replace(known, facts=_facts(graph, number))


_UNKNOWN: dict[NodeKind, str] = {
    "custom": "The backward of a custom autograd.Function: its formulas are the code of its backward().",
    "compiled": "A compiled region: its backward is a compiled graph.",
    "generated": "A generated class that is missing from derivatives.yaml of this torch.",
    "accumulate_grad": "A leaf.",
    "copy_slices": "An in-place operation on a view.",
    "opaque": "A node written in C++ without readable attributes.",
}


def _facts(graph: Graph, number: int) -> NodeFacts:
    node = graph.nodes[number]
    frame = frame_of(graph, node)
    call = None if node.module is None else graph.modules[node.module]
    return NodeFacts(
        node=number,
        where=describe_capture(graph),
        outputs=tuple("None" if info is None else format_tensor(info) for info in node.forward_outputs),
        module=None if call is None else f"{module_name(graph, call.path)}  {call.class_name}",
        line=None if frame is None else f"{frame.file}:{frame.line}  {frame.code}".rstrip(),
        edges=tuple(_edge(graph, node, position) for position in range(len(node.next_edges))),
        saved=tuple(
            "  ".join(filter(None, (row.attribute, row.value, row.status, row.shown_origin)))
            for row in saved_rows_of(graph, number)
        ),
        hooks=hook_names(node),
        function=function_words(graph, number),
        made_by=node.made_by,
    )


def _edge(graph: Graph, node: Node, position: int) -> str:
    edge = node.next_edges[position]
    name = argument_name(graph, node, position) or f"[{position}]"
    if edge is None:
        return f"{name}: None"
    return f"{name}: {node_shown(graph, edge.next_node)}" + (f" (input_nr {edge.input_nr})" if edge.input_nr else "")


def explain_class(name: str, catalog: Catalog) -> Explanation:
    """Explain a class by its exact name; use `find_classes` to find it."""
    known = HAND_WRITTEN.get(name)
    return _hand_written(known, catalog) if known is not None else _generated(catalog.entries[name], catalog)


def _hand_written(known: HandWritten, catalog: Catalog) -> Explanation:
    place = class_location(known.name)
    return Explanation(
        name=known.name,
        text=known.text,
        double_text=known.double_backward,
        sources=() if place is None else (_source(f"struct {known.name}", place, catalog),),
        breakpoint=known.breakpoint,
    )


def _generated(entry: Entry, catalog: Catalog) -> Explanation:
    double = double_backward(entry, catalog)
    return Explanation(
        name=entry.name,
        signature=entry.signature,
        gradients=tuple(_gradients(entry)),
        not_differentiable=tuple(_without_place(entry)),
        saved=tuple(f"_saved_{name}" for name in entry.saved),
        outputs=tuple(f"_saved_{name}" for name in entry.outputs),
        double=double,
        sources=tuple(_sources(entry, double, catalog)),
        breakpoint=f"torch::autograd::generated::{entry.name}::apply",
    )


def _gradients(entry: Entry) -> Iterator[InputGradient]:
    """Yield the inputs in the order of next_functions, each with its formula."""
    places = {name.rstrip("*"): str(index) for index, name in enumerate(entry.arguments)}
    lists = [index for index, name in enumerate(entry.arguments) if name.endswith("*")]
    for name, index in places.items():
        if lists and int(index) >= lists[0]:
            places[name] = f"{index} and up" if int(index) == lists[0] else "after those"
    formulas = {argument: formula.text for formula in entry.formulas for argument in formula.inputs}
    for formula in entry.formulas:
        for argument in formula.inputs:
            yield InputGradient(argument=argument, place=places.get(argument, ""), formula=formulas[argument])


def _without_place(entry: Entry) -> Iterator[str]:
    """Yield the tensor arguments of the forward op without a gradient."""
    arguments = entry.signature.partition("(")[2].rpartition(") ->")[0]
    with_place = {name.partition("[")[0].rstrip("*") for name in entry.arguments}
    with_place |= {name for formula in entry.formulas for name in formula.inputs}
    return (name for _, name in _ARGUMENT.findall(arguments) if name not in with_place)


def _sources(entry: Entry, double: DoubleBackward, catalog: Catalog) -> Iterator[SourceLine]:
    place = derivative_location(entry.signature.partition("(")[0])
    if place is not None:
        yield _source("formulas", place, catalog)
    place = class_location(entry.name)
    if place is not None:
        yield _source(f"struct {entry.name}", place, catalog)
    for helper in double.helpers:
        place = helper_location(helper)
        if place is not None:
            yield _source(f"{helper}()", place, catalog)


def _source(what: str, place: SourceLocation, catalog: Catalog) -> SourceLine:
    return SourceLine(what=what, place=place, address=web_address(place, catalog.torch_version))


def find_classes(word: str, catalog: Catalog) -> tuple[str, ...]:
    """Find the classes meant by `MulBackward0`, `mul`, `torch.mul`, `aten::mul.Tensor` or `x.mul_()`.

    Raises:
        GradInspectError: There is none; the hint lists the closest names.
    """
    plain = _plain(word)
    if plain in catalog.entries or plain in HAND_WRITTEN:
        return (plain,)
    by_schema = [entry.name for entry in catalog.entries.values() if plain == entry.signature.partition("(")[0]]
    if by_schema:
        return tuple(by_schema)
    lower = plain.lower()
    stem = lower.removesuffix("_") if not lower.startswith("_") else lower
    classes = [
        entry.name for entry in catalog.entries.values() if operator_of(entry.signature).lower() in {lower, stem}
    ]
    suffix = "" if lower.endswith("backward") else "backward"
    numbered = re.compile(rf"{re.escape(lower)}{suffix}\d*")
    classes = classes or [name for name in all_names(catalog) if name.lower() == lower]
    classes = classes or [name for name in all_names(catalog) if numbered.fullmatch(name.lower())]
    if not classes:
        raise _unknown(word, plain, catalog)
    return tuple(classes)


def _plain(word: str) -> str:
    """Strip what surrounds a name in code or output: `<AddBackward0 object at 0x..>`, `torch.`, `()`."""
    plain = word.strip().strip("<>").partition(" object at ")[0].removesuffix("()")
    return next((plain.removeprefix(prefix) for prefix in _PREFIXES if plain.startswith(prefix)), plain)


def all_names(catalog: Catalog) -> list[str]:
    """List every class that can be explained."""
    return sorted({*catalog.entries, *HAND_WRITTEN})


def search(pattern: str, catalog: Catalog) -> list[str]:
    """List the classes whose name, signature or formulas contain a text or match a pattern such as `*Pool*`."""
    wanted = pattern.lower()

    def matches(entry: Entry) -> bool:
        if any(character in wanted for character in "*?["):
            return name_matches(entry.name.lower(), wanted) or name_matches(
                operator_of(entry.signature).lower(), wanted
            )
        texts = (entry.name, entry.signature, *(formula.text for formula in entry.formulas))
        return any(wanted in text.lower() for text in texts)

    found = [entry.name for entry in catalog.entries.values() if matches(entry)]
    found += [node.name for node in HAND_WRITTEN.values() if wanted in node.name.lower() or wanted in node.text.lower()]
    return sorted(set(found))


def _unknown(word: str, plain: str, catalog: Catalog) -> GradInspectError:
    operators: Iterable[str] = {operator_of(entry.signature) for entry in catalog.entries.values()}
    near = difflib.get_close_matches(plain, [*all_names(catalog), *operators], n=NEAR, cutoff=0.6)
    near = near or [name for name in all_names(catalog) if plain.lower() in name.lower()][:NEAR]
    if plain in COMPOSED or catalog.operators.get(plain) == "composite":
        names = COMPOSED.get(plain, ())
        made = f" It makes {' and '.join(names)}." if names else ""
        hint = f"gradinspect explain {names[0]}." if names else "Run `gradinspect trace` on a program that calls it."
        return GradInspectError(
            f"'{word}' has no node of its own: it is composed of other operators, which have theirs.{made}",
            f"Try: {hint}" if names else hint,
        )
    if catalog.operators.get(plain) == "none":
        return GradInspectError(f"'{word}' has no derivative.", f"Closest matches: {', '.join(near)}." if near else "")
    hint = f"Closest matches: {', '.join(near)}." if near else "Try: gradinspect explain --search TEXT"
    return GradInspectError(f"There is no Backward class or operator '{word}'.", hint)
