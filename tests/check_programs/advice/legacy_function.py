# expect: GI001
# advice: Write forward and backward with @staticmethod and ctx instead of self, and call apply() of the class.
import torch
from torch import nn


class Squared(torch.autograd.Function):  # -
    """Squares."""  # -

    def forward(self, x):  # -
        self.save_for_backward(x)  # -
        return x * x  # -

    def backward(self, gradient):  # -
        (x,) = self.saved_tensors  # -
        return 2 * x * gradient  # -


class Square(torch.autograd.Function):  # +
    """Squares."""  # +

    @staticmethod  # +
    def forward(ctx, x):  # +
        ctx.save_for_backward(x)  # +
        return x * x  # +

    @staticmethod  # +
    def backward(ctx, gradient):  # +
        (x,) = ctx.saved_tensors  # +
        return 2 * x * gradient  # +


torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = Squared()(net(x) - x.sum(1, keepdim=True)).mean()  # -
    loss = Square.apply(net(x) - x.sum(1, keepdim=True)).mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
