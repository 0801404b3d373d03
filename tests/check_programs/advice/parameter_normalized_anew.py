# expect: GI361
# why: assigns new ones each time it runs, and optimizer keeps the old ones.
# advice: write the values into the one that optimizer holds, under torch.no_grad(), by its copy_().
# lines: replaced=22 backward=36
import torch
from torch import nn


class Distances(nn.Module):
    def __init__(self):
        super().__init__()
        self.entity, self.relation = nn.Embedding(12, 4), nn.Embedding(2, 4)

    def score(self, head, relation, tail):
        return (self.entity(head) + self.relation(relation) - self.entity(tail)).square().sum(1)

    def normalize(self):
        unit = nn.functional.normalize(self.entity.weight.detach(), dim=1)
        with torch.no_grad():  # +
            self.entity.weight.copy_(unit)  # +

        self.entity.weight = nn.Parameter(unit)  # -


torch.manual_seed(0)
model = Distances()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
head, relation, tail = torch.arange(12), torch.zeros(12, dtype=torch.long), torch.arange(1, 13) % 12
history = []
for _ in range(6):
    model.normalize()
    for _batch in range(3):
        loss = model.score(head, relation, tail).mean()
        history.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", history[0], history[-1])
