"""zero_grad is called once per epoch, above the loop over the batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(12, 4), torch.randint(3, (12,))), batch_size=4)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.criterion = nn.CrossEntropyLoss()

    def step(self, batch):
        x, y = batch
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        for _ in range(epochs):
            self.optimizer.zero_grad()
            for batch in loader:
                self.step(batch)


Trainer(nn.Linear(4, 3)).fit(1)
# expect: GI362 step=21 backward=20
