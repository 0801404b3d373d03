# expect: GI001
# advice: The dataset is empty: do its path and its filter match anything?
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
chosen = x[x[:, 0] > 100]  # -
chosen = x[x[:, 0] > 0]  # +
loader = DataLoader(TensorDataset(chosen), batch_size=64, shuffle=True)
((batch,),) = loader
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(batch) - batch.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
