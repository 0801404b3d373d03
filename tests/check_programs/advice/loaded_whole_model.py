# expect: GI001
# advice: The file holds more than tensors: save model.state_dict() instead of the model. If you trust the file, pass
# advice: weights_only=False to torch.load() at loaded_whole_model.py:14.
import tempfile
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "net.pt"
    torch.save(nn.Linear(4, 1), path)
    net = torch.load(path)  # -
    net = torch.load(path, weights_only=False)  # +
x = torch.randn(32, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
