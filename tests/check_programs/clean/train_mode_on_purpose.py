"""Train mode without a graph where it is meant: samples of a dropout network, statistics that are computed anew."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
average = torch.optim.swa_utils.AveragedModel(net)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(160, 6)
y = x.sum(1, keepdim=True)
for rows in torch.arange(120).split(20):
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(net)
    with torch.no_grad():
        print("on the same batch", nn.functional.mse_loss(net(x[rows]), y[rows]).item())
torch.optim.swa_utils.update_bn(torch.arange(120).split(20), nn.Sequential(nn.Embedding.from_pretrained(x), average))
average.eval()
net.train()  # for samples of it
with torch.no_grad():
    print("average", nn.functional.mse_loss(average(x[120:]), y[120:]).item())
    samples = torch.stack([net(x[120:]) for _ in range(8)])
    print("of samples", nn.functional.mse_loss(samples.mean(0), y[120:]).item(), samples.std(0).mean().item())
