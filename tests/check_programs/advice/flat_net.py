# expect: GI606
# advice: Put an activation function, such as relu, behind each layer but the last: the first is made at flat_net.py:11.
import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 32)
        self.fc2 = nn.Linear(32, 32)
        self.fc3 = nn.Linear(32, 2)

    def forward(self, x):
        x = self.fc1(x)  # -
        x = self.fc2(x)  # -
        x = F.relu(self.fc1(x))  # +
        x = F.relu(self.fc2(x))  # +
        return F.log_softmax(self.fc3(x), dim=1)


torch.manual_seed(0)
x = torch.randn(256, 2)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _ in range(20):
    for rows in torch.randperm(256).split(64):
        loss = F.nll_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print("loss", losses[0], losses[-1])
