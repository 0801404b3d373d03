"""Training steps to be watched: `train.py PROGRAM STEPS`; the last line has the CPU seconds of each step."""

import sys
import time
from collections.abc import Callable

import graphs
import torch
from torch import nn
from torch.nn import functional

SMALL_STEPS, FRAMES, CLASSES = 4_000, 120, 12
NEVER = -1e9


def transformer() -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    """Make a 12-layer transformer with a batch of 128 tokens."""
    model = graphs.GPT2()

    def loss() -> torch.Tensor:
        tokens = torch.randint(0, 50_257, (1, 128))
        return functional.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(-1).flatten())

    return model, loss


def small_operators() -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    """Make a recurrence of 4,000 steps, three operators on eight numbers each."""
    model = nn.Linear(8, 1, bias=False)

    def loss() -> torch.Tensor:
        hidden, x = torch.zeros(1, 8), torch.randn(1, 8)
        for _ in range(SMALL_STEPS):
            hidden = torch.tanh(hidden * model.weight + x)
        return hidden.sum()

    return model, loss


def ctc() -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    """Make a CTC loss as it is written by hand: a recursion over frames, in logarithms."""
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    targets = torch.randint(1, CLASSES, (4, 9))
    labels = torch.zeros(4, 19, dtype=torch.int64)
    labels[:, 1::2] = targets
    skips = torch.zeros(4, 19, dtype=torch.bool)
    skips[:, 2:] = (labels[:, 2:] != 0) & (labels[:, 2:] != labels[:, :-2])

    def loss() -> torch.Tensor:
        log_probs = model(torch.randn(4, FRAMES, 16)).log_softmax(-1)
        alpha = torch.full((4, 19), NEVER)
        alpha[:, :2] = log_probs[:, 0].gather(1, labels[:, :2])
        for frame in range(1, FRAMES):
            one = functional.pad(alpha[:, :-1], (1, 0), value=NEVER)
            two = functional.pad(alpha[:, :-2], (2, 0), value=NEVER).masked_fill(~skips, NEVER)
            best = torch.maximum(torch.maximum(alpha, one), two).detach()
            total = (alpha - best).exp() + (one - best).exp() + (two - best).exp()
            alpha = best + total.log() + log_probs[:, frame].gather(1, labels)
        return -torch.logaddexp(alpha[:, -1], alpha[:, -2]).mean()

    return model, loss


torch.manual_seed(0)
torch.set_num_threads(1)
model, loss_of = {"transformer": transformer, "small_operators": small_operators, "ctc": ctc}[sys.argv[1]]()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
seconds = []
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    loss = loss_of()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seconds.append(round(time.process_time() - start, 4))
print(*seconds)
