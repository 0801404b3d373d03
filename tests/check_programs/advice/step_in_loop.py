# expect: GI102
# advice: Compute step_in_loop.py
# advice: inside the loop
# never: after loss.backward()
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
x, y = torch.randn(6, 3), torch.randn(6, 1)
history = []
for _ in range(20):
    outputs = [model(row) for row in x]  # -
    sum_of_losses = 0.0
    for number, target in enumerate(y):
        output = outputs[number]  # -
        output = model(x[number])  # +
        loss = (output - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sum_of_losses += loss.item()
    history.append(sum_of_losses)
print("loss", history[0], history[-1])
