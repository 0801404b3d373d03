import fingerprint
import torch
from torch import nn

torch.manual_seed(43)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(3, 4)).pow(2).mean().backward()
    optimizer.step()
exported = torch.export.export(model, (torch.ones(2, 4),))  # its fake gradients stand in for those that are there
print([node.name for node in exported.graph.nodes])
exported.module()(torch.ones(2, 4)).sum().backward()
fingerprint.show(model)
