import fingerprint
import torch
from torch import nn

torch.manual_seed(38)
embedding = nn.EmbeddingBag(20, 4, sparse=True, mode="sum")
table = nn.Embedding(10, 4, sparse=True)
head = nn.Linear(4, 1)
sparse = torch.optim.SparseAdam([*embedding.parameters(), *table.parameters()], lr=0.1)
dense = torch.optim.SGD(head.parameters(), lr=0.1)
matrix = torch.eye(4).to_sparse().requires_grad_()
for _ in range(4):
    index = torch.randint(0, 20, (6,))
    h = embedding(index, torch.tensor([0, 3])) + table(index[:2] % 10)
    loss = head(torch.sparse.mm(matrix, h.T).T).square().sum()
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    print(f"{loss.item():.9f}", table.weight.grad.layout, table.weight.grad.is_coalesced(), matrix.grad.layout)
fingerprint.show(embedding, table, head)
