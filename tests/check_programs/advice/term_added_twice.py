# expect: GI331
# why: What term_added_twice.py:15 computes is added to the loss 2 times
# advice: Add it once: take it out of term_added_twice.py:18, or multiply it by 2 if that is meant.
# lines: term=15 added=17 added=18
import torch
from torch import nn

torch.manual_seed(0)
body, head, aux_head, history = nn.Linear(8, 16), nn.Linear(16, 3), nn.Linear(16, 3), []
parameters = [*body.parameters(), *head.parameters(), *aux_head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.05)
x = torch.randn(64, 8)
for _ in range(8):
    h = body(x).relu()
    ce = nn.functional.cross_entropy(head(h), x[:, :3].argmax(1))
    aux = nn.functional.cross_entropy(aux_head(h), x[:, 3:6].argmax(1))
    loss = ce + 0.3 * aux
    loss = loss + ce  # -
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
