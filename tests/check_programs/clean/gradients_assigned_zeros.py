"""A generator and a discriminator of plain tensors, whose gradients are assigned new zeros after each step."""

import torch


def weights(*shape: int) -> torch.Tensor:
    """Draw them."""
    return (torch.randn(*shape) * 0.3).requires_grad_()


torch.manual_seed(0)
made, bias, seen, score = weights(4, 16), weights(16), weights(16, 8), weights(8, 1)
everything = [made, bias, seen, score]
generator, critic = torch.optim.Adam([made, bias], lr=1e-3), torch.optim.Adam([seen, score], lr=1e-3)
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
bce = torch.nn.functional.binary_cross_entropy


def fake() -> torch.Tensor:
    """Make samples."""
    return torch.randn(32, 4) @ made + bias


def judged(x: torch.Tensor) -> torch.Tensor:
    """Return how real they look."""
    return torch.sigmoid(torch.relu(x @ seen) @ score)


def reset() -> None:
    """Clear all gradients."""
    for p in everything:
        if p.grad is not None:
            p.grad = p.grad.data.new().resize_as_(p.grad.data).zero_()


for _ in range(20):
    loss = bce(judged(torch.randn(32, 16)), ones) + bce(judged(fake()), zeros)
    loss.backward()
    critic.step()
    reset()
    loss = bce(judged(fake()), ones)
    loss.backward()
    generator.step()
    reset()
