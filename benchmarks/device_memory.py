"""Compare what `fit --real` measures on each device with the device's own count, in bytes.

`python benchmarks/device_memory.py` runs programs on the simulated device of the tests, of which there are two, and
which counts what it gives out: plain, and under `fit --real`, each in a process of its own.
`python benchmarks/device_memory.py GAN` trains one of them. On a machine with CUDA, `DEVICE=cuda` takes its GPUs.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from step_models import Training
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

KIND = os.environ.get("DEVICE", "sim")
FIRST, SECOND = f"{KIND}:0", f"{KIND}:1"
STEPS = 2
WITNESS = "DEVICE_MEMORY_WITNESS"  # the file that a program writes its peaks to


def of_models(*words):
    """Train one of the models that `fit.py` compares."""
    return Training(*words, device=FIRST).step


def mlp(width=256, inside=64, out=64):
    return nn.Sequential(nn.Linear(inside, width), nn.GELU(), nn.Linear(width, out))


def two_devices():
    """Half of a model on each."""
    first, second = mlp().to(FIRST), mlp(512).to(SECOND)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])

    def step():
        loss = second(first(torch.randn(32, 64).to(FIRST)).to(SECOND)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def four_stages():
    """A model that goes from one device to the other and back."""
    stages = [mlp(128 * (n + 1)).to((FIRST, SECOND)[n % 2]) for n in range(4)]
    optimizers = [torch.optim.SGD(stage.parameters(), 0.1, momentum=0.9) for stage in stages]

    def step():
        hidden = torch.randn(64, 64)
        for number, stage in enumerate(stages):
            hidden = checkpoint(stage, hidden.to((FIRST, SECOND)[number % 2]), use_reentrant=False)
        hidden.square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    return step


def double_backward():
    """A gradient penalty: the device's thread makes nodes, and goes through them."""
    net = mlp(out=1).to(FIRST)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)

    def step():
        x = torch.randn(32, 64).to(FIRST).requires_grad_()
        out = net(x)
        (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        optimizer.zero_grad()
        (out.mean() + (gradient.norm(dim=1) - 1).square().mean()).backward()
        optimizer.step()

    return step


def hessian_vector():
    """Products with the Hessian, by autograd alone."""
    net = mlp().to(FIRST)
    parameters = list(net.parameters())

    def step():
        loss = net(torch.randn(16, 64).to(FIRST)).square().mean()
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        torch.autograd.backward(sum((one * one.detach()).sum() for one in gradients), inputs=parameters)
        with torch.no_grad():
            for parameter in parameters:
                parameter.sub_(0.01 * parameter.grad)
                parameter.grad = None

    return step


def gan():
    """Two models, two optimizers, two backward calls."""
    maker, judge = mlp().to(FIRST), mlp(out=1).to(FIRST)
    of_maker, of_judge = (torch.optim.Adam(net.parameters()) for net in (maker, judge))

    def step():
        made = maker(torch.randn(32, 64).to(FIRST))
        loss = F.softplus(judge(made.detach())).mean() + F.softplus(-judge(torch.randn(32, 64).to(FIRST))).mean()
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()
        of_maker.zero_grad()
        F.softplus(-judge(made)).mean().backward()
        of_maker.step()

    return step


def checkpointed(*, reentrant):
    """Blocks that are computed again on the device's thread."""
    blocks = nn.ModuleList(mlp() for _ in range(4)).to(FIRST)
    optimizer = torch.optim.AdamW(blocks.parameters(), foreach=False)

    def step():
        hidden = torch.randn(256, 64).to(FIRST).requires_grad_()
        for block in blocks:
            hidden = hidden + checkpoint(block, hidden, use_reentrant=reentrant)
        optimizer.zero_grad()
        hidden.square().mean().backward()
        optimizer.step()

    return step


def lbfgs():
    """An optimizer that runs forward and backward itself."""
    net = mlp().to(FIRST)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
    x = torch.randn(32, 64).to(FIRST)

    def closure():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    return lambda: optimizer.step(closure)


def kept_losses():
    """Graphs of earlier steps stay, and the CPU holds copies."""
    net = mlp().to(FIRST)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    losses, copies = [], []

    def step():
        out = net(torch.randn(64, 64).to(FIRST))
        losses.append(out.square().mean())
        copies.append(out.detach().cpu())
        optimizer.zero_grad()
        losses[-1].backward(retain_graph=True)
        optimizer.step()

    return step


def pinned():
    """Batches of page-locked memory, and gradients that are clipped."""
    net = mlp().to(FIRST)
    optimizer = torch.optim.RMSprop(net.parameters())

    def step():
        x = torch.randn(512, 64).pin_memory().to(FIRST, non_blocking=True)
        optimizer.zero_grad()
        net(x).square().mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    return step


PROGRAMS = {
    "GPT": lambda: of_models("GPT", "AdamW", "foreach"),
    "GPT, one by one": lambda: of_models("GPT", "AdamW", "for-loop"),
    "GPT, AMP": lambda: of_models("GPT", "AdamW", "foreach", "autocast"),
    "GPT, checkpointed": lambda: of_models("GPT", "AdamW", "foreach", "checkpointing"),
    "GPT, AMP, checkpointed, accumulated": lambda: of_models(
        "GPT", "Adam", "foreach", "autocast", "checkpointing", "accumulation"
    ),
    "GPT, clipped, EMA": lambda: of_models("GPT", "SGD", "foreach", "clipping", "EMA"),
    "mixture of experts": lambda: of_models("MoE", "AdamW", "foreach"),
    "LSTM": lambda: of_models("LSTM", "Adam", "foreach"),
    "ViT": lambda: of_models("ViT", "AdamW", "foreach"),
    "ViT, checkpointed": lambda: of_models("ViT", "momentum", "foreach", "checkpointing"),
    "ResNet": lambda: of_models("ResNet", "momentum", "foreach"),
    "ResNet, AMP": lambda: of_models("ResNet", "SGD", "foreach", "autocast"),
    "U-Net": lambda: of_models("UNet", "Adam", "foreach"),
    "two devices": two_devices,
    "two devices, checkpointed": four_stages,
    "double backward": double_backward,
    "Hessian-vector products": hessian_vector,
    "GAN": gan,
    "checkpointed": lambda: checkpointed(reentrant=False),
    "checkpointed, reentrant": lambda: checkpointed(reentrant=True),
    "LBFGS": lbfgs,
    "losses that are kept": kept_losses,
    "pinned batches": pinned,
}


def main():
    """Train the program that is named, or print the table."""
    if sys.argv[1:]:
        train(sys.argv[1])
        return
    print(f"{'program':38}{'device':8}{'its own count':>15}{'fit --real':>13}{'off':>6}   by kind")
    for name in PROGRAMS:
        compare(name)


def train(name):
    """Make some steps, and write what the devices counted."""
    find_device()
    torch.manual_seed(0)
    step = PROGRAMS[name]()
    for _ in range(STEPS):
        step()
    module = getattr(torch, KIND)
    peaks = {f"{KIND}:{n}": module.max_memory_allocated(n) for n in range(module.device_count())}
    if WITNESS in os.environ:
        Path(os.environ[WITNESS]).write_text(json.dumps(peaks))
    else:
        print(peaks)


def find_device():
    """Load the simulated device, if that is meant."""
    if KIND == "sim":
        sys.path.append(str(Path(__file__).parents[1] / "tests"))
        from simulated_device import register
        from simulated_device.building import build, load

        register(load(build()))


def compare(name):
    """Print a row for each device that a program uses."""
    command = [sys.executable, __file__, name]
    plain, _ = run(command)
    options = ["--real", "--steps", "9", "--format", "json", "--quiet-script"]  # until the program ends
    watched, text = run([sys.executable, "-m", "gradinspect", "fit", __file__, *options, "--", name])
    measured = {one["on"]: one for one in json.loads(text)["devices"]}
    for device, peak in plain.items():
        if not peak and device not in measured:
            continue
        found = measured[device]["peak_bytes"] if device in measured else 0
        noticed = "" if watched[device] == peak else f"   under fit it counts {watched[device]:,}"
        kinds = measured[device]["by_kind"] if device in measured else {}
        shown = ", ".join(f"{kind} {share / found:.0%}" for kind, share in kinds.items() if share * 50 > found)
        print(f"{name:38}{device:8}{peak:15,}{found:13,}{found - peak:6,}   {shown}{noticed}", flush=True)


def run(command):
    """Run a program, and return what the devices counted and what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        witness = Path(folder) / "peaks.json"
        done = subprocess.run(
            command, env=os.environ | {WITNESS: str(witness)}, capture_output=True, text=True, check=False
        )
        if done.returncode or not witness.exists():
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return json.loads(witness.read_text()), done.stdout


if __name__ == "__main__":
    main()
