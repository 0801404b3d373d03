"""Functions whose code has no line numbers, as tools leave it that write bytecode."""

import warnings

import fingerprint
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(36)
NO_PLACE, MOST_UNITS = 0xF8, 8  # an entry without a place stands for up to eight units


def without_lines(function):
    units = len(function.__code__.co_code) // 2
    entries = bytes(NO_PLACE | min(MOST_UNITS, units - unit) - 1 for unit in range(0, units, MOST_UNITS))
    function.__code__ = function.__code__.replace(co_linetable=entries)
    return function


class Double(torch.autograd.Function):
    @staticmethod
    @without_lines
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @without_lines
    def backward(ctx, gradient):
        return gradient * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 4)
        self.outer = torch.nn.Linear(4, 2)

    @without_lines
    def forward(self, x):
        return self.outer(torch.relu(checkpoint(self.inner, Double.apply(x), use_reentrant=False)))


@without_lines
def step():
    optimizer.zero_grad()
    loss = model(torch.randn(2, 3)).pow(2).mean()
    loss.backward()
    torch.nn.functional.softmax(model.inner.weight[None])
    optimizer.step()
    return loss.item()


@without_lines
def failing():
    model(torch.ones(2, 7))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    print(step())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    step()
print([(item.filename == __file__, item.lineno) for item in caught])
print({line for *_, line in step.__code__.co_lines()})
try:
    failing()
except RuntimeError as error:
    print(error, error.__traceback__.tb_next.tb_lineno)
fingerprint.show(model)
