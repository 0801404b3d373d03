"""The names of the parameters of models that many people train, as their libraries make them."""

from collections.abc import Iterator

# transformers 4: GPT2LMHeadModel, LlamaForCausalLM, T5ForConditionalGeneration, BertForMaskedLM,
# MixtralForCausalLM; diffusers 0.3x: UNet2DConditionModel; torchvision 0.2x: resnet50
_GPT2 = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
_LLAMA = (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
    "mlp.down_proj", "input_layernorm", "post_attention_layernorm",
)  # fmt: skip


def _gpt2() -> Iterator[str]:
    yield from ("transformer.wte.weight", "transformer.wpe.weight")
    for block in range(12):
        yield from (f"transformer.h.{block}.{part}.{end}" for part in _GPT2 for end in ("weight", "bias"))
    yield from ("transformer.ln_f.weight", "transformer.ln_f.bias")


def _llama() -> Iterator[str]:
    yield "model.embed_tokens.weight"
    yield from (f"model.layers.{layer}.{part}.weight" for layer in range(32) for part in _LLAMA)
    yield from ("model.norm.weight", "lm_head.weight")


def _resnet50() -> Iterator[str]:
    yield from ("conv1.weight", "bn1.weight", "bn1.bias")
    for layer, blocks in enumerate((3, 4, 6, 3), start=1):
        for block in range(blocks):
            inside = f"layer{layer}.{block}"
            for place in (1, 2, 3):
                yield from (f"{inside}.conv{place}.weight", f"{inside}.bn{place}.weight", f"{inside}.bn{place}.bias")
            if not block:
                yield from (f"{inside}.downsample.{end}" for end in ("0.weight", "1.weight", "1.bias"))
    yield from ("fc.weight", "fc.bias")


def _t5() -> Iterator[str]:
    yield "shared.weight"
    for stack, attentions in (("encoder", ("SelfAttention",)), ("decoder", ("SelfAttention", "EncDecAttention"))):
        for block in range(6):
            inside = f"{stack}.block.{block}.layer"
            for number, attention in enumerate(attentions):
                yield from (f"{inside}.{number}.{attention}.{part}.weight" for part in "qkvo")
                yield f"{inside}.{number}.layer_norm.weight"
            last = len(attentions)
            yield from (f"{inside}.{last}.{part}.weight" for part in ("DenseReluDense.wi", "DenseReluDense.wo"))
            yield f"{inside}.{last}.layer_norm.weight"
        yield f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        yield f"{stack}.final_layer_norm.weight"


def _bert() -> Iterator[str]:
    yield from (f"bert.embeddings.{part}_embeddings.weight" for part in ("word", "position", "token_type"))
    parts = (
        "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
        "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
    )  # fmt: skip
    for layer in range(12):
        yield from (f"bert.encoder.layer.{layer}.{part}.{end}" for part in parts for end in ("weight", "bias"))
    yield from (
        "cls.predictions.bias",
        "cls.predictions.transform.dense.weight",
        "cls.predictions.transform.dense.bias",
    )


def _mixtral() -> Iterator[str]:
    for layer in range(4):
        inside = f"model.layers.{layer}.block_sparse_moe"
        yield f"{inside}.gate.weight"
        yield from (f"{inside}.experts.{expert}.w{number}.weight" for expert in range(8) for number in (1, 2, 3))


def _unet() -> Iterator[str]:
    for way in ("down", "up"):
        for block in range(4):
            for inside in (f"{way}_blocks.{block}.resnets.{number}" for number in range(2)):
                parts = ("norm1", "conv1", "time_emb_proj", "norm2", "conv2", "conv_shortcut")
                yield from (f"{inside}.{part}.{end}" for part in parts for end in ("weight", "bias"))


PARAMETERS = {
    "bert": tuple(_bert()),
    "mixtral": tuple(_mixtral()),
    "unet": tuple(_unet()),
    "gpt2": tuple(_gpt2()),
    "llama": tuple(_llama()),
    "resnet50": tuple(_resnet50()),
    "t5": tuple(_t5()),
}
