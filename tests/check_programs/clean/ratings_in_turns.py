"""Users and items of a table of ratings are fitted in turns; a penalty of both stands in each objective."""

import torch

torch.manual_seed(0)
ratings = torch.randn(20, 3) @ torch.randn(3, 15)
users = torch.nn.Parameter(torch.randn(20, 3) * 0.3)
items = torch.nn.Parameter(torch.randn(15, 3) * 0.3)
of_users = torch.optim.Adam([users], lr=0.05)
of_items = torch.optim.Adam([items], lr=0.05)


def objective(user, item):
    """Return the error with a penalty of both, of which one is held fixed."""
    return (user @ item.t() - ratings).square().mean() + 0.01 * (user.square().mean() + item.square().mean())


for _ in range(4):
    of_users.zero_grad()
    objective(users, items.detach()).backward()
    of_users.step()
    of_items.zero_grad()
    objective(users.detach(), items).backward()
    of_items.step()
