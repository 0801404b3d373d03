import multiprocessing

import fingerprint
import torch
from torch import nn


def work(seed, queue):
    torch.manual_seed(seed)
    x = torch.randn(3, requires_grad=True)
    x.square().sum().backward()
    queue.put((seed, x.grad.tolist()))


def main():
    torch.manual_seed(40)
    model = nn.Linear(3, 1)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=work, args=(seed, queue)) for seed in range(2)]
    for child in children:
        child.start()
    results = sorted(queue.get() for _ in children)
    for child in children:
        child.join()
    print(results, [child.exitcode for child in children])
    for _ in range(3):
        model(torch.randn(2, 3)).sum().backward()
    spawned = multiprocessing.get_context("spawn")
    queue = spawned.SimpleQueue()
    child = spawned.Process(target=work, args=(7, queue))
    child.start()
    print(queue.get())
    child.join()
    fingerprint.show(model)


if __name__ == "__main__":
    main()
