"""Train one of a library's models for three steps: `python library_model.py NAME [OPTIMIZER] [FEATURE ...]`."""

import hashlib
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


def hf(name, auto="AutoModelForCausalLM", **options):
    def make():
        import transformers

        config = transformers.AutoConfig.for_model(name, **options)
        net = getattr(transformers, auto).from_config(config)
        ids = torch.randint(5, 90, (2, 12))

        def loss():
            if auto == "AutoModelForCausalLM" or auto == "AutoModelForMaskedLM":
                return net(input_ids=ids, labels=ids).loss
            if auto == "AutoModelForSeq2SeqLM":
                return net(input_ids=ids, labels=ids).loss
            if auto == "AutoModelForImageClassification":
                return net(pixel_values=torch.randn(2, 3, 32, 32), labels=torch.tensor([0, 1])).loss
            return net(input_ids=ids).last_hidden_state.square().mean()

        return net, loss

    MODELS[f"hf_{name}"] = make


small = dict(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
for name in (
    "llama",
    "mistral",
    "qwen2",
    "gemma",
    "phi",
    "stablelm",
    "gpt_neox",
    "olmo",
    "mixtral",
    "starcoder2",
    "granite",
    "cohere",
):
    more = dict(num_key_value_heads=2)
    if name == "gemma":
        more["head_dim"] = 8
    hf(name, **small, **more)
hf("gpt2", vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64)
hf("bloom", vocab_size=100, hidden_size=32, n_layer=2, n_head=4)
hf(
    "opt",
    vocab_size=100,
    hidden_size=32,
    ffn_dim=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
    word_embed_proj_dim=32,
)
hf("mamba", vocab_size=100, hidden_size=32, num_hidden_layers=2, state_size=4)
for name in ("bert", "roberta", "electra", "albert", "deberta-v2", "mpnet"):
    hf(name, "AutoModelForMaskedLM", **{**small, "embedding_size": 32})
hf(
    "distilbert",
    "AutoModelForMaskedLM",
    vocab_size=100,
    dim=32,
    n_layers=2,
    n_heads=4,
    hidden_dim=48,
    max_position_embeddings=64,
)
hf(
    "t5",
    "AutoModelForSeq2SeqLM",
    vocab_size=100,
    d_model=32,
    d_kv=8,
    d_ff=48,
    num_layers=2,
    num_heads=4,
    decoder_start_token_id=0,
)
hf(
    "bart",
    "AutoModelForSeq2SeqLM",
    vocab_size=100,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_position_embeddings=64,
)
hf(
    "vit",
    "AutoModelForImageClassification",
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    image_size=32,
    patch_size=8,
)


@model
def vit_pytorch():
    from vit_pytorch import ViT

    net = ViT(
        image_size=32, patch_size=8, num_classes=4, dim=32, depth=2, heads=4, mlp_dim=64, dropout=0.1, emb_dropout=0.1
    )
    return net, lambda: nn.functional.cross_entropy(net(torch.randn(2, 3, 32, 32)), torch.tensor([0, 3]))


@model
def vit_mae():
    from vit_pytorch import MAE, ViT

    net = MAE(
        encoder=ViT(image_size=32, patch_size=8, num_classes=4, dim=32, depth=2, heads=4, mlp_dim=64),
        masking_ratio=0.75,
        decoder_dim=16,
        decoder_depth=1,
    )
    return net, lambda: net(torch.randn(2, 3, 32, 32))


@model
def x_transformers():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    net = AutoregressiveWrapper(
        TransformerWrapper(
            num_tokens=50, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
        )
    )
    return net, lambda: net(torch.randint(0, 50, (2, 20)))


@model
def x_transformers_xl():
    from x_transformers import Decoder, TransformerWrapper

    net = TransformerWrapper(
        num_tokens=50,
        max_seq_len=32,
        attn_layers=Decoder(
            dim=32, depth=2, heads=4, use_rmsnorm=True, ff_glu=True, alibi_pos_bias=True, attn_qk_norm=True
        ),
    )
    return net, lambda: net(torch.randint(0, 50, (2, 20))).square().mean()


@model
def vector_quantize():
    from vector_quantize_pytorch import VectorQuantize

    net = nn.ModuleList([nn.Linear(16, 16), VectorQuantize(dim=16, codebook_size=32, decay=0.8, commitment_weight=1.0)])

    def loss():
        quantized, _, commit = net[1](net[0](torch.randn(2, 8, 16)))
        return quantized.square().mean() + commit.sum()

    return net, loss


@model
def diffusion_unet():
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    net = GaussianDiffusion(Unet(dim=16, dim_mults=(1, 2), flash_attn=False), image_size=16, timesteps=10)
    return net, lambda: net(torch.rand(2, 3, 16, 16))


@model
def diffusers_unet():
    from diffusers import UNet2DModel

    net = UNet2DModel(
        sample_size=16,
        block_out_channels=(16, 32),
        layers_per_block=1,
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    return net, lambda: net(torch.randn(1, 3, 16, 16), 3).sample.square().mean()


@model
def peft_lora():
    import transformers
    from peft import LoraConfig, get_peft_model

    net = get_peft_model(
        transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model("llama", **small)),
        LoraConfig(r=4, target_modules=["q_proj", "v_proj"]),
    )
    ids = torch.randint(5, 90, (2, 12))
    return net, lambda: net(input_ids=ids, labels=ids).loss


@model
def gpytorch_exact():
    import gpytorch

    x = torch.linspace(0, 1, 20)
    y = torch.sin(6 * x)

    class GP(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, y, likelihood)
            self.mean, self.kernel = (
                gpytorch.means.ConstantMean(),
                gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()),
            )

        def forward(self, v):
            return gpytorch.distributions.MultivariateNormal(self.mean(v), self.kernel(v))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    net = GP(likelihood)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, net)
    return net, lambda: -mll(net(x), y)


