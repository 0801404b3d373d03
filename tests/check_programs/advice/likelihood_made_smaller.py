# expect: GI327
# why: the mean of log-probabilities that were selected, without a minus
# advice: Is what likelihood_made_smaller.py:15 computes to be minimized as it is? Otherwise change the sign
# lines: loss=15 backward=18
import torch
from torch import nn

torch.manual_seed(0)
model, history = nn.Linear(8, 3), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(32, 8)
y = x[:, :3].argmax(1)
for _ in range(8):
    log_p = torch.log_softmax(model(x), 1)
    loss = log_p[torch.arange(32), y].mean()  # -
    loss = -log_p[torch.arange(32), y].mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
