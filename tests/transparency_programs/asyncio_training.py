import asyncio

import fingerprint
import torch
from torch import nn

torch.manual_seed(41)
model = nn.Sequential(nn.Linear(4, 4), nn.SiLU(), nn.Linear(4, 1))


def backward(loss):
    loss.backward()
    return loss.item()


async def batches():
    for _ in range(4):
        await asyncio.sleep(0)
        yield torch.randn(2, 4)


async def main():
    async for batch in batches():
        loss = model(batch).square().mean()
        print(f"{await asyncio.to_thread(backward, loss):.9f}")


asyncio.run(main())
fingerprint.show(model)
