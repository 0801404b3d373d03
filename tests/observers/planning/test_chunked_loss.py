"""A loss that is computed in chunks from outside is the program's own."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody does

from gradinspect.observers.planning.chunked_loss import ChunkedLoss

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LOSSES: dict[str, Loss] = {
    "flat": lambda logits, target: F.cross_entropy(logits.view(-1, logits.size(-1)), target.view(-1)),
    "classes second": lambda logits, target: F.cross_entropy(logits.transpose(1, 2), target, label_smoothing=0.1),
    "shifted": lambda logits, target: F.cross_entropy(
        logits[:, :-1].contiguous().view(-1, 50), target[:, 1:].reshape(-1), reduction="sum"
    ),
    "shifted, not copied": lambda logits, target: F.cross_entropy(
        logits[:, :-1].reshape(-1, 50), target[:, 1:].reshape(-1), ignore_index=3
    ),
    "converted": lambda logits, target: nn.CrossEntropyLoss()(logits.double().flatten(0, 1), target.flatten()),
}


def gradients(loss_of: Loss, *, num_chunks: int = 0) -> tuple[list[torch.Tensor], list[Exception]]:
    """Compute the loss and its gradients, in so many chunks; 0: as it is."""
    torch.manual_seed(0)
    head, hidden = nn.Linear(8, 50), torch.randn(3, 7, 8, requires_grad=True)
    target = torch.randint(50, (3, 7))
    target[0, :2] = 3
    if not num_chunks:
        loss = loss_of(head(hidden), target)
        return [loss.detach(), *torch.autograd.grad(loss, [hidden, head.weight, head.bias])], []
    failures: list[Exception] = []
    mode = ChunkedLoss(num_chunks, failures.append)
    mode.attach(head)
    with mode:
        loss = loss_of(head(hidden), target)
        loss.backward()
    found = [loss.detach(), hidden.grad, head.weight.grad, head.bias.grad]
    return [tensor for tensor in found if tensor is not None], failures


@pytest.mark.parametrize("loss_of", LOSSES.values(), ids=LOSSES)
def test_chunks_add_up_to_the_loss(loss_of: Loss) -> None:
    """Whatever views the program makes of the logits."""
    plain, _ = gradients(loss_of)
    chunked, failures = gradients(loss_of, num_chunks=4)

    assert failures == []
    for one, other in zip(plain, chunked, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("loss_of", "sentence"),
    [
        (lambda logits, target: logits.argmax(-1).sum() + F.cross_entropy(logits.flatten(0, 1), target.flatten()),
         "reads the logits"),
        (lambda logits, target: F.cross_entropy(logits.flatten(0, 1), target.flatten()) + logits.square().mean(),
         "reads the logits"),
        (lambda logits, target: F.cross_entropy(logits.flatten(0, 1), target.flatten(), torch.ones(50)),
         "computes another loss than the mean or the sum over tokens"),
    ],
    ids=["read before", "read after", "weighted"],
)  # fmt: skip
def test_what_needs_logits_is_named(loss_of: Loss, sentence: str) -> None:
    """With its line: a loss in chunks has none."""
    failures: list[Exception] = []
    head = nn.Linear(8, 50)
    mode = ChunkedLoss(4, failures.append)
    mode.attach(head)
    with mode:
        loss_of(head(torch.randn(3, 7, 8)), torch.zeros(3, 7, dtype=torch.int64))

    assert f"{sentence}, which a loss in chunks does not make" in str(failures[0])
    assert str(failures[0]).startswith("test_chunked_loss.py:")


@pytest.mark.parametrize("is_edited", [True, False], ids=["same function", "another"])
def test_a_loss_without_gradients_is_in_chunks_where_its_function_is_edited(*, is_edited: bool) -> None:
    """Elsewhere its logits are there, to be read."""
    failures: list[Exception] = []
    head, hidden, target = nn.Linear(8, 50), torch.randn(3, 7, 8), torch.randint(50, (3, 7))
    widths = []
    head.register_forward_hook(lambda _head, _args, logits: widths.append(logits.stride(-1)))
    mode = ChunkedLoss(4, failures.append, lambda _frame: is_edited)
    plain = LOSSES["flat"](head(hidden), target)
    mode.attach(head)
    with mode, torch.no_grad():
        loss = LOSSES["flat"](head(hidden), target)

    assert failures == []
    torch.testing.assert_close(loss, plain.detach())
    assert widths == ([1, 0, 1, 1, 1, 1] if is_edited else [1, 1])
