import logging
import sys
import traceback

import fingerprint
import torch
from torch import nn

torch.manual_seed(36)
logging.basicConfig(format="%(message)s")


def files(error):
    """Name the files on the way, but for the one that torch goes through when a mode is there."""
    names = dict.fromkeys(entry.filename for entry in traceback.extract_tb(error.__traceback__))
    return [name for name in names if not name.endswith("overrides.py")]


model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(4, 1))


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("backward fails")


for attempt in range(3):
    try:
        model(torch.randn(2, 3)).sum().backward()
    except RuntimeError as error:
        print(error, *files(error), file=sys.stderr)
    try:
        torch.ones(2).matmul(torch.ones(3, 3))
    except RuntimeError:
        logging.exception("shapes")
    try:
        Fails.apply(model[0].weight).sum().backward()
    except ValueError as error:
        print(error, files(error))
    loss = model[0](torch.randn(2, 3)).sum()
    loss.backward()
    try:
        loss.backward()
    except RuntimeError as error:
        print(str(error).splitlines()[0], files(error))
fingerprint.show(model)
