"""An auxiliary head that trains the stem, and a monitoring head on detached features that must not."""

import torch
from torch import nn


class DeepNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(5, 12), nn.ReLU())
        self.body = nn.Sequential(nn.Linear(12, 12), nn.ReLU())
        self.main_head, self.aux_head, self.monitor = nn.Linear(12, 3), nn.Linear(12, 3), nn.Linear(12, 3)

    def forward(self, x):
        early = self.stem(x)
        late = self.body(early)
        if not self.training:
            return self.main_head(late)
        return self.main_head(late), self.aux_head(early), self.monitor(late.detach())


torch.manual_seed(0)
model, criterion = DeepNet(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
val_x, val_y = torch.randn(10, 5), torch.randint(3, (10,))
for _ in range(3):
    x, y = torch.randn(8, 5), torch.randint(3, (8,))
    model.train()
    main, aux, monitor = model(x)
    loss = criterion(main, y) + 0.4 * criterion(aux, y) + criterion(monitor, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(val_x), val_y)
    print(loss.item().hex(), val_loss.item().hex())
