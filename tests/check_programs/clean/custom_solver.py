"""A custom Function that fills its result step by step and keeps it for backward, as solvers of ODEs do."""

import torch


class Euler(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rate, start, num_steps):
        steps = torch.empty(num_steps, *start.shape)
        steps[0] = start
        for i in range(1, num_steps):
            steps[i] = steps[i - 1] * (1 + rate)
        ctx.save_for_backward(rate, start, steps)
        return steps

    @staticmethod
    def backward(ctx, grad):
        rate, start, steps = ctx.saved_tensors
        flow = torch.zeros_like(start)
        slope = torch.zeros_like(rate)
        for i in range(len(steps) - 1, 0, -1):
            flow = flow + grad[i]
            slope = slope + (flow * steps[i - 1]).sum()
            flow = flow * (1 + rate)
        return slope, flow + grad[0], None


torch.manual_seed(0)
rate = torch.nn.Parameter(torch.tensor(0.1))
optimizer = torch.optim.SGD([rate], lr=0.01)
for _ in range(3):
    start = torch.rand(4, requires_grad=True)
    optimizer.zero_grad()
    loss = (Euler.apply(rate, start, 5)[-1] - 2).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), rate.item().hex())
