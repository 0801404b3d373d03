# expect: GI001
# advice: Make the layer with input_size=5, or bring the last dimension of its input to 8.
import torch
from torch import nn

torch.manual_seed(0)
rnn = nn.LSTM(8, 16, batch_first=True)  # -
rnn = nn.LSTM(input_size=5, hidden_size=16, batch_first=True)  # +
x = torch.randn(12, 7, 5)
y = x.mean((1, 2))
optimizer = torch.optim.Adam(rnn.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (rnn(x)[0][:, -1].mean(1) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
