# expect: GI502
# advice: At log_of_softmax.py:14, use log_softmax() of the input instead of the logarithm of softmax().
# lines: backward=18 made=14
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.001)
x, y = 300 * torch.randn(8, 3), torch.randint(4, (8,))
losses = []
for _ in range(30):
    logits = layer(x)
    log_p = torch.softmax(logits, 1).log()  # -
    log_p = torch.log_softmax(logits, 1)  # +
    loss = nn.functional.nll_loss(log_p, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
