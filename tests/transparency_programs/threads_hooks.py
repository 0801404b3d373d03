import threading

import fingerprint
import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(5, 5), nn.Sigmoid(), nn.Linear(5, 1))
is_over = threading.Event()
failures = []
seen = []


def register_all_the_time():
    while not is_over.is_set():
        try:
            x = torch.ones(3, requires_grad=True)
            y = (x * 2).sum()
            handles = [
                y.grad_fn.register_prehook(lambda gradients: None),
                y.grad_fn.register_hook(lambda inputs, outputs: None),
                x.register_hook(lambda gradient: None),
            ]
            torch.autograd.grad(y, x)
            for handle in handles:
                handle.remove()
        except Exception as error:
            failures.append(repr(error))
            return


thread = threading.Thread(target=register_all_the_time)
thread.start()
for _ in range(4):
    loss = model(torch.randn(3, 5)).sum()
    loss.grad_fn.register_prehook(lambda gradients: seen.append(len(gradients)))
    loss.backward()
is_over.set()
thread.join()
print(failures, seen)
fingerprint.show(model)
