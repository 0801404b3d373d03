# expect: GI394
# why: evaluates a model in train mode without a graph: dropout drops elements at random
# advice: Call eval() of the model before the evaluation at evaluated_in_train_mode.py:24, and train() after it.
# lines: called=23 evaluated=24
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.4), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(200, 6)
y = x[:, :3].argmax(1)
history = []
for _ in range(8):
    net.train()  # +
    for rows in torch.arange(160).split(40):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()  # +
    with torch.no_grad():
        scores = net(x[160:])
        print("accuracy", (scores.argmax(1) == y[160:]).float().mean().item())
    history.append(loss.item())
print("loss", history[0], history[-1])
