# expect: GI370
# why: backward at left_by_the_discriminator.py:20 is for another optimizer, but leaves gradients in what optimizer_g
# advice: Call optimizer_g.zero_grad() right before left_by_the_discriminator.py:25.
# lines: other=20 backward=25 step=26
import torch
from torch import nn

torch.manual_seed(0)
maker, judge, history = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)), []
optimizer_g = torch.optim.Adam(maker.parameters(), lr=0.05)
optimizer_d = torch.optim.Adam(judge.parameters(), lr=0.0005)
criterion, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(64, 1), torch.zeros(64, 1)
noise = torch.randn(64, 4)
for _ in range(8):
    optimizer_g.zero_grad()
    optimizer_d.zero_grad()
    fake = maker(noise)
    loss_d = criterion(judge(torch.randn(64, 2) + 2), ones) + criterion(judge(fake), zeros)
    loss_d = loss_d / 2
    loss_d.backward()
    optimizer_d.step()
    fake = maker(noise)
    loss_g = criterion(judge(fake), ones)
    optimizer_g.zero_grad()  # +
    loss_g.backward()
    optimizer_g.step()
    history.append(loss_g.item())
print("loss", history[0], history[-1])
