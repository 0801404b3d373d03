# expect: GI386
# why: times it found one as it was left in an earlier epoch, and changed it once more
# advice: Take a clone() of the sample before
# lines: written=25
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Points(Dataset):
    def __init__(self):
        self.data = torch.randn(16, 4) * 3 + 5
        self.wanted = (self.data - 5) / 3
        self.buffer = torch.empty(4)
        self.asked = torch.zeros(16, 1)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, place):
        x = self.data[place]  # -
        x = self.data[place].clone()  # +
        x -= 5
        return x, self.wanted[place, :1]


model, history = nn.Linear(4, 1), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
data = Points()
for _ in range(8):
    for x, y in DataLoader(data, 8):
        loss = (model(x) - y).square().mean()
        history.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", history[0], history[-2])
