# expect: GI001
# advice: The first dimension is not 8 here, as of a last batch that is smaller: flatten(1) keeps what it is.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Linear(25, 1)
loader = DataLoader(TensorDataset(torch.randn(19, 5, 5)), batch_size=8)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(15):
    for (images,) in loader:
        rows = images.reshape(8, -1)  # -
        rows = images.flatten(1)  # +
        loss = (net(rows) - rows.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
