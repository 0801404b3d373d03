import os
import random
import sys

import fingerprint
import torch
from torch import nn

torch.manual_seed(41)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
    fingerprint.show(model)
    sys.stdout.flush()


train(2)
child = os.fork()
if not child:
    random.seed(41)  # Python seeds it anew in each child
    train(2)
    sys.exit(4)
_, status = os.waitpid(child, 0)
print("child:", os.waitstatus_to_exitcode(status))
train(2)
