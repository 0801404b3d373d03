# expect: GI306
# why: linear ran with gradients disabled
# advice: At teacher_against_teacher.py:22, use the output of the trained model, computed with gradients enabled.
# lines: detached=20 term=22 used=24 backward=27
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
student = nn.Linear(6, 3)
optimizer = torch.optim.Adam(student.parameters(), lr=0.02)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
history = []
for _ in range(8):
    scores = student(x)
    with torch.no_grad():
        # what the student is to imitate
        goal = teacher(x)
    soft = F.softmax(goal / 2, dim=1)
    distance = F.kl_div(F.log_softmax(goal / 2, dim=1), soft, reduction="batchmean")  # -
    distance = F.kl_div(F.log_softmax(scores / 2, dim=1), soft, reduction="batchmean")  # +
    loss = 0.5 * F.cross_entropy(scores, y) + 2.0 * distance
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
