"""A classifier that ends with a softmax, trained with nn.CrossEntropyLoss: the loss stays near its first value."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 6 * 6, 10)

    def forward(self, x):
        x = F.relu(self.conv(x)).flatten(1)
        return F.softmax(self.fc(x), dim=1)


torch.manual_seed(0)
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for _ in range(2):
    images, labels = torch.randn(4, 1, 8, 8), torch.randint(10, (4,))
    optimizer.zero_grad()
    outputs = model(images)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
# expect: GI351 applied=16 loss=26 backward=27
