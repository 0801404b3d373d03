"""Targets that are whole numbers on purpose, and adversaries of several kinds that are told opposites."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
years = (x.sum(1) * 12 + 1990.5).long()
counts = torch.poisson(x[:, 0].exp()).long()
bins = (torch.rand(64) * 255).long()
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for wanted in (years, counts, bins):
    for _ in range(5):
        loss = nn.functional.smooth_l1_loss(model(x).squeeze(1), wanted.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
classes = nn.Linear(4, 5)
optimizer = torch.optim.Adam(classes.parameters(), lr=0.1)
for _ in range(5):
    loss = nn.functional.cross_entropy(classes(x), ((x[:, 0] + 9) * 1.5).long() % 5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def adversaries(real_label, fake_label, generator_label, criterion, sign=1):
    """Train a generator against a discriminator."""
    maker, judge = nn.Linear(4, 2), nn.Linear(2, 1)
    first = torch.optim.Adam(judge.parameters(), lr=0.01)
    second = torch.optim.Adam(maker.parameters(), lr=0.01)
    for _ in range(6):
        fake = maker(torch.randn(16, 4))
        label = torch.full((16, 1), real_label)
        on_real = criterion(judge(torch.randn(16, 2) + 3), label)
        on_fake = criterion(judge(fake.detach()), torch.full_like(label, fake_label))
        first.zero_grad()
        (on_real + on_fake).backward()
        first.step()
        loss = sign * criterion(judge(fake), torch.full_like(label, generator_label))
        second.zero_grad()
        loss.backward()
        second.step()


adversaries(1.0, 0.0, 0.0, nn.functional.binary_cross_entropy_with_logits, sign=-1)
adversaries(1.0, 0.0, 1.0, nn.functional.binary_cross_entropy_with_logits)
adversaries(0.0, 1.0, 0.0, nn.functional.binary_cross_entropy_with_logits)
adversaries(0.9, 0.0, 1.0, nn.functional.binary_cross_entropy_with_logits)
adversaries(1.0, -1.0, 0.0, nn.functional.mse_loss)
