# expect: GI601
# advice: apply softmax to all scores, before gate_after_selection.py:18 selects some of them
# advice: gate_after_selection.py:18
# never: binary_cross_entropy
# lines: zeroed=19
import torch
from torch import nn

torch.manual_seed(0)
gate = nn.Linear(6, 3)
experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)) for _ in range(3))
optimizer = torch.optim.Adam([*gate.parameters(), *experts.parameters()], lr=0.01)
x = torch.randn(32, 6)
y = x[:, :1].abs()
history = []
for _ in range(10):
    scores = torch.softmax(gate(x), dim=-1)  # +
    best, chosen = gate(x).topk(1, dim=-1)  # -
    share = torch.softmax(best, dim=-1)  # -
    share, chosen = scores.topk(1, dim=-1)  # +
    shares = torch.zeros(32, 3).scatter(1, chosen, share)
    each = torch.cat([expert(x) for expert in experts], dim=1)
    loss = nn.functional.mse_loss((shares * each).sum(1, keepdim=True), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
