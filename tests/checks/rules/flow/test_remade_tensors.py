"""Lines that copy values into a new tensor, and what they should be."""

import pytest

from gradinspect.checks.rules.flow.remade_tensors import Remade, collects, remade_tensor


@pytest.mark.parametrize(
    ("code", "stacked"),
    [
        ("loss = torch.tensor(losses).sum()", "torch.stack(losses)"),
        ("w = torch.tensor([self.a, -self.b ** 2])", "torch.stack([self.a, -self.b ** 2])"),
        ("loss = torch.tensor([one.item() for one in losses])", "torch.stack([one for one in losses])"),
        ("loss = torch.tensor([float(a), b.detach().cpu().item()])", "torch.stack([a, b])"),
        ("loss = torch.from_numpy(np.array(scores)).mean()", "torch.stack(scores)"),
        ("w = torch.tensor([f(a), f(), int(a, 2)])", "torch.stack([f(a), f(), int(a, 2)])"),
        ("w = torch.tensor([a.mean(), a.cpu(b), int(c)])", "torch.stack([a.mean(), a.cpu(b), c])"),
        (f"w = torch.tensor([{'a' * 38}])", f"torch.stack([{'a' * 38}])"),
        (f"w = torch.tensor([{'a' * 39}])", "torch.stack() of the same list"),
        (f"m = torch.tensor([{', '.join(['self.coefficient'] * 4)}])", "torch.stack() of the same list"),
    ],
)
def test_a_list_of_tensors_is_stacked(code: str, stacked: str) -> None:
    """Without conversions to Python, and not repeated where it is long."""
    found = remade_tensor(code)

    assert found is not None
    assert found.stacked == stacked


@pytest.mark.parametrize("values", ["[[0.0, 1.0], [-k, -c]]", "[0.0, k]", "[-1, k]", "[(a, b), (b, a)]"])
def test_what_torch_stack_would_refuse_is_not_advised(values: str) -> None:
    """Numbers and inner lists."""
    found = remade_tensor(f"m = torch.tensor({values})")

    assert found is not None
    assert values not in found.stacked
    assert "each number as a tensor" in found.stacked


def test_one_value_and_none() -> None:
    """A variable may hold either; a plain number is nothing to keep."""
    assert remade_tensor("loss = torch.tensor(loss.item())") == Remade(
        "torch.tensor", "loss", is_list=False, is_flat=True
    )
    assert remade_tensor("loss = torch.tensor(2.0)") is None


def test_what_puts_values_into_a_list() -> None:
    """A list that is written, or append()."""
    assert collects("scores.append(1 - score.item())")
    assert collects("scores = [score.item() for score in parts]")
    assert not collects("total = score.item()")
