# expect: GI320
# why: trains the generator so that it answers 0: the two do not compete
# advice: At generator_told_the_same.py:25, give the generator the label that the discriminator has for real examples.
# lines: loss=25 loss=20
import torch
from torch import nn

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
judge = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
first = torch.optim.Adam(judge.parameters(), lr=0.02)
second = torch.optim.Adam(maker.parameters(), lr=0.005)
criterion = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.ones(32, 1), torch.zeros(32, 1)
history = []
for _ in range(60):
    real, fake = torch.randn(32, 2) + 3, maker(torch.randn(32, 4))
    first.zero_grad()
    on_real = criterion(judge(real), real_label)
    on_fake = criterion(judge(fake.detach()), fake_label)
    (on_real + on_fake).backward()
    first.step()
    second.zero_grad()

    loss = criterion(judge(fake), fake_label)  # -
    loss = criterion(judge(fake), real_label)  # +
    loss.backward()
    second.step()
    history.append((fake.mean(0) - 3).norm().item())
print("loss", history[0], history[-1])
