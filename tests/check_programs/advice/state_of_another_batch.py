# expect: GI001
# advice: The state was made for another number of examples than this batch has: make it in the loop, from x.size(0),
# advice: or let the DataLoader leave out the last batch with drop_last=True.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rnn = nn.GRU(5, 16, batch_first=True)
x = torch.randn(20, 7, 5)
loader = DataLoader(TensorDataset(x), batch_size=8)  # -
loader = DataLoader(TensorDataset(x), batch_size=8, drop_last=True)  # +
state = torch.zeros(1, 8, 16)
optimizer = torch.optim.Adam(rnn.parameters(), lr=0.05)
history = []
for _ in range(15):
    for (batch,) in loader:
        loss = (rnn(batch, state)[0][:, -1].mean(1) - batch.mean((1, 2))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
