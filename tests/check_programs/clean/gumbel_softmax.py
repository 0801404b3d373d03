"""A discrete autoencoder: one-hot codes by hard Gumbel-softmax, which still passes the soft sample's gradient."""

import torch
import torch.nn.functional as F
from torch import nn


class DiscreteAutoencoder(nn.Module):
    def __init__(self, dim=8, groups=3, classes=4):
        super().__init__()
        self.groups, self.classes = groups, classes
        self.encoder = nn.Linear(dim, groups * classes)
        self.decoder = nn.Linear(groups * classes, dim)

    def forward(self, x, tau):
        logits = self.encoder(x).view(-1, self.groups, self.classes)
        code = F.gumbel_softmax(logits, tau=tau, hard=True)
        return self.decoder(code.flatten(1)), logits


torch.manual_seed(0)
model = DiscreteAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
tau = 1.0
for _ in range(4):
    x = torch.rand(16, 8)
    recon, logits = model(x, tau)
    log_q = logits.log_softmax(-1)
    kl = (log_q.exp() * (log_q + torch.log(torch.tensor(4.0)))).sum((1, 2)).mean()
    loss = F.mse_loss(recon, x, reduction="sum") / len(x) + 0.1 * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tau = max(0.5, tau * 0.9)
    print(loss.item().hex())
