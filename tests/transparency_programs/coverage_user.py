import io

import coverage
import fingerprint
import torch
from torch import nn

watched = coverage.Coverage(data_file=None, include=[__file__], branch=True)
watched.set_option("run:disable_warnings", ["no-data-collected"])
watched.start()


def step(model, x):
    if x.sum() > 1e9:
        return None
    loss = model(x).sum()
    loss.backward()
    return loss


torch.manual_seed(27)
model = nn.Linear(2, 2)
for _ in range(3):
    step(model, torch.ones(1, 2))
watched.stop()
report = io.StringIO()
print(watched.analysis2(__file__)[3])
fingerprint.show(model)
