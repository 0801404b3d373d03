"""Objects of a user that raise at whatever they are asked, as text of a program and for tests."""

SOURCE = """\
class Meta(type):
    def __eq__(self, other): raise RuntimeError("== of a class")  # and so it has no hash
class Bad(metaclass=Meta):
    @property
    def __class__(self): raise RuntimeError("__class__")
    def __getattr__(self, name): raise RuntimeError(f"attribute {name}")
    def __repr__(self): raise RuntimeError("repr")
    def __eq__(self, other): raise RuntimeError("==")
    def __bool__(self): raise RuntimeError("bool")
    def __len__(self): raise RuntimeError("len")
    def __iter__(self): raise RuntimeError("iter")
class BadList(list, metaclass=Meta):
    def __iter__(self): raise RuntimeError("iter of a list")
    def __len__(self): raise RuntimeError("len of a list")
    def __getitem__(self, index): raise RuntimeError("item of a list")
class BadDict(dict, metaclass=Meta):
    def items(self): raise RuntimeError("items")
    def values(self): raise RuntimeError("values")
    def keys(self): raise RuntimeError("keys")
    def __iter__(self): raise RuntimeError("iter of a dict")
    def __contains__(self, key): raise RuntimeError("in")
class Key(str):
    def __repr__(self): raise RuntimeError("repr of a key")
    def __format__(self, spec): raise RuntimeError("format of a key")
    def __str__(self): raise RuntimeError("str of a key")
class Number(int):
    def __int__(self): raise RuntimeError("int")
    def __repr__(self): raise RuntimeError("repr of a number")
"""
OBJECTS: dict[str, type] = {}
exec(SOURCE, OBJECTS)  # noqa: S102  # the text above

PROGRAM = f"""\
import torch
from torch import nn
{SOURCE}
class Odd:  # torch itself asks for its class
    def __repr__(self): raise RuntimeError("repr")
    def __bool__(self): raise RuntimeError("bool")
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, odd):
        ctx.odd, ctx.items, ctx.named, ctx.kind = Bad(), BadList([odd]), BadDict(x=x.detach()), Bad
        ctx.number, ctx.text = Number(3), Key("k")
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None
class ModuleMeta(type):
    def __eq__(self, other): raise RuntimeError("== of a class of modules")
class Part(nn.Module, metaclass=ModuleMeta):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.__dict__.update(bad=Bad(), items=BadList([Bad()]), named=BadDict({{Key("k"): Bad()}}))
    def forward(self, x, odd, items, named):
        inner = {{Key("n"): odd, "items": items}}
        return {{"out": self.linear(x), "odd": odd, Key("named"): named}}
bad, items, named, kind = Bad(), BadList([Bad(), torch.ones(2)]), BadDict({{Key("x"): Bad(), "y": torch.ones(2)}}), Bad
plain, by_key, kept = [bad, items, named, Bad], {{Key("z"): bad, "q": items}}, []
def main():
    part = Part()
    optimizer = torch.optim.SGD(part.parameters(), lr=0.1)
    optimizer.param_groups[0].update(odd=Odd(), items=BadList([Bad()]))
    for _ in range(3):
        local, optimizer_state = Bad(), {{"items": BadList([Bad()])}}
        optimizer.zero_grad()
        hidden = part(torch.ones(2, 4), Bad(), BadList([torch.ones(1)]), BadDict(x=torch.ones(1)))["out"]
        loss = (Double.apply(hidden, Odd()).relu() * hidden).sum()
        loss.backward()
        optimizer.step()
        kept.append((loss, local))
main()
"""
