# expect: GI357
# why: the largest value of each row is on the diagonal, where no target is
# advice: scores = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool, device=scores.device), float('-inf'))
# lines: scores=18 loss=21
import torch
from torch import nn
from torch.nn import functional


class Contrast(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, first, second):
        both = functional.normalize(torch.stack([first, second], 1).flatten(0, 1), dim=-1)
        target = torch.arange(len(both)) ^ 1
        scores = torch.einsum("id,jd->ij", both, both).div(self.temperature)
        mask = torch.eye(len(scores), dtype=torch.bool, device=scores.device)  # +
        scores = scores.masked_fill(mask, float("-inf"))  # +
        return functional.cross_entropy(scores, target)


torch.manual_seed(0)
encoder, contrast, history = nn.Linear(6, 4), Contrast(0.2), []
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
x = torch.randn(24, 6)
for _ in range(6):
    loss = contrast(encoder(x + 0.1 * torch.randn_like(x)), encoder(x + 0.1 * torch.randn_like(x)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
