"""A target network is copied into the online one through `.data`, after its loss was computed."""

import torch
from torch import nn

torch.manual_seed(0)
online, target = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)), nn.Linear(4, 1)
loss = online(torch.randn(2, 4)).pow(2).mean()
online[2].weight.data.copy_(target.weight.data)
loss.backward()
# expect: GI103 saved=8 written=9
