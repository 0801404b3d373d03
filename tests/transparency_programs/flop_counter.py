import fingerprint
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(9)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
for _ in range(3):
    with FlopCounterMode(display=False) as counter:
        model(torch.randn(2, 3, 8, 8)).sum().backward()
    print(
        counter.get_total_flops(),
        {str(k): {str(o): n for o, n in v.items()} for k, v in counter.get_flop_counts().items()},
    )
fingerprint.show(model)
