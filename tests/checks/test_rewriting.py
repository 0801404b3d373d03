"""Lines of a program, rewritten for advice."""

import pytest

from gradinspect.checks.rewriting import (
    SourceComparison,
    assigned_names,
    augmented,
    compared,
    is_loop_index,
    out_of_place,
    part_assignment,
    read_names,
    unchained,
    with_detached,
    written_name,
)


def test_what_a_line_assigns_and_reads() -> None:
    """Tuples, attributes and augmented assignments; nothing of a statement that goes on elsewhere."""
    assert assigned_names("out, (self.h, c) = lstm(x, state)") == ["out", "self.h", "c"]
    assert read_names("total += loss") == {"total", "loss"}
    assert assigned_names("x = 1; y = x") == ["x", "y"]
    assert assigned_names("h = cell(") == []
    assert read_names("for x in batches:") == {"batches"}
    assert assigned_names("h[0] = x") == ["h"]
    assert assigned_names("*rest, last = parts") == ["rest", "last"]
    assert assigned_names("self.n: int = 2") == ["self.n"]
    assert assigned_names("a = b = c") == ["a", "b"]
    assert read_names("y = self.h + x.mean()") == {"self.h", "self", "x.mean", "x"}


@pytest.mark.parametrize(
    ("code", "rewritten"),
    [
        ("total += loss", "total = total.detach() + loss"),
        ("return torch.tanh(self.cell(x) + total)", "return torch.tanh(self.cell(x) + total.detach())"),
        ("for x in total:", None),
        ("total.add_(loss)", "total.detach().add_(loss)"),
        ("x = total; y = total", None),
        ("loss = f(", None),
        ("self.total = self.total + total.x", "self.total = self.total + total.detach().x"),
    ],
)
def test_a_variable_is_detached_where_it_is_read(code: str, rewritten: str | None) -> None:
    """Only in a statement that can be written again as a whole."""
    assert with_detached(code, ["total"]) == rewritten


@pytest.mark.parametrize(
    ("code", "op", "rewritten"),
    [
        ("h.clamp_(min=1)", "clamp_", "h = h.clamp(min=1)"),
        ("F.relu(h, inplace=True)", "relu_", "h = F.relu(h)"),
        ("x = torch.relu_(h)", "relu_", "x = torch.relu(h)"),
        ("return x.mul_(2)", "mul_", "return x.mul(2)"),
        ("h[0].mul_(2)", "mul_", None),
        ("y = model(x)", "relu_", None),
        ("torch.add_(h, x)", "add_", "h = torch.add(h, x)"),
        ("torch.add_()", "add_", None),
        ("if h.add_(x): pass", "add_", None),
        ("h.add_(", "add_", None),
        ("h: Tensor = x.add_(1)", "add_", "h: Tensor = x.add(1)"),
        ("nn.init.zeros_(w)", "zeros_", "w = nn.init.zeros(w)"),
        ("w.T.add_(1)", "add_", None),
        ("F.dropout(h, p=0.5, inplace=True)", "dropout_", "h = F.dropout(h, p=0.5)"),
        ("relu_(h)", "relu_", "h = relu(h)"),
        ("relu(h)", "relu_", None),
        ("f(h, inplace=True)", "relu_", None),
    ],
)
def test_an_operator_is_called_out_of_place(code: str, op: str, rewritten: str | None) -> None:
    """A statement assigns the result; what writes to a part of a tensor has no such form."""
    assert out_of_place(code, op) == rewritten


def test_a_chain_becomes_one_statement_for_each_operator() -> None:
    """In their order, because an argument may read what the one before it made; only known ones are out of place."""
    code = "y.sub_(y.mean(0)).div_(y.std(0))"

    assert unchained(code, {"sub_", "div_"}) == "y = y.sub(y.mean(0)); y = y.div(y.std(0))"
    assert unchained(code, {"div_"}) == "y.sub_(y.mean(0)); y = y.div(y.std(0))"
    assert unchained("y.sub_(1)", {"sub_"}) is None
    assert unchained("y.h.sub_(1).div_(2)", {"sub_"}) == "y.h = y.h.sub(1); y.h.div_(2)"
    assert unchained("z = y.sub_(1).div_(2)", {"sub_"}) is None
    assert unchained("y.sub_(1).div(2)", {"sub_"}) is None
    assert unchained("y.T.sub_(1).div_(2)", {"sub_"}) is None
    assert unchained("y[0].sub_(1).div_(2)", {"sub_"}) is None
    assert unchained("f(y).sub_(1).div_(2)", {"sub_"}) is None


def test_augmented_assignments() -> None:
    """With parentheses where they are needed; a statement that goes on is not cut in the middle."""
    assert augmented("y *= 2 + z") == "y = y * (2 + z)"
    assert augmented("h += torch.cat(") == "h = h + ..."
    assert augmented("h[0] += 1") is None
    assert augmented("self.h -= x") == "self.h = self.h - x"
    assert augmented("h **= torch.cat(") == "h = h ** ..."
    assert augmented("h = h + 1") is None
    assert augmented("h += 1; x += 1") is None


def test_parts_of_a_tensor() -> None:
    """The tensor, the index as it is written, and whether a loop counts it."""
    part = part_assignment("h[h < 0.5] *= a + b")

    assert part is not None
    assert (part.target, part.selection, part.result) == ("h", "h < 0.5", "h * (a + b)")
    assert [is_loop_index(index) for index in ("t + 1", ":, 0", "0", "t, :")] == [True, False, False, True]
    assert written_name("h[0].view(-1).zero_()", "zero_") == "h"
    assert written_name("h[0] = 1", "copy_") == "h"
    assert written_name("h.data += 1", "add_") == "h"
    assert written_name("self.h.T.zero_()", "zero_") == "self.h"
    assert written_name("torch.zero_(h)", "zero_") == "h"
    assert written_name("(a + b).zero_()", "zero_") is None
    assert written_name("f()", "zero_") is None
    assert written_name("torch.zero_()", "zero_") is None
    assert part_assignment("h = x") is None
    assert part_assignment("f(x)[0] = 1") is None
    assert part_assignment("h[0, i] = a + b") == ("h", "0, i", None, "a + b")
    assert part_assignment("self.h[i] //= 2") == ("self.h", "i", "//", "2")


def test_comparisons() -> None:
    """What is compared, and which list is copied."""
    assert compared("code = (p > 0.5).float()") == SourceComparison("p", "p > 0.5")
    assert compared("code = 0 < p < 1") is None
    assert compared("code = (0 < p < 1) & (q + 1 > p)") == SourceComparison("(q + 1)", "q + 1 > p")
    assert compared("if p[0] > q.mean():") == SourceComparison("p[0]", "p[0] > q.mean()")
    assert compared("code = p") is None
