import tempfile
from pathlib import Path

import fingerprint
import torch
from torch import nn

torch.manual_seed(17)
folder = tempfile.TemporaryDirectory()
counts = {"packed": 0, "unpacked": 0}


def pack(tensor):
    counts["packed"] += 1
    path = Path(folder.name) / f"{counts['packed']}.pt"
    torch.save(tensor.detach(), path)
    return path


def unpack(path):
    counts["unpacked"] += 1
    return torch.load(path)


model = nn.Sequential(nn.Linear(6, 6), nn.Sigmoid(), nn.Linear(6, 6), nn.Softmax(dim=1))
for _ in range(3):
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = model(torch.randn(4, 6)).square().sum()
    loss.backward()
    print(counts)
with torch.autograd.graph.save_on_cpu():
    model(torch.randn(4, 6)).sum().backward()
with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            pass
    except RuntimeError as error:
        print(error)
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp()
    y.add_(1)
    z.sum().backward()
    print(x.grad.tolist())
print(counts, len(list(Path(folder.name).iterdir())))
fingerprint.show(model)
folder.cleanup()
