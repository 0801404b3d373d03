"""LBFGS calls its closure many times a step; each call builds a fresh graph and zeroes the gradients itself."""

import torch

torch.manual_seed(0)
point = torch.randn(4, requires_grad=True)
optimizer = torch.optim.LBFGS([point], lr=1, max_iter=5, line_search_fn="strong_wolfe")


def rosenbrock(p):
    return (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()


history = []


def closure():
    optimizer.zero_grad()
    loss = rosenbrock(point)
    loss.backward()
    history.append(loss.item())
    return loss


for step in range(4):
    first = optimizer.step(closure)
    print(step, first.item().hex(), len(history), min(history).hex())
