"""Train a model that somebody wrote in a repository: `python source_model.py NAME [OPTIMIZER] [FEATURE ...]`.

It lies beside snapshots of the repositories that real_fits.txt names, and `library_model.py`, which trains.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from library_model import MODELS, main
from torch import nn
from torch.nn import functional

HERE = Path(__file__).parent
LABML = "annotated_deep_learning_paper_implementations"


def beside(*folders: str) -> None:
    sys.path[:0] = [str(HERE / folder) for folder in folders]


def language(name: str, make: Callable[[], nn.Module], *, batch: int = 4, length: int = 64, first: bool = True) -> None:
    """Add a model of next tokens; where not `first`, the length comes before the batch."""

    def made():
        net = make()
        shape = (batch, length) if first else (length, batch)

        def loss():
            tokens = torch.randint(100, shape)
            out = net(tokens)
            logits = out[0] if isinstance(out, tuple) else out
            return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())

        return net, loss

    MODELS[name] = made


def images(name: str, make: Callable[[], nn.Module], *, size: int = 32, batch: int = 4, channels: int = 3) -> None:
    """Add a model of ten classes."""

    def made():
        net = make()
        return net, lambda: functional.cross_entropy(
            net(torch.randn(batch, channels, size, size)), torch.arange(batch) % 10
        )

    MODELS[name] = made


def nano_gpt():
    beside("nanoGPT")
    from model import GPT, GPTConfig

    net = GPT(GPTConfig(block_size=128, vocab_size=512, n_layer=4, n_head=4, n_embd=128, dropout=0.1))

    def loss():
        tokens = torch.randint(512, (8, 128))
        return net(tokens, tokens)[1]

    return net, loss


def mini_gpt():
    beside("minGPT")
    from mingpt.model import GPT

    config = GPT.get_default_config()
    config.model_type, config.vocab_size, config.block_size = "gpt-micro", 512, 64
    net = GPT(config)

    def loss():
        tokens = torch.randint(512, (8, 64))
        return net(tokens, tokens)[1]

    return net, loss


def make_more(kind: str):
    def made():
        beside("makemore")
        import makemore

        config = makemore.ModelConfig(vocab_size=27, block_size=16, n_layer=2, n_embd=64, n_embd2=64, n_head=4)
        makes = {"rnn": lambda c: makemore.RNN(c, cell_type="rnn"), "gru": lambda c: makemore.RNN(c, cell_type="gru")}
        net = makes.get(kind, getattr(makemore, kind, None))(config)

        def loss():
            tokens = torch.randint(27, (32, 16))
            return net(tokens, tokens)[1]

        return net, loss

    return made


def mamba():
    beside("mamba-minimal")
    from model import Mamba, ModelArgs

    return Mamba(ModelArgs(d_model=64, n_layer=2, vocab_size=104))


def dit():
    beside("DiT")
    from models import DiT

    net = DiT(input_size=16, hidden_size=96, depth=4, num_heads=4, num_classes=10)

    def loss():
        noise = torch.randn(4, 4, 16, 16)
        out = net(noise, torch.randint(0, 1000, (4,)), torch.randint(0, 10, (4,)))
        return functional.mse_loss(out[:, :4], noise)

    return net, loss


def ddpm():
    beside(LABML)
    from labml_nn.diffusion.ddpm import DenoiseDiffusion
    from labml_nn.diffusion.ddpm.unet import UNet

    net = UNet(image_channels=3, n_channels=32, ch_mults=(1, 2, 2), is_attn=(False, False, True))
    diffusion = DenoiseDiffusion(eps_model=net, n_steps=100, device=torch.device("cpu"))
    return net, lambda: diffusion.loss(torch.randn(4, 3, 32, 32))


def kan():
    beside("efficient-kan/src")
    from efficient_kan import KAN

    net = KAN([28 * 28, 64, 10])
    return net, lambda: functional.cross_entropy(net(torch.rand(64, 28 * 28) * 2 - 1), torch.arange(64) % 10)


def kan_regularized():
    net, loss = kan()
    return net, lambda: loss() + 1e-4 * net.regularization_loss()


def mixture():
    beside("mixture-of-experts")
    from moe import MoE

    net = MoE(input_size=64, output_size=10, num_experts=6, hidden_size=128, k=2)

    def loss():
        out, balance = net(torch.randn(64, 64))
        return functional.cross_entropy(out, torch.arange(64) % 10) + balance

    return net, loss


def unet():
    beside("Pytorch-UNet")
    from unet import UNet

    net = UNet(n_channels=3, n_classes=2, bilinear=True)
    return net, lambda: functional.cross_entropy(net(torch.randn(1, 3, 64, 64)), torch.randint(2, (1, 64, 64)))


def unet_dice():
    net, _ = unet()
    from utils.dice_score import dice_loss

    def both():
        out, masks = net(torch.randn(1, 3, 64, 64)), torch.randint(2, (1, 64, 64))
        one_hot = functional.one_hot(masks, 2).permute(0, 3, 1, 2).float()
        return functional.cross_entropy(out, masks) + dice_loss(
            functional.softmax(out, dim=1), one_hot, multiclass=True
        )

    return net, both


def labml_unet():
    beside(LABML)
    from labml_nn.unet import UNet

    net = UNet(3, 1)
    return net, lambda: net(torch.randn(1, 3, 64, 64)).square().mean()


def cifar(name: str, *arguments):
    def made():
        beside("pytorch-cifar")
        import models

        return getattr(models, name)(*arguments)

    images(f"cifar_{name}", made)


def conv_mixer():
    beside(LABML)
    from labml_nn.conv_mixer import ClassificationHead, ConvMixer, ConvMixerLayer, PatchEmbeddings

    return ConvMixer(ConvMixerLayer(64, 5), 3, PatchEmbeddings(64, 2, 3), ClassificationHead(64, 10))


def capsules():
    beside(LABML)
    from labml_nn.capsule_networks import MarginLoss
    from labml_nn.capsule_networks.mnist import MNISTCapsuleNetworkModel

    net, margin = MNISTCapsuleNetworkModel(), MarginLoss(n_labels=10)

    def loss():
        pictures, labels = torch.rand(10, 1, 28, 28), torch.arange(10)
        capsules, rebuilt, _ = net(pictures)
        return margin(capsules.norm(dim=-1), labels) + 0.0005 * functional.mse_loss(rebuilt, pictures)

    return net, loss


def labml_layer(width: int = 64):
    from labml_nn.transformers import MultiHeadAttention, TransformerLayer
    from labml_nn.transformers.feed_forward import FeedForward

    return TransformerLayer(
        d_model=width,
        self_attn=MultiHeadAttention(4, width),
        feed_forward=FeedForward(width, 4 * width),
        dropout_prob=0.1,
    )


class Around(nn.Module):
    """Tokens in, logits out; a body between."""

    def __init__(self, body: nn.Module, call, width: int = 64) -> None:
        super().__init__()
        self.embed, self.body, self.head, self.call = nn.Embedding(100, width), body, nn.Linear(width, 100), call

    def forward(self, tokens):
        return self.head(self.call(self.body, self.embed(tokens)))


def labml_encoder():
    beside(LABML)
    from labml_nn.transformers import Encoder

    return Around(Encoder(labml_layer(), 3), lambda body, x: body(x, None))


def labml_switch():
    beside(LABML)
    from labml_nn.transformers.feed_forward import FeedForward
    from labml_nn.transformers.mha import MultiHeadAttention
    from labml_nn.transformers.switch import SwitchFeedForward, SwitchTransformer, SwitchTransformerLayer

    routed = SwitchFeedForward(
        capacity_factor=1.2, drop_tokens=True, is_scale_prob=True, n_experts=4,
        expert=FeedForward(64, 128), d_model=64,
    )  # fmt: skip
    layer = SwitchTransformerLayer(d_model=64, attn=MultiHeadAttention(4, 64), feed_forward=routed, dropout_prob=0.1)
    return Around(SwitchTransformer(layer, 2), lambda body, x: body(x, None)[0])


def labml_feedback():
    beside(LABML)
    from labml_nn.transformers.feed_forward import FeedForward
    from labml_nn.transformers.feedback import FeedbackAttention, FeedbackTransformer, FeedbackTransformerLayer

    layer = FeedbackTransformerLayer(
        d_model=64, attn=FeedbackAttention(4, 64), feed_forward=FeedForward(64, 128), dropout_prob=0.1
    )
    return Around(FeedbackTransformer(layer, 2), lambda body, x: body(x))


def labml_fast_weights():
    beside(LABML)
    from labml_nn.transformers.fast_weights import (
        DPFP,
        FastWeightsAttention,
        FastWeightsAttentionTransformer,
        FastWeightsAttentionTransformerLayer,
    )  # fmt: skip
    from labml_nn.transformers.feed_forward import FeedForward

    layer = FastWeightsAttentionTransformerLayer(
        d_model=64, attn=FastWeightsAttention(4, 64, 0.1, DPFP()), feed_forward=FeedForward(64, 128), dropout_prob=0.1
    )
    return Around(FastWeightsAttentionTransformer(layer, 2), lambda body, x: body(x))


def labml_xl():
    beside(LABML)
    from labml_nn.transformers.feed_forward import FeedForward
    from labml_nn.transformers.xl import TransformerXL, TransformerXLLayer
    from labml_nn.transformers.xl.relative_mha import RelativeMultiHeadAttention

    layer = TransformerXLLayer(
        d_model=64, self_attn=RelativeMultiHeadAttention(4, 64, 0.1), feed_forward=FeedForward(64, 128),
        dropout_prob=0.1,
    )  # fmt: skip
    mask = torch.tril(torch.ones(64, 64)).unsqueeze(-1).bool()
    return Around(TransformerXL(layer, 2), lambda body, x: body(x, [], mask)[0])


def labml_gmlp():
    beside(LABML)
    from labml_nn.transformers.gmlp import GMLPBlock

    return Around(GMLPBlock(64, 128, 64), lambda body, x: body(x=x))


def labml_fnet():
    beside(LABML)
    from labml_nn.transformers import TransformerLayer
    from labml_nn.transformers.feed_forward import FeedForward
    from labml_nn.transformers.fnet import FNetMix

    layer = TransformerLayer(d_model=64, self_attn=FNetMix(), feed_forward=FeedForward(64, 128), dropout_prob=0.1)
    return Around(layer, lambda body, x: body(x=x, mask=None))


def labml_rope():
    beside(LABML)
    from labml_nn.transformers import TransformerLayer
    from labml_nn.transformers.feed_forward import FeedForward
    from labml_nn.transformers.rope import RotaryPEMultiHeadAttention

    layer = TransformerLayer(
        d_model=64, self_attn=RotaryPEMultiHeadAttention(4, 64, 1.0), feed_forward=FeedForward(64, 128),
        dropout_prob=0.1,
    )  # fmt: skip
    return Around(layer, lambda body, x: body(x=x, mask=None))


def labml_hour_glass():
    beside(LABML)
    from labml_nn.transformers.hour_glass import HourGlass

    return Around(HourGlass(4, 64, 0.1, 128, [2, 2]), lambda body, x: body(x))


def labml_vit():
    beside(LABML)
    from labml_nn.transformers.vit import (
        ClassificationHead,
        LearnedPositionalEmbeddings,
        PatchEmbeddings,
        VisionTransformer,
    )  # fmt: skip

    return VisionTransformer(
        labml_layer(), 3, PatchEmbeddings(64, 4, 3), LearnedPositionalEmbeddings(64), ClassificationHead(64, 64, 10)
    )


def labml_hyper_lstm():
    beside(LABML)
    from labml_nn.hypernetworks.hyper_lstm import HyperLSTM

    return Around(HyperLSTM(64, 64, 16, 8, 1), lambda body, x: body(x)[0])


def labml_highway():
    beside(LABML)
    from labml_nn.recurrent_highway_networks import RHN

    return Around(RHN(64, 64, depth=3, n_layers=2), lambda body, x: body(x)[0])


def labml_lstm():
    beside(LABML)
    from labml_nn.lstm import LSTM

    return Around(LSTM(64, 64, 2), lambda body, x: body(x)[0])


def labml_gat():
    beside(LABML)
    from labml_nn.graphs.gatv2.experiment import GATv2

    net = GATv2(in_features=32, n_hidden=64, n_classes=7, n_heads=8, dropout=0.3)
    edges = (torch.rand(120, 120, 1) > 0.9) | torch.eye(120).bool()[..., None]
    return net, lambda: functional.cross_entropy(net(torch.randn(120, 32), edges), torch.arange(120) % 7)


def labml_style_gan():
    beside(LABML)
    from labml_nn.gan.stylegan import Discriminator, Generator, MappingNetwork

    mapping, maker, judge = MappingNetwork(64, 4), Generator(5, 64, 16, 64), Discriminator(5, 16, 64)
    net = nn.ModuleList([mapping, maker, judge])

    def loss():
        w = mapping(torch.randn(4, 64))[None].expand(maker.n_blocks, -1, -1)
        noise = [
            (
                None if n == 0 else torch.randn(4, 1, 2 ** (n + 2), 2 ** (n + 2)),
                torch.randn(4, 1, 2 ** (n + 2), 2 ** (n + 2)),
            )
            for n in range(maker.n_blocks)
        ]
        return functional.softplus(-judge(maker(w, noise))).mean()

    return net, loss


def labml_sd_attention():
    beside(LABML)
    from labml_nn.diffusion.stable_diffusion.model.unet import UNetModel

    net = UNetModel(
        in_channels=4, out_channels=4, channels=32, n_res_blocks=1, attention_levels=[0, 1],
        channel_multipliers=[1, 2], n_heads=2, tf_layers=1, d_cond=32,
    )  # fmt: skip
    return net, lambda: net(torch.randn(2, 4, 16, 16), torch.tensor([3.0, 5.0]), torch.randn(2, 8, 32)).square().mean()


def annotated_transformer():
    beside("annotated-transformer")
    import the_annotated_transformer as source

    net = source.make_model(100, 100, N=2, d_model=64, d_ff=128, h=4)
    smoothed = source.LabelSmoothing(100, 0, 0.1)

    def loss():
        tokens = torch.randint(1, 100, (8, 20))
        batch = source.Batch(tokens, tokens, 0)
        out = net.generator(net(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask))
        return smoothed(out.contiguous().view(-1, out.size(-1)), batch.tgt_y.contiguous().view(-1)) / batch.ntokens

    return net, loss


def masked_autoencoder():
    beside("mae")
    from models_mae import MaskedAutoencoderViT

    return MaskedAutoencoderViT(
        img_size=64, patch_size=8, embed_dim=64, depth=3, num_heads=4, decoder_embed_dim=48, decoder_depth=1,
        decoder_num_heads=4,
    )  # fmt: skip


for made in (
    nano_gpt, mini_gpt, dit, ddpm, kan, kan_regularized, mixture, unet, unet_dice, labml_unet, capsules, labml_gat,
    labml_style_gan, labml_sd_attention, annotated_transformer,
):  # fmt: skip
    MODELS[made.__name__] = made
for kind in ("Transformer", "MLP", "rnn", "gru", "BoW"):
    MODELS[f"makemore_{kind}"] = make_more(kind)
language("mamba", mamba, length=32)
for batch_first in (labml_encoder,):
    language(batch_first.__name__, batch_first)
for time_first in (
    labml_switch, labml_feedback, labml_fast_weights, labml_xl, labml_gmlp, labml_fnet, labml_rope, labml_hyper_lstm,
    labml_hour_glass, labml_highway, labml_lstm,
):  # fmt: skip
    language(time_first.__name__, time_first, first=False)
images("conv_mixer", conv_mixer)
images("labml_vit", labml_vit)
for name, *arguments in (
    ("VGG", "VGG11"), ("ResNet18",), ("PreActResNet18",), ("GoogLeNet",), ("DenseNet121",), ("ResNeXt29_2x64d",),
    ("MobileNet",), ("MobileNetV2",), ("DPN26",), ("ShuffleNetG2",), ("ShuffleNetV2", 1), ("EfficientNetB0",),
    ("RegNetX_200MF",), ("SimpleDLA",), ("SENet18",), ("LeNet",), ("PNASNetA",),
):  # fmt: skip
    cifar(name, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
