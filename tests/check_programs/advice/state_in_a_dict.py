# expect: GI401
# lines: kept=17
# why: carry (state_in_a_dict.py:17) brings the graph of an earlier iteration into this one
# advice: state_in_a_dict.py:17 keeps carry for the next iteration: there, write 'state['carry'] = carry.detach()'
import torch
from torch import nn

torch.manual_seed(0)
model, head = nn.GRU(4, 8), nn.Linear(8, 4)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.02)


def run(chunk: torch.Tensor, state: dict[str, torch.Tensor]) -> torch.Tensor:
    """Predict a part of a sequence, from where the last part ended."""
    out, carry = model(chunk, state.get("carry"))
    state["carry"] = carry.detach()  # +
    state["carry"] = carry  # -
    return head(out)


state: dict[str, torch.Tensor] = {}
chunk = torch.randn(5, 2, 4)
history = []
for _ in range(8):
    loss = (run(chunk, state) - chunk).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
