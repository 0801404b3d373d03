# expect: GI001
# advice: At file_of_a_gpu.py:21, pass map_location='cpu' to torch.load().
import tempfile
import zipfile
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
with tempfile.TemporaryDirectory() as folder:
    here, there = Path(folder) / "here.pt", Path(folder) / "there.pt"
    torch.save(net.state_dict(), here)
    with zipfile.ZipFile(here) as file, zipfile.ZipFile(there, "w") as other:  # as it is saved where there is a GPU
        for one in file.infolist():
            content = file.read(one.filename)
            moved = content.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            other.writestr(one, moved if one.filename.endswith("data.pkl") else content)
    net.load_state_dict(torch.load(there))  # -
    net.load_state_dict(torch.load(there, map_location="cpu"))  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
