"""Forward-mode derivatives, alone and over backward."""

import torch
import torch.autograd.forward_ad as fwAD

weight = torch.nn.Parameter(torch.arange(3.0))
weight.sin().sum().backward()
with fwAD.dual_level():
    dual = fwAD.make_dual(torch.arange(3.0), torch.ones(3))
    for made in (dual * 2, dual.detach(), dual.view(3, 1), dual.clone().add_(1), torch.add(dual, dual), dual[:2]):
        primal, tangent = fwAD.unpack_dual(made)
        print(primal.tolist(), None if tangent is None else tangent.tolist())
    both = fwAD.make_dual(weight, torch.ones(3))
    (gradient,) = torch.autograd.grad((both * both).sum(), weight, create_graph=True)
    print(fwAD.unpack_dual(gradient).tangent)
    (both * weight).sum().backward()
print(weight.grad)
try:
    fwAD.make_dual(torch.ones(3), torch.ones(3))
except RuntimeError as error:
    print(error)
