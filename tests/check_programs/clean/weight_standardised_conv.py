"""Weight standardisation: the weight is normalised in the graph at each forward, never written back."""

import torch
from torch import nn
from torch.nn import functional as F


class WSConv2d(nn.Conv2d):
    def forward(self, x):
        weight = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        std = weight.flatten(1).std(dim=1).view(-1, 1, 1, 1) + 1e-5
        return F.conv2d(x, weight / std.expand_as(weight), self.bias, self.stride, self.padding)


def init_weights(m):
    if isinstance(m, nn.Conv2d):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        nn.init.zeros_(m.bias)
    elif isinstance(m, nn.Linear):
        m.weight.data.normal_(0, 0.02)


torch.manual_seed(0)
model = nn.Sequential(
    *(WSConv2d(2, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(inplace=True)),
    *(WSConv2d(8, 8, 3, stride=2), nn.GroupNorm(2, 8), nn.ReLU(inplace=True)),
    *(nn.Flatten(), nn.Linear(72, 4)),
)
model.apply(init_weights)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
for _ in range(3):
    loss = F.cross_entropy(model(torch.randn(6, 2, 8, 8)), torch.randint(4, (6,)), label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
