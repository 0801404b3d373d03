# expect: GI001
# advice: Pass probabilities: softmax() of the scores, and not the scores.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
x = torch.randn(32, 4)
scores = net(x).detach()
y = torch.multinomial(scores, 1).squeeze(1)  # -
y = torch.multinomial(scores.softmax(1), 1).squeeze(1)  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
