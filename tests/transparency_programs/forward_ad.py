import fingerprint
import torch
import torch.autograd.forward_ad as fwad
from torch import nn

torch.manual_seed(4)
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
x, direction = torch.randn(3, 4), torch.randn(3, 4)
with fwad.dual_level():
    dual = fwad.make_dual(x, direction)
    out = model(dual)
    primal, tangent = fwad.unpack_dual(out)
    print(f"{tangent.sum().item():.9f}")
    primal.sum().backward()
for _ in range(2):
    with fwad.dual_level():
        loss = model(fwad.make_dual(x.clone().requires_grad_(), direction)).square().sum()
        loss.backward()
        print(fwad.unpack_dual(loss).tangent is not None)
print(torch.autograd.functional.jvp(lambda v: model(v).sum(), x, direction)[1].item())
fingerprint.show(model)
