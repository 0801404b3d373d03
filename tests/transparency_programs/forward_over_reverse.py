import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp

torch.manual_seed(5)
w = torch.randn(4)
x = torch.randn(7, 4)


def loss(weights):
    return torch.log1p((x @ weights).square()).mean()


print(hessian(loss)(w).sum().item())
print(jvp(grad(loss), (w,), (torch.ones(4),))[1].tolist())
print(jacfwd(jacrev(loss))(w).diagonal().tolist())
value, pull = vjp(loss, w)
print(value.item(), pull(torch.tensor(1.0))[0].tolist())
linear = torch.nn.Linear(4, 1)
params = {name: p.detach() for name, p in linear.named_parameters()}
print({name: g.sum().item() for name, g in grad(lambda p: functional_call(linear, p, (x,)).sum())(params).items()})
leaf = w.clone().requires_grad_()
loss(leaf).backward()
print(leaf.grad.tolist())
