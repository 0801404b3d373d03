"""Compiled code counts and lists function modes without a graph break."""

import torch


@torch.compile(backend="eager", fullgraph=True)
def scaled(x: torch.Tensor) -> torch.Tensor:
    """Multiply by what is seen of torch's stack."""
    count = torch._C._len_torch_function_stack()
    listed = torch.overrides._get_current_function_mode_stack()
    return x * (count + 1) + len(listed)


weight = torch.ones(3, requires_grad=True)
for _ in range(4):
    loss = scaled(weight).sum()
    loss.backward()
    print(loss.item())
with torch.device("cpu"):
    print(scaled(weight).sum().item())
