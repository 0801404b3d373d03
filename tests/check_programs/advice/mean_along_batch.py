# expect: GI704
# why: takes axis 0 of its input for 32 steps and axis 1 for 6 sequences
# advice: If the input is [batch, time, features], make GRU with batch_first=True.
# lines: ran=19 taken=20
import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 16)  # -
        self.rnn = nn.GRU(8, 16, batch_first=True)  # +
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out.mean(1))


model, history = Tagger(), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x = torch.randn(32, 6, 8)
y = x.mean(1)[:, :1]
for _ in range(6):
    loss = (model(x) - y).square().mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
