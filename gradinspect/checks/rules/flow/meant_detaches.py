"""Lines on which a detach() may be intended: no remedy is certain, so the finding asks the question that decides."""

import ast

from gradinspect.checks.rewriting import statements_of


def which_detach(code: str, name: str) -> str | None:
    """Ask what is meant on a line that detaches; None if it has one detach(), and no straight-through estimator.

    Args:
        code: The line.
        name: What no gradient reaches.
    """
    parts = [part for statement in statements_of(code) for part in ast.walk(statement)]
    straight = next((found for part in parts if (found := _straight(part)) is not None), None)
    if straight is not None:
        return _of_straight(straight, name)
    detached = [of for part in parts if (of := _detached(part)) is not None]
    if len(detached) < 2:
        return None
    return (
        f"Which of the {len(detached)} calls of detach() on that line are meant? Each keeps the gradient from what it "
        f"is called on. Remove it from the side that should learn, into which {name} goes, and keep it on the other."
    )


def _of_straight(straight: tuple[ast.expr, ast.expr], name: str) -> str:
    first, other = straight
    inner = _detached(first)
    if inner is not None:
        z, q = ast.unparse(inner), ast.unparse(other)
        return f"Write a straight-through estimator, {z} + ({q} - {z}).detach(), whose first {z} keeps its graph."
    z, q = ast.unparse(first), ast.unparse(other)
    return (
        f"Keep detach() there: {z} + ({q} - {z}).detach() is a straight-through estimator, and passes the gradient to "
        f"{z} alone. What should train {name}? Usually a term of its own, such as ({q} - {z}.detach()).square().mean()."
    )


def _straight(part: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Read z and q of z + (q - z).detach(), in either order; z may be detached, too."""
    if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Add):
        return None
    for first, second in ((part.left, part.right), (part.right, part.left)):
        difference = _detached(second)
        if isinstance(difference, ast.BinOp) and isinstance(difference.op, ast.Sub):
            plain = _detached(first) or first
            if ast.unparse(_detached(difference.right) or difference.right) == ast.unparse(plain):
                return first, difference.left
    return None


def _detached(part: ast.AST) -> ast.expr | None:
    """Return what detach() is called on."""
    match part:
        case ast.Call(func=ast.Attribute(value=inner, attr="detach"), args=[]):
            return inner
    return None
