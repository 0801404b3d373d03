import gc

import fingerprint
import torch
from torch import nn

phases = []


def note(phase, info):
    phases.append(phase)


torch.manual_seed(28)
gc.collect()
gc.freeze()
gc.disable()
gc.callbacks.append(note)
threshold = gc.get_threshold()
model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
for _ in range(3):
    model(torch.randn(2, 3)).sum().backward()
print(phases, gc.isenabled(), gc.get_threshold() == threshold, gc.callbacks == [note], len(gc.garbage))
gc.collect()
print(phases)
gc.unfreeze()
gc.enable()
print(gc.get_debug(), gc.get_freeze_count())
fingerprint.show(model)
