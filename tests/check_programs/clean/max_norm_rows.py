"""Max-norm rows, renormed in place after the step; LeakyReLU keeps its input, so in-place dropout may follow it."""

import torch
from torch import nn

torch.manual_seed(0)
embedding = nn.Embedding(12, 5)
classifier = nn.Sequential(nn.Linear(5, 10), nn.LeakyReLU(), nn.Dropout(0.3, inplace=True), nn.Linear(10, 3))
params = list(embedding.parameters()) + list(classifier.parameters())
optimizer = torch.optim.Adagrad(params, lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)


@torch.no_grad()
def constrain():
    embedding.weight.div_(embedding.weight.norm(dim=1, keepdim=True).clamp(min=1.0))
    for layer in classifier:
        if isinstance(layer, nn.Linear):
            layer.weight.copy_(torch.renorm(layer.weight, p=2, dim=0, maxnorm=1.0))


for _ in range(4):
    words, labels = torch.randint(12, (8, 4)), torch.randint(3, (8,))
    loss = nn.functional.cross_entropy(classifier(embedding(words).mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    constrain()
    scheduler.step()
    print(loss.item().hex(), scheduler.get_last_lr()[0])
