"""Operators whose result has more elements than either of their inputs, as far as that looks accidental.

NOTE [What is accidental]
Two tensors with the same elements in the same order except for dimensions of length 1, and with different numbers of
dimensions: code that wants all pairs does not rely on an implicit leading dimension. It counts where one side is
learned and the other is given, and where only elementwise operators lie between the growth and the reduction to a
scalar. Two learned sides that are added count where the square that they grow to is compared with a given row: what is
to be predicted has one dimension. A dimension that is added on the spot, or a mask of the grown shape, shows that all
pairs are wanted.

NOTE [Shapes of equal length]
`[64, 1] - [1, 64]` and `[64, 1] - [64, 4]` are also what people write for pairs, quantiles and ensembles. So these
count only in a loss function of torch, where torch warns too, or where a plain error is squared or made absolute and
then reduced, and not in every form: a column of predictions against several columns of targets, or against a row, but
not several predictions against one target, a parameter against a batch, or pairs whose graph has pairs of learned ones
too, as energy distances do.
"""

from math import prod

from gradinspect.graph import Frame, Record

Shape = tuple[int, ...]
_DIFFERENCES = ("sub", "rsub")
LOSSES = ("mse_loss", "huber_loss", "smooth_l1_loss", "l1_loss", "kl_div", "poisson_nll_loss", "soft_margin_loss")


def is_square_against_side(op: str, shapes: tuple[Shape, Shape], is_learned: tuple[bool, bool]) -> bool:
    """Return whether `[n, n]` that is learned is compared with `[n]` that is given."""
    learned, given = shapes if is_learned[0] else shapes[::-1]
    is_comparison = op in LOSSES or op in _DIFFERENCES
    return is_comparison and is_learned[0] != is_learned[1] and len(given) == 1 and learned == given * 2


class GrownOperator(Record, frozen=True, kw_only=True):
    """An operator whose result has more elements than either of its inputs."""

    sequence_nr: int  # of its node
    op: str  # "sub", as torch names it
    shapes: tuple[Shape, Shape]
    is_learned: tuple[bool, bool]  # whether a gradient goes to each side
    frame: Frame | None = None


def grown_shape(left: Shape, right: Shape) -> Shape | None:
    """Return what two shapes grow to, if it looks accidental. NOTE [What is accidental]."""
    if len(left) == len(right) or without_ones(left) != without_ones(right):
        return None
    length = max(len(left), len(right))
    pairs = zip((1,) * (length - len(left)) + left, (1,) * (length - len(right)) + right, strict=True)
    grown = tuple(there if here == 1 else here for here, there in pairs)
    return grown if prod(grown) > prod(left) else None


def slipped_shape(op: str, shapes: tuple[Shape, Shape], is_learned: tuple[bool, bool]) -> Shape | None:
    """Return what an operator's inputs grow to, if it may be accidental. NOTE [Shapes of equal length]."""
    left, right = shapes
    if len(left) != len(right):
        return grown_shape(left, right)
    grown = tuple(map(max, left, right))
    if left == right or prod(left) < 2 or prod(right) < 2:
        return None
    is_cross = grown not in shapes and without_ones(left) == without_ones(right)
    if op in LOSSES or (op in _DIFFERENCES and is_cross):
        return grown
    learned, given = shapes if is_learned[0] else (right, left)
    is_column = learned[-1] == 1 and given == grown and learned[:-1] == given[:-1]
    return grown if op in _DIFFERENCES and is_column and is_learned[0] != is_learned[1] else None


def without_ones(shape: Shape) -> Shape:
    """Leave out the dimensions of length 1."""
    return tuple(size for size in shape if size != 1)
