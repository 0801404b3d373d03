"""Bags of words with sparse gradients: one optimizer for the sparse table, one for the dense head, both zeroed."""

import torch
from torch import nn

torch.manual_seed(0)


class BagClassifier(nn.Module):
    def __init__(self, words=50, dim=6, classes=3):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, dim, mode="mean", sparse=True)
        self.head = nn.Linear(dim, classes)

    def forward(self, words, offsets):
        return self.head(self.bag(words, offsets))


model = BagClassifier()
optimizers = [
    torch.optim.SparseAdam(model.bag.parameters(), lr=1e-2),
    torch.optim.Adam(model.head.parameters(), lr=1e-2),
]
criterion = nn.CrossEntropyLoss()
for _ in range(4):
    words = torch.randint(0, 50, (12,))
    offsets = torch.tensor([0, 3, 4, 9])  # bags of 3, 1, 5 and 3 words
    labels = torch.randint(0, 3, (4,))
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss = criterion(model(words, offsets), labels)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    print(loss.item().hex())