@model
def botorch_fit():
    from botorch.acquisition import LogExpectedImprovement
    from botorch.models import SingleTaskGP

    x = torch.rand(8, 2, dtype=torch.double)
    gp = SingleTaskGP(x, x.sum(1, keepdim=True))
    point = nn.Parameter(torch.rand(1, 2, dtype=torch.double))
    net = nn.ParameterList([point])
    gp.eval()
    return net, lambda: -LogExpectedImprovement(gp, best_f=1.0)(point).sum()


@model
def pyg_gat():
    from torch_geometric.nn import GATConv, GCNConv, global_mean_pool

    net = nn.ModuleList([GCNConv(8, 16), GATConv(16, 8, heads=2), nn.Linear(16, 2)])
    edges = torch.randint(0, 10, (2, 30))

    def loss():
        h = net[1](net[0](torch.randn(10, 8), edges).relu(), edges)
        return nn.functional.cross_entropy(
            net[2](global_mean_pool(h, torch.tensor([0] * 5 + [1] * 5))), torch.tensor([0, 1])
        )

    return net, loss


@model
def e3nn_net():
    from e3nn import o3

    net = o3.FullyConnectedTensorProduct("4x0e+2x1o", "1x0e+1x1o", "2x0e+2x1o")
    return net, lambda: net(torch.randn(3, 10), torch.randn(3, 4)).square().mean()


@model
def monai_unet():
    from monai.losses import DiceLoss
    from monai.networks.nets import UNet

    net = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(8, 16, 32), strides=(2, 2))
    return net, lambda: DiceLoss(softmax=True, to_onehot_y=True)(
        net(torch.randn(1, 1, 32, 32)), torch.ones(1, 1, 32, 32)
    )


@model
def nflows_maf():
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
    from nflows.transforms.base import CompositeTransform
    from nflows.transforms.permutations import ReversePermutation

    net = Flow(
        CompositeTransform([ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, 8)]), StandardNormal([2])
    )
    return net, lambda: -net.log_prob(torch.randn(16, 2)).mean()


@model
def kornia_warp():
    import kornia

    net = nn.Conv2d(3, 3, 3, padding=1)
    return net, lambda: kornia.losses.ssim_loss(
        kornia.filters.gaussian_blur2d(net(torch.rand(1, 3, 16, 16)), (3, 3), (1.0, 1.0)), torch.rand(1, 3, 16, 16), 5
    )


@model
def torchmetrics_loss():
    from torchmetrics.functional import pearson_corrcoef

    net = nn.Linear(4, 1)
    return net, lambda: 1 - pearson_corrcoef(net(torch.randn(16, 4))[:, 0], torch.randn(16))


