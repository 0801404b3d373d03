"""Every user against every item: einsum scores, biases broadcast along rows and columns, a Huber loss where known."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
USERS, ITEMS = 5, 7
ratings = torch.randint(1, 6, (USERS, ITEMS)).float()
ratings[torch.rand(USERS, ITEMS) < 0.3] = float("nan")


class Factors(nn.Module):
    def __init__(self, rank=3):
        super().__init__()
        self.user = nn.Parameter(torch.randn(USERS, rank) * 0.1)
        self.item = nn.Parameter(torch.randn(ITEMS, rank) * 0.1)
        self.mix = nn.Parameter(torch.eye(rank))
        self.user_bias = nn.Parameter(torch.zeros(USERS, 1))
        self.item_bias = nn.Parameter(torch.zeros(ITEMS))

    def forward(self):
        scores = torch.einsum("ur,rs,is->ui", self.user, self.mix, self.item)
        return 3 + scores + self.user_bias + self.item_bias


model = Factors()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
known = ~ratings.isnan()
for _ in range(4):
    optimizer.zero_grad()
    loss = F.huber_loss(model()[known], ratings[known], delta=0.5)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
