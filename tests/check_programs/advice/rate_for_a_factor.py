# expect: GI390
# why: returns to LambdaLR is 0.05, the learning rate of optimizer itself. The two are multiplied
# advice: In the function at rate_for_a_factor.py:11, divide by 0.05: 1.0 means no change.
# lines: function=11 optimizer=10 step=19 scheduler=20
import torch
from torch import nn

torch.manual_seed(0)
model, history, rate = nn.Linear(4, 1), [], 0.05
optimizer = torch.optim.Adam(model.parameters(), lr=rate)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: rate * 0.95**epoch)  # -
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: rate * 0.95**epoch / 0.05)  # +
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)
for _ in range(8):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
