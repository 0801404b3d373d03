# expect: GI252
# options: --compiled
# advice: What does the program do otherwise while it is compiled: does it ask torch.compiler.is_compiling(), or read
# advice: a value that Python changes meanwhile?
# lines: backward=30 compiled=24
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        if torch.compiler.is_compiling():  # -
            h = h * 0.5  # -
        return self.head(h)


torch.manual_seed(0)
model = Net()
compiled = torch.compile(model, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (compiled(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