@model
def torchsde_solve():
    import torchsde

    class SDE(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.mu, self.sigma = nn.Linear(2, 2), nn.Linear(2, 2)

        def f(self, t, y):
            return self.mu(y)

        def g(self, t, y):
            return self.sigma(y)

    net = SDE()
    return (
        net,
        lambda: torchsde.sdeint(net, torch.ones(3, 2), torch.linspace(0, 1, 5), method="euler", dt=0.1).square().mean(),
    )


@model
def higher_inner():
    import higher

    net = nn.Linear(3, 1)
    inner = torch.optim.SGD(net.parameters(), lr=0.1)

    def loss():
        with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (fast, steps):
            for _ in range(3):
                steps.step(fast(torch.randn(4, 3)).square().mean())
            return fast(torch.randn(4, 3)).square().mean()

    return net, loss


for timm_name in (
    "resnet18",
    "mobilenetv3_small_050",
    "efficientnet_lite0",
    "convnext_atto",
    "vit_tiny_patch16_224",
    "swin_tiny_patch4_window7_224",
    "mixer_s32_224",
    "regnetx_002",
    "deit_tiny_patch16_224",
    "ghostnet_050",
):

    def timm_model(timm_name=timm_name):
        import timm

        size = 224 if "224" in timm_name else 64
        net = timm.create_model(timm_name, num_classes=3)
        return net, lambda: nn.functional.cross_entropy(net(torch.randn(2, 3, size, size)), torch.tensor([0, 1]))

    MODELS[f"timm_{timm_name}"] = timm_model


def accelerate_loop():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(net.parameters())
    data = torch.utils.data.DataLoader(torch.randn(12, 4), batch_size=2)
    net, optimizer, data = accelerator.prepare(net, optimizer, data)
    for batch in data:
        with accelerator.accumulate(net):
            loss = net(batch).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        print(f"{loss.item():.9f}")
    return net


def lightning_fit():
    import lightning

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(4, 1)

        def training_step(self, batch, number):
            return self.net(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    lit = Lit()
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(lit, torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=2))
    return lit


def hf_trainer():
    import tempfile

    import transformers

    net = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model("gpt2", vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    )
    data = [{"input_ids": torch.randint(5, 90, (12,)), "labels": torch.randint(5, 90, (12,))} for _ in range(8)]
    args = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=3,
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        gradient_checkpointing=True,
        logging_strategy="no",
    )
    transformers.Trainer(model=net, args=args, train_dataset=data).train()
    return net


LOOPS = {f.__name__: f for f in (accelerate_loop, lightning_fit, hf_trainer)}


def digest(net):
    found = hashlib.sha256()
    for p in net.parameters():
        found.update(p.detach().float().contiguous().numpy().tobytes())
        found.update(b"" if p.grad is None else p.grad.detach().float().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


OPTIMIZERS = {
    "AdamW": lambda of: torch.optim.AdamW(of, lr=1e-3),
    "Adam": lambda of: torch.optim.Adam(of, lr=1e-3),
    "fused": lambda of: torch.optim.AdamW(of, lr=1e-3, fused=True),
    "amsgrad": lambda of: torch.optim.Adam(of, lr=1e-3, amsgrad=True, foreach=False),
    "SGD": lambda of: torch.optim.SGD(of, lr=1e-2),
    "momentum": lambda of: torch.optim.SGD(of, lr=1e-2, momentum=0.9, nesterov=True, weight_decay=1e-4),
    "RMSprop": lambda of: torch.optim.RMSprop(of, lr=1e-3, momentum=0.9),
    "Adagrad": lambda of: torch.optim.Adagrad(of, lr=1e-2),
    "Adadelta": lambda of: torch.optim.Adadelta(of),
    "Adafactor": lambda of: torch.optim.Adafactor(of, lr=1e-3),
    "NAdam": lambda of: torch.optim.NAdam(of, lr=1e-3),
    "RAdam": lambda of: torch.optim.RAdam(of, lr=1e-3),
    "Rprop": lambda of: torch.optim.Rprop(of, lr=1e-3),
}


def checkpointed(net):
    """Checkpoint each module of the lists of modules below a model, the outermost ones."""
    from functools import partial

    from torch.utils.checkpoint import checkpoint

    for part in net.children():
        if not isinstance(part, nn.ModuleList | nn.Sequential):
            checkpointed(part)
            continue
        for block in part:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def main(name, kind="AdamW", *features):
    if name in LOOPS:
        net = LOOPS[name]()
    else:
        net, loss_of = MODELS[name]()
        if "bfloat16" in features:
            net.to(torch.bfloat16)
        if "checkpointing" in features:
            checkpointed(net)
        optimizer = OPTIMIZERS[kind]([p for p in net.parameters() if p.requires_grad])
        parts = 2 if "accumulation" in features else 1
        scaler = torch.amp.GradScaler("cpu", enabled="scaler" in features)
        for step in range(3):
            for number in range(parts):
                with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in features):
                    loss = loss_of() / parts
                if number == 0:
                    optimizer.zero_grad(set_to_none="filled" not in features)
                scaler.scale(loss).backward()
            if "clipping" in features:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            print(step, f"{loss.item():.9f}")
    print(digest(net), hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()[:16])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(*MODELS, *LOOPS, sep="\n")
    else:
        main(*sys.argv[1:])
