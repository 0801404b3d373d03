"""Weights without a module, in a function: they are gone when the program ends."""

import torch


def main():
    torch.manual_seed(0)
    first = {"w": torch.randn(4, 6, requires_grad=True), "b": torch.zeros(6, requires_grad=True)}
    last = torch.randn(6, 1, requires_grad=True)
    optimizer = torch.optim.Adam([*first.values(), last], lr=0.01)
    for _ in range(6):
        x = torch.randn(16, 4)
        hidden = torch.tanh(x @ first["w"] + first["b"])
        fast = hidden.detach()
        loss = (fast @ last - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()

# expect: GI301 read=13 detached=14 used=15 backward=17 step=18
