"""A checkpoint with the state dicts of model and optimizer is given to the model as it is."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
resumed = nn.Linear(4, 2)
resumed.load_state_dict(state_dict=checkpoint, strict=False)
loss = resumed(torch.randn(3, 4)).square().mean()
loss.backward()
# expect: GI373 loaded=11
