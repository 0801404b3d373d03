"""Labels of a discriminator that are filled in, made by NumPy, or made once: each line knows its answer."""

import numpy as np
import torch
from torch import nn
from torch.autograd import Variable

torch.manual_seed(0)
judge = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())
maker = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8))
criterion = nn.BCELoss()
for_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
for_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)
is_real = torch.from_numpy(np.ones((16, 1), dtype=np.float32))
is_made = torch.from_numpy(np.zeros((16, 1), dtype=np.float32))
for _ in range(8):
    valid = Variable(torch.FloatTensor(16, 1).fill_(1.0), requires_grad=False)
    made = maker(torch.randn(16, 4))
    for_maker.zero_grad()
    criterion(judge(made), valid).backward()
    for_maker.step()
    for_judge.zero_grad()
    right = criterion(judge(torch.randn(16, 8) + 1), is_real)
    wrong = criterion(judge(made.detach()), is_made)
    (right + wrong).backward()
    for_judge.step()
    print(right.item().hex(), wrong.item().hex())
