# expect: GI361
# why: What groups_by_type.py:28 selects by name or type does not include these.
# advice: let the last group take every parameter that no other group has.
# lines: optimizer=28 backward=34
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv1d(1, 4, 3, bias=False), nn.BatchNorm1d(4), nn.ReLU(),
    nn.Conv1d(4, 4, 3, bias=False), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(48, 3),
)  # fmt: skip


def groups():
    decayed, others = [], []
    for module in model.modules():
        if isinstance(module, nn.Linear):
            decayed += [module.weight]
            others += [module.bias]
        elif isinstance(module, nn.BatchNorm1d):
            others += [module.weight, module.bias]
    known = {id(one) for one in [*decayed, *others]}  # +
    others += [one for one in model.parameters() if id(one) not in known]  # +
    return [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]


optimizer = torch.optim.AdamW(groups(), lr=0.01)
x, y = torch.randn(48, 1, 16), torch.randint(3, (48,))
history = []
for _ in range(8):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
