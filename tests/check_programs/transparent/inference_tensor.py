"""torch's own words about inference tensors."""

import torch

with torch.inference_mode():
    scale = torch.ones(3)
    print(scale.is_inference(), torch.ones(2).add_(1))

weight = torch.ones(3, requires_grad=True)
weight.exp().sum().backward()


def said(run):
    """Print what an attempt comes to."""
    try:
        print(run())
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[0])


said(lambda: (weight * scale).sum().backward())
said(lambda: scale.add_(1))
said(lambda: scale._version)
said(lambda: scale.requires_grad_())
said(lambda: torch.autograd.Variable(scale).view(3, 1).is_inference())
