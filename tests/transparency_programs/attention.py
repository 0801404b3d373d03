import fingerprint
import torch
from torch import nn

torch.manual_seed(45)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1), 2)
attention = nn.MultiheadAttention(8, 2, batch_first=True)
tokens = torch.randn(2, 5, 8)
mask = nn.Transformer.generate_square_subsequent_mask(5)
for _ in range(3):
    h = encoder(tokens, mask=mask, is_causal=True)
    h, weights = attention(h, h, h)
    loss = h.square().mean() + nn.functional.scaled_dot_product_attention(h, h, h, is_causal=True).mean()
    loss.backward()
    print(f"{loss.item():.9f}")
encoder.eval()
attention.eval()
with torch.no_grad():
    print(f"{encoder(tokens).sum().item():.9f}", f"{attention(tokens, tokens, tokens)[0].sum().item():.9f}")
fingerprint.show(encoder, attention)
