"""A weight made on the way, whose gradient is asked for, and stays None: every line that uses it checks for None."""

import torch

torch.manual_seed(0)
signal = torch.randn(64, 5)
target = signal.sum(dim=1)
gain = torch.zeros(5, requires_grad=True).add(0.5)
offset = torch.zeros(1, requires_grad=True)


def descend(tensors, rate):
    """Move along the gradients that there are."""
    with torch.no_grad():
        for tensor in tensors:
            if tensor.grad is None:
                continue
            tensor -= rate * tensor.grad
            tensor.grad = None


for _ in range(6):
    loss = (signal @ gain + offset - target).square().mean()
    loss.backward(retain_graph=True)
    descend([gain, offset], 0.05)
# expect: GI305 made=8 backward=24 read=16
