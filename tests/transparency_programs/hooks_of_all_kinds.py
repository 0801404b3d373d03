import fingerprint
import torch
from torch import nn

torch.manual_seed(34)
log = []
model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
model[0].register_forward_pre_hook(lambda m, i: log.append("forward pre"))
model[0].register_forward_hook(lambda m, i, o: log.append("forward"))
model[1].register_full_backward_pre_hook(lambda m, g: log.append("full backward pre"))
model[1].register_full_backward_hook(lambda m, i, o: log.append(f"full backward {len(i)} {len(o)}"))
model[2].weight.register_hook(lambda g: log.append("tensor") or g * 2)
model[2].bias.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
for _ in range(3):
    h = model(torch.randn(2, 3))
    h.retain_grad()
    loss = h.sum()
    h.grad_fn.register_hook(lambda i, o: log.append(f"node {len(i)}"))
    h.grad_fn.register_prehook(lambda g: log.append(f"pre node {len(g)}"))
    loss.backward()
    print(len(log), *log, h.grad.sum().item())
    log.clear()
h = model(torch.randn(2, 3))
with torch.autograd.graph.register_multi_grad_hook((h, model[0].weight), lambda grads: log.append(len(grads))):
    h.sum().backward()
removed = h.register_hook(lambda g: None)
removed.remove()
print(log)
fingerprint.show(model)
