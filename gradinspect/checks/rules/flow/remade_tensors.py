"""Lines that make a new tensor of the values of others, `torch.tensor(losses)`, and what keeps the graph instead."""

import ast
from typing import NamedTuple

from gradinspect.checks.rewriting import statements_of
from gradinspect.syntax import parse_expression

_MAKERS = frozenset((
    "tensor", "as_tensor", "asarray", "new_tensor", "Tensor", "FloatTensor", "DoubleTensor", "HalfTensor", "array",
    "from_numpy",
))  # fmt: skip
_EXITS = frozenset(("item", "tolist", "numpy", "cpu", "detach"))  # on the way of a value to Python
_LISTS = (ast.List, ast.ListComp)
MAX_WRITTEN = 40  # characters of an expression that advice repeats


class Remade(NamedTuple):
    """A call that makes a tensor of a list, or of one value."""

    maker: str  # "torch.tensor"
    values: str  # "losses", without conversions to Python
    is_list: bool  # as it is written; a variable may hold one
    is_flat: bool  # torch.stack can take it

    @property
    def stacked(self) -> str:
        """Say how to join the tensors themselves."""
        if self.is_flat and len(self.values) <= MAX_WRITTEN:
            return f"torch.stack({self.values})"
        if self.is_flat:
            return "torch.stack() of the same list"
        return (
            "torch.stack(), which takes a list of tensors: each number as a tensor too, such as torch.tensor(0.0), and "
            "each inner list by a torch.stack() of its own,"
        )


def remade_tensor(code: str) -> Remade | None:
    """Find the call on a line that copies values into one tensor."""
    for statement in statements_of(code):
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and _called(part) in _MAKERS and part.args:
                first = part.args[0]
                while isinstance(first, ast.Call) and _called(first) in _MAKERS and first.args:  # of an array
                    first = first.args[0]
                values = _Staying().visit(parse_expression(ast.unparse(first)))
                if isinstance(values, ast.Name | ast.Attribute | ast.List | ast.ListComp) or _is_arithmetic(values):
                    is_flat = not isinstance(values, ast.List) or all(map(_may_be_tensor, values.elts))
                    return Remade(ast.unparse(part.func), ast.unparse(values), isinstance(values, _LISTS), is_flat)
    return None


def way_to_array(code: str) -> str:
    """Return how a line makes a tensor an array, as it is written: `.detach().cpu().numpy()`; empty if it does not."""
    for statement in statements_of(code):
        for part in ast.walk(statement):
            way, inner = "", part
            while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _EXITS:
                arguments = ", ".join(map(ast.unparse, inner.args))
                way, inner = f".{inner.func.attr}({arguments}){way}", inner.func.value
                if isinstance(inner, ast.Attribute) and inner.attr == "data":
                    way, inner = f".data{way}", inner.value
            if way.endswith(".numpy()"):
                return way
    return ""


def collects(code: str) -> bool:
    """Return whether a line puts values into a list."""
    parts = [part for statement in statements_of(code) for part in ast.walk(statement)]
    return any(isinstance(part, _LISTS) or (isinstance(part, ast.Call) and _called(part) == "append") for part in parts)


def _is_arithmetic(values: ast.expr) -> bool:
    """Return whether an expression means the same of tensors as of numbers: `total / len(rows)`."""
    calls = [part for part in ast.walk(values) if isinstance(part, ast.Call)]
    return isinstance(values, ast.BinOp) and all(_called(call) == "len" for call in calls)


def _may_be_tensor(element: ast.expr) -> bool:
    return not any(isinstance(element, kind) for kind in (ast.List, ast.Tuple, ast.Constant)) and not (
        isinstance(element, ast.UnaryOp) and isinstance(element.operand, ast.Constant)
    )


class _Staying(ast.NodeTransformer):
    """Leaves out conversions to Python: `loss.item()` and `float(loss)` are `loss`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _EXITS and not node.args:
            return node.func.value
        if isinstance(node.func, ast.Name) and node.func.id in ("float", "int") and len(node.args) == 1:
            return node.args[0]
        return node


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""
