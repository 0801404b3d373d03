# expect: GI324
# advice: At labels_of_its_own_scores.py:19, pass the labels of the data.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.randn(128, 8)
loader = DataLoader(TensorDataset(data, data[:, :3].argmax(1)), batch_size=16)
losses = []
for _ in range(3):
    total = 0.0
    for x, y in loader:
        scores = model(x)
        guessed = scores.argmax(1)

        loss = nn.functional.cross_entropy(scores, guessed)  # -
        loss = nn.functional.cross_entropy(scores, y)  # +
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(total)
    print("right", (guessed == y).float().mean().item())
print("loss", losses[0], losses[-1])
