# expect: GI311
# why: reaches nothing that self.opt_maker updates
# advice: Remove detach() at detached_in_both_steps.py:33
# lines: detached=33 term=34
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Pair:
    def __init__(self):
        self.maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.judge = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
        self.opt_maker = torch.optim.Adam(self.maker.parameters(), lr=0.01)
        self.opt_judge = torch.optim.Adam(self.judge.parameters(), lr=0.01)
        self.fake = None

    def judge_step(self, real):
        self.fake = self.maker(torch.randn(len(real), 4))
        out = self.judge(torch.cat([real, self.fake.detach()]))
        loss = F.binary_cross_entropy_with_logits(out, torch.cat([torch.ones(32, 1), torch.zeros(32, 1)]))
        self.opt_judge.zero_grad()
        loss.backward()
        self.opt_judge.step()

    def maker_step(self):
        kept = 0.001 * self.fake.square().mean()

        # the same line as above
        score = self.judge(self.fake)  # +
        score = self.judge(self.fake.detach())  # -
        fooled = F.binary_cross_entropy_with_logits(score, torch.ones(32, 1))
        self.opt_maker.zero_grad()
        (fooled + kept).backward()
        self.opt_maker.step()


pair, history = Pair(), []
for _ in range(40):
    pair.judge_step(torch.randn(32, 2) + 3)
    pair.maker_step()
    history.append(float((pair.maker(torch.randn(64, 4)).detach().mean(0) - 3).abs().mean()))
print("loss", history[0], history[-1])
