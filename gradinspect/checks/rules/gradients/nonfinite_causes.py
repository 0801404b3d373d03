"""Why an operator makes NaN or Inf, in its value or its derivative, and what keeps it finite."""

from gradinspect.checks.facts.graphs import FirstNonfinite
from gradinspect.checks.findings import place_of
from gradinspect.checks.rules.gradients.gradient_causes import Cause, cause_in, operator_of
from gradinspect.checks.rules.losses.loss_graph import made_input, maker, saved_as
from gradinspect.graph import Graph, Node, consumers, frame_of

_POSITIVE = "Clamp its input: x.clamp(min=1e-8)."
_BETWEEN = "Clamp its input with a margin: x.clamp(-1 + 1e-6, 1 - 1e-6), not to -1 and 1 themselves."
_LOGS = ("Log", "Log2", "Log10")
_INVERSE = ("Acos", "Asin", "Atanh")
_DIVISOR = "Keep the divisor away from 0: torch.where(divisor == 0, 1.0, divisor), or x.clamp(min=1e-8)."
_SPREADS = ("Std", "StdMean", "Var", "VarMean")
_ONE_VALUE = "Pass correction=0, or compute it over more than one value."
SOFTMAX = ("Softmax", "LogSoftmax")
_STABLE = {
    "Softmax": "Use log_softmax() of the input instead of the logarithm of softmax().",
    "Sigmoid": "Use torch.nn.functional.logsigmoid() of the input instead of the logarithm of sigmoid().",
}
DERIVATIVES = (
    Cause(("Sqrt", "Rsqrt"), "The derivative of a root is infinite at 0.", _POSITIVE),
    Cause(_LOGS, "The derivative of a logarithm is infinite at 0.", _POSITIVE),
    Cause(("Log1P",), "Its derivative is infinite at -1.", "Clamp its input: x.clamp(min=-1 + 1e-6)."),
    Cause(("Logit",), "Its derivative is infinite at 0 and 1.", "Clamp its input: x.clamp(1e-6, 1 - 1e-6)."),
    Cause(("Div", "Reciprocal"), "Division by 0 has no finite derivative.", _DIVISOR),
    Cause(("Pow",), "A power below 1 has an infinite derivative at 0.",
          "Keep its input away from 0: x.clamp(min=1e-8), if it is never negative."),
    Cause(_SPREADS, "The derivative of the variance of a single value is NaN.", _ONE_VALUE),
    Cause(_INVERSE, "The derivative is infinite at -1 and 1.", _BETWEEN),
    Cause(("Acosh",), "The derivative is infinite at 1.", "Clamp its input: x.clamp(min=1 + 1e-6)."),
)  # fmt: skip
NANS = (
    Cause(("Sqrt", "Rsqrt"), "The root of a negative number is NaN.", _POSITIVE),
    Cause(_LOGS, "The logarithm of a negative number is NaN.", _POSITIVE),
    Cause(("Log1P",), "Below -1 it is NaN.", "Clamp its input: x.clamp(min=-1 + 1e-6)."),
    Cause(("Div",), "0 / 0 is NaN.", _DIVISOR),
    Cause(("Pow",), "A negative number to a fractional power is NaN.", _POSITIVE),
    Cause(_INVERSE, "Outside -1 and 1 it is NaN.", _BETWEEN),
    Cause(("Acosh",), "Below 1 it is NaN.", "Clamp its input: x.clamp(min=1 + 1e-6)."),
    Cause(SOFTMAX, "A row of which every entry is -inf has no softmax.",
          "Mask with torch.finfo(x.dtype).min instead of -inf, or keep one entry of each row unmasked."),
    Cause(_SPREADS, "The variance of a single value is NaN.", _ONE_VALUE),
)  # fmt: skip
INFINITIES = (
    Cause(("Rsqrt",), "At 0 it is infinite.", _POSITIVE),
    Cause(_LOGS, "The logarithm of 0 is infinite.", _POSITIVE),
    Cause(("Log1P",), "At -1 it is infinite.", "Clamp its input: x.clamp(min=-1 + 1e-6)."),
    Cause(("Logit",), "At 0 and 1 it is infinite.", "Clamp its input: x.clamp(1e-6, 1 - 1e-6)."),
    Cause(("Div", "Reciprocal"), "Division by 0 is infinite.", _DIVISOR),
    Cause(("Atanh",), "At -1 and 1 it is infinite.", _BETWEEN),
    Cause(("Exp", "Expm1", "Exp2", "Sinh", "Cosh"), "It overflows where its input is large.",
          "Keep its input small: subtract the maximum first, as logsumexp and softmax do, or clamp it."),
)  # fmt: skip
_EMPTY = "The mean of no elements is NaN."
_MEANS = ("mean", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_FUNCTIONS = {"truediv": "div", "true_divide": "div", "divide": "div", "rtruediv": "div", "rdiv": "div", "rmul": "mul"}
_CARRIES = ("Add", "Sub", "Rsub", "Neg", "Mul", "Abs")  # NaN stays NaN
_MOST_STEPS = 4
_PRODUCTS = ("Mul", "Mm", "Bmm", "Mv", "Dot", "Addmm", "Baddbmm", "Addbmm", "Convolution")
_MASKS = ("MaskedFill", "Where", "Add", "Sub", "Baddbmm", "IndexPut", "CopySlices")
_MARGINS = {"float16": {"1e-8": "1e-4", "1e-6": "1e-3"}, "bfloat16": {"1e-6": "1e-2"}}  # that the dtype can represent


def derivative_cause(graph: Graph, node: Node) -> Cause | None:
    """Return why the derivative of a node is not finite."""
    if operator_of(node) in SOFTMAX:
        made = made_input(graph, node)
        cause = cause_in(NANS, node)
        if cause is None or made is None or operator_of(made.node) not in _MASKS:
            return None
        masked = frame_of(graph, made.node)
        return cause._replace(places=place_of("masked", masked), where=masked)
    return None if is_smooth_power(node) else _adapted(graph, node, cause_in(DERIVATIVES, node))


def nan_operand(graph: Graph, node: Node) -> int | None:
    """Return the node whose result was NaN already, of a product or a square whose derivative is NaN.

    The derivative of a product of finite values is finite, so one was not. The values are gone after backward: it is
    named only if there is one operand whose operator can make NaN, or what sums and scales it.
    """
    if operator_of(node) not in _PRODUCTS and not is_smooth_power(node):
        return None
    found = {number for number in _made_of(graph, node) if cause_in(NANS, graph.nodes[number])}
    found = {number for number in found if _may_be_masked(graph, number)}
    return found.pop() if len(found) == 1 else None


def _made_of(graph: Graph, node: Node) -> set[int]:
    """Return the nodes that made the inputs of a node, past a few sums and products with constants."""
    found, todo = set[int](), [(node, 0)]
    for one, steps in todo:
        made = [read for edge in one.next_edges if edge is not None and (read := maker(graph, edge.next_node))]
        for read in made:
            if operator_of(read.node) in _CARRIES and steps < _MOST_STEPS:
                todo.append((read.node, steps + 1))
            else:
                found.add(read.number)
    return found


def is_smooth_power(node: Node) -> bool:
    """Return whether a node is a power of at least one, whose derivative is finite where its input is."""
    exponent = saved_as(node, "_saved_exponent")
    return operator_of(node) == "Pow" and isinstance(exponent, int | float) and exponent >= 1


def _may_be_masked(graph: Graph, number: int) -> bool:
    """Return whether a node is not a softmax, or is one whose input was masked."""
    node = graph.nodes[number]
    made = made_input(graph, node)
    return operator_of(node) not in SOFTMAX or (made is not None and operator_of(made.node) in _MASKS)


def value_cause(graph: Graph, node: Node, *, is_nan: bool) -> Cause | None:
    """Return why the value that a node made is not finite.

    Args:
        graph: The graph.
        node: The node.
        is_nan: Whether it is NaN, rather than infinite.
    """
    if is_nan and operator_of(node) == "Mean" and _is_empty(node):
        return Cause(("Mean",), _EMPTY, "Divide the sum by the number, clamped to at least 1.")
    if _divides_by_constant(node):
        return None
    masked = None if is_nan else _masked_before(graph, node)
    if masked is not None:
        return masked
    if not _may_be_masked(graph, graph.nodes.index(node)):
        return None  # its input was not finite
    found = _adapted(graph, node, cause_in(NANS if is_nan else INFINITIES, node))
    if found is None and not is_nan and _dtype(node) == "float16":
        why = "float16 is infinite above 65,504."
        return Cause((operator_of(node),), why, "Compute it in float32 or bfloat16.")
    return found


def _divides_by_constant(node: Node) -> bool:
    """Return whether a node divides by a number that is not learned, such as a length: its input is at fault then."""
    divisor = next((value.tensor for value in node.saved if value.name == "_saved_other"), None)
    is_number = divisor is None or divisor.info.shape == ()
    return operator_of(node) == "Div" and is_number and node.next_edges[1:] == (None,)


def _masked_before(graph: Graph, node: Node) -> Cause | None:
    """Explain logarithms of a softmax whose input was masked, which a product multiplies by probabilities of 0."""
    number = graph.nodes.index(node)
    softmax = maker(graph, number) if operator_of(node) in _LOGS else None
    edge = node.next_edges[0] if softmax is not None and node.next_edges else None
    is_log = edge is not None and operator_of(graph.nodes[edge.next_node]) == "Softmax"
    normalized = graph.nodes[edge.next_node] if is_log and edge is not None else node
    if operator_of(normalized) not in SOFTMAX:
        return None
    made = made_input(graph, normalized)
    is_multiplied = any(operator_of(graph.nodes[one.node]) == "Mul" for one in consumers(graph).get(number, ()))
    if made is None or operator_of(made.node) not in _MASKS or not is_multiplied:
        return None
    stable = f" {_STABLE['Softmax']}" if is_log else ""
    return Cause(
        SOFTMAX,
        "Where its input is masked with -inf, the probability is 0 and its logarithm -inf: their product is NaN.",
        f"Mask with torch.finfo(x.dtype).min instead of -inf.{stable}",
        places=place_of("masked", frame_of(graph, made.node)),
        where=frame_of(graph, made.node),
    )


def cause_of_first(graph: Graph, first: FirstNonfinite) -> Cause | None:
    """Return why the first call that did so made NaN or infinities: of its node, if its line made one such node."""
    name = _known_name(first.op)
    made = [node for node in graph.nodes if operator_of(node).lower() == name and frame_of(graph, node) == first.made]
    found = value_cause(graph, made[0], is_nan=first.is_nan) if len(made) == 1 else None
    return found or cause_named(first.op, is_nan=first.is_nan)


def cause_named(op: str, *, is_nan: bool) -> Cause | None:
    """Return why a function of torch makes NaN or infinities: `log`, `true_divide`, `mul`."""
    name = _known_name(op)
    if is_nan and name in ("mul", "multiply"):
        return Cause(("Mul",), "0 * inf is NaN.", "Use torch.where() or masked_fill() in place of a product with 0.")
    if is_nan and name in _MEANS:
        return Cause((), _EMPTY, "Divide the sum by the number, clamped to at least 1.")
    known = {one.lower(): cause for cause in (NANS if is_nan else INFINITIES) for one in cause.classes}
    return known.get(name)


def _known_name(op: str) -> str:
    return _FUNCTIONS.get(op, op) if op in (*_FUNCTIONS, *_MEANS) else op.replace("_", "")


def _adapted(graph: Graph, node: Node, cause: Cause | None) -> Cause | None:
    """Name the stable form of the logarithm of another function, and constants that the dtype can represent."""
    if cause is None:
        return None
    edge = node.next_edges[0] if node.next_edges else None
    stable = None if edge is None else _STABLE.get(operator_of(graph.nodes[edge.next_node]))
    if stable is not None and cause.classes == _LOGS:
        return cause._replace(remedy=stable)
    remedy = cause.remedy
    for number, other in _MARGINS.get(_dtype(node), {}).items():
        remedy = remedy.replace(number, other)
    return cause._replace(remedy=remedy)


def _dtype(node: Node) -> str:
    info = node.forward_outputs[0] if node.forward_outputs else None
    return "" if info is None else info.dtype


def _is_empty(node: Node) -> bool:
    """Return whether a reduction had no elements."""
    return any(isinstance(value.value, tuple) and 0 in value.value for value in node.saved)
