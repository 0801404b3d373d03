"""BatchNorm frozen by hand, a frozen backbone in eval mode, statistics of a checkpoint, an evaluation in between."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.2))
backbone(torch.randn(9, 4))
backbone.requires_grad_(False).eval()
tuned = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.2), nn.Linear(6, 2))
tuned.train()
for module in tuned.modules():
    if isinstance(module, nn.BatchNorm1d):
        module.eval()
restored = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
restored.load_state_dict({**restored.state_dict(), "1.num_batches_tracked": torch.tensor(900)})
restored.eval()  # keep the statistics
optimizer = torch.optim.SGD([*tuned.parameters(), *restored.parameters()], lr=0.1)
for _ in range(3):
    x, y = torch.randn(5, 4), torch.randint(2, (5,))
    loss = nn.functional.cross_entropy(tuned(backbone(x)), y) + nn.functional.cross_entropy(restored(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mode = tuned[2].training
    tuned[2].eval()
    with torch.no_grad():
        print(tuned(backbone(x)).argmax(1).tolist(), loss.item().hex())
    tuned[2].train(mode)
# options: --steps 3
