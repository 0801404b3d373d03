# expect: GI329
# why: makes whole numbers of 96 values between
# advice: At targets_cut_to_whole_numbers.py:12, make them torch.float32.
# lines: cast=12 loss=21
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(96, 6)
prices = (x @ torch.tensor([0.2, -0.4, 0.1, 0.5, -0.2, 0.3])).tolist()

y = torch.tensor(prices, dtype=torch.long)  # -
y = torch.tensor(prices, dtype=torch.float32)  # +
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
history = []
for _ in range(20):
    part = torch.randint(96, (32,))
    predicted = model(x[part]).squeeze(1)
    wanted = y[part].float()
    loss = nn.functional.mse_loss(predicted, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    exact = torch.tensor(prices)
    history.append(nn.functional.mse_loss(model(x).squeeze(1), exact).item())
print("loss", history[0], history[-1])
