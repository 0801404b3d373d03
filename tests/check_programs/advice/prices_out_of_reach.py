# expect: GI344
# why: on average, and the output of the model
# advice: At prices_out_of_reach.py:20, compare the output with (target - mean) / std, where mean and std are those of
# lines: loss=20
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(256, 4)
price = 200_000 + 50_000 * x[:, :1]
mean, std = price.mean(), price.std()  # +
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
history = []
criterion = nn.MSELoss()
for _ in range(40):
    rows = torch.randint(256, (64,))
    target = price[rows]
    target = (price[rows] - mean) / std  # +
    loss = criterion(model(x[rows]), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
