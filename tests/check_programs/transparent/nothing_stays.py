"""What a program can see of modes, hooks and replaced functions once a step after the watched ones has begun."""

import torch
import torch.utils.checkpoint
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()

print("function modes", torch._C._len_torch_function_stack())
print("dispatch modes", torch._C._len_torch_dispatch_stack())
print("torch functions are overridden", torch.overrides.has_torch_function((torch.ones(1),)))
print("module hooks", len(modules._global_forward_hooks), len(modules._global_forward_pre_hooks))
print("optimizer hooks", len(optimizers._global_optimizer_pre_hooks), len(optimizers._global_optimizer_post_hooks))
for function in (
    torch.autograd._engine_run_backward,
    torch.autograd.graph._engine_run_backward,
    torch.utils.checkpoint._checkpoint_hook,
    torch.utils.checkpoint._recomputation_hook,
    torch.overrides.has_torch_function,
    modules._has_any_global_hook,
):
    print(getattr(function, "__module__", None), getattr(function, "__qualname__", function))
