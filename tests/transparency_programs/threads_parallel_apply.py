"""What nn.DataParallel does, on one device: replicas run in threads, one backward goes through all of them."""

import copy
import threading

import fingerprint
import torch
from torch import nn


def replicate(module, count):
    replicas = []
    for _ in range(count):
        replica = copy.deepcopy(module)
        for name, parameter in module.named_parameters():
            owner, _, attribute = name.rpartition(".")
            holder = replica.get_submodule(owner)
            del holder._parameters[attribute]
            setattr(holder, attribute, parameter.view_as(parameter))
        replicas.append(replica)
    return replicas


def parallel_apply(replicas, inputs):
    results = [None] * len(replicas)

    def worker(number):
        with torch.set_grad_enabled(True):
            results[number] = replicas[number](inputs[number])

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    batch = torch.randn(8, 6)
    outputs = parallel_apply(replicate(model, 4), batch.chunk(4))
    loss = torch.cat(outputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.9f}")
fingerprint.show(model)
