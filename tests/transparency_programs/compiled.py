import fingerprint
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch._dynamo.utils import counters

torch.manual_seed(44)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
counter = CompileCounter()
compiled = torch.compile(model, backend=counter)
for _ in range(4):
    loss = compiled(torch.randn(3, 4)).square().mean()
    loss.backward()
print(counter.frame_count, counter.op_count, dict(counters["graph_break"]), dict(counters["stats"]))
ahead = torch.compile(lambda x: (x.sin() * model[0].weight).sum(), backend="aot_eager")
for _ in range(3):
    ahead(torch.randn(4)).backward()
print(dict(counters["graph_break"]))
fingerprint.show(model)
