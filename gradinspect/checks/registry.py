"""The codes of findings, each with its story and a small sample: one table, for `check` and for `explain`."""

from gradinspect.checks.rule_doc import RuleDoc
from gradinspect.checks.rules.detach_docs import CUT_STORIES

_STORIES = (
    RuleDoc(
        code="GI101",
        title="A saved tensor was changed in place",
        text="Many operators keep their inputs or their output, because the formula of their gradient needs them. "
        "Each tensor counts the operators that wrote into it, its version. Backward compares the version with the one "
        "at the time of saving, and refuses: 'one of the variables needed for gradient computation has been modified "
        "by an inplace operation'. torch names the first such tensor and the line of neither side. The check names "
        "all of them, the line that saved each and the lines that wrote since.",
        sample="y = x.exp()  # keeps y: the gradient of exp is exp\ny += 1       # writes into y\ny.sum().backward()",
        remedy="Write y = y + 1. For a weight that is edited by hand, do it after backward.",
    ),
    RuleDoc(
        code="GI102",
        title="An optimizer stepped between forward and backward",
        text="An optimizer's step writes into the weights. If a graph was built with the old weights and its backward "
        "comes after the step, the weights it saved are no longer there, and backward refuses. It is what happens "
        "with two networks and two optimizers, where one loss goes through both networks.",
        sample="score = D(G(z))       # keeps the weights of D\nloss_d.backward()\nopt_d.step()          # writes into "
        "them\nloss_g = -score.mean()\nloss_g.backward()",
        remedy="Call opt_d.step() after loss_g.backward(), or compute D(G(z)) again after the step.",
    ),
    RuleDoc(
        code="GI103",
        title="A saved tensor was changed, and torch does not notice",
        text="Some writes do not raise the version: through .data, by optimizers with fused=True, by batch norm into "
        "its running statistics. Backward then runs on the new values, and its gradients are wrong without an error. "
        "A write that leaves the values as they are does no harm, and cannot be told from one that does. NumPy's "
        "writes are not seen.",
        sample="y = (w * x).sum()   # keeps w\nw.data.mul_(0.9)    # writes into w, the version stays\ny.backward()",
        remedy="Do it after backward.",
    ),
    RuleDoc(
        code="GI104",
        title="A checkpointed block did something else the second time",
        text="checkpoint() keeps only the inputs of a block, and backward runs it again for the rest. Both runs must "
        "save the same tensors, or backward puts the wrong ones into its formulas. torch compares their number, "
        "shapes and dtypes and says 'tensor at position 46'; the check says which operator and line that is, in both "
        "runs, where they first part, which is often earlier. Two branches that save tensors of the same shape go "
        "unnoticed by torch; the check tells them by their lines. With use_reentrant=True no run is compared.",
        sample="def block(x):\n    if random.random() < 0.5:  # drawn again in backward\n        return left(x)\n"
        "    return right(x)\ncheckpoint(block, x, use_reentrant=False).sum().backward()",
        remedy="Draw, count and decide before the block, and hand the result in as an argument. Torch's own random "
        "numbers are put back by checkpoint() itself.",
    ),
    RuleDoc(
        code="GI201",
        title="The backward of a custom Function is wrong",
        text="With --gradcheck, each custom autograd.Function in the watched graphs is run again when the program has "
        "ended: in double precision, on copies of the arguments of its first call, cut to a small size where it runs "
        "on that. Its backward is compared with differences of its forward, as torch.autograd.gradcheck does it. A "
        "gradient of one's own choice behind a step (a straight-through estimator) or behind the identity (gradient "
        "reversal) is left in peace. What is random, or runs in one dtype only, is named as not checked.",
        sample="class Cube(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x**3\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        return grad * ctx.saved_tensors[0] ** 2  # 3 is missing\nCube.apply(x).sum().backward()",
        remedy="Correct the formula of the argument that is named.",
    ),
    RuleDoc(
        code="GI202",
        title="The double backward of a custom Function is wrong",
        text="A backward that is written with torch operators can itself be derived, which gradient penalties and "
        "second-order methods do. What it uses must have a history then: inputs and outputs from ctx.saved_tensors "
        "have one; tensors kept as attributes of ctx, detached ones, what NumPy or no_grad() made have none, and "
        "their part is silently left out. --gradcheck finds it with torch.autograd.gradgradcheck.",
        sample="    def forward(ctx, x):\n        ctx.result = x.exp()  # no history in backward\n"
        "        return ctx.result.clone()\n    def backward(ctx, grad):\n        return grad * ctx.result\n"
        "gradient.norm().backward()",
        remedy="Return the result and save it with save_for_backward, or mark backward with once_differentiable.",
    ),
    RuleDoc(
        code="GI401",
        title="Backward meets what an earlier backward has used up",
        text="Backward frees what the nodes saved as it goes, so a graph serves once: 'Trying to backward through the "
        "graph a second time'. Often only a part of the graph is old: a hidden state, a running sum or a shared trunk "
        "was computed before the earlier backward, and the new loss was computed from it. The check says which "
        "backward used it up, and on which line the new graph joins the old one. Keeping the graph would silence "
        "the error; where the history is not wanted, it makes every step longer than the one before.",
        sample="h = torch.zeros(4)\nfor x in data:\n    h = torch.tanh(cell(x) + h)  # reads the h of the step before\n"
        "    h.sum().backward()",
        remedy="Write h = h.detach() after backward. Two losses of one graph: add them up and call backward once.",
    ),
    RuleDoc(
        code="GI501",
        title="Backward turned a finite gradient into NaN or Inf",
        text="A derivative can be infinite where the value itself is fine: that of sqrt, log or a norm at "
        "0. Often the culprit's value was not even used: torch.where gives the branch that it leaves out a gradient "
        "of 0, and 0 times an infinite derivative is NaN. The check names the first node that got a finite gradient "
        "and passed on one that is not, and its line. Where a GradScaler is at work, gradients overflow in float16 on "
        "purpose until it has found its scale, and nothing is said of those.",
        sample="x = torch.zeros(3, requires_grad=True)\ny = torch.where(x > 0, x.sqrt(), 0.0)\ny.sum().backward()   "
        "# x.grad is NaN",
        remedy="Keep the input itself away from the bad place: torch.where(x > 0, x, 1.0).sqrt() inside the where.",
    ),
    RuleDoc(
        code="GI502",
        title="The loss is NaN or Inf before backward begins",
        text="Then every gradient will be, and backward is not to blame. The check looks through the values that nodes "
        "keep, from the first operator of the forward pass on, and names the line that made the earliest one that is "
        "not finite. Operators that keep nothing are not seen, so the culprit may stand a little before that line.",
        sample="p = torch.softmax(logits * 1e4, -1)  # has zeros\nloss = -(p * p.log()).sum()  # 0 * -inf\n"
        "loss.backward()",
        remedy="Use the form that is made for it, such as log_softmax, or keep the input away from the bad place.",
    ),
    RuleDoc(
        code="GI601",
        title="A gradient dies on the way to its parameters",
        text="A node got a gradient and passed on exactly zero to all its inputs, and some parameters behind it get "
        "nothing else: they will not learn, and there is no error. Rounding is flat everywhere, a clamp outside its "
        "bounds, a ReLU where its input is negative. A softmax, sigmoid or tanh that passes on less than a millionth "
        "counts as well: the sum of a softmax is 1 whatever goes in.",
        sample="code = encoder(x).round()   # flat: its derivative is 0\nloss = decoder(code).pow(2).mean()\n"
        "loss.backward()             # encoder.weight.grad is all zeros",
        remedy="Pass the gradient straight through the rounding: z + (z.round() - z).detach().",
    ),
    RuleDoc(
        code="GI701",
        title="A loss compares everything with everything",
        text="A model returns [64, 1], the targets are [64], and [64, 1] - [64] is [64, 64]: where dimensions are "
        "missing, torch puts them in front. The mean over all pairs is a number like any other, it even falls, and "
        "the model learns to predict the average. The check tells it from what is meant: a dimension that is added "
        "on the spot, a mask of the grown shape, two sides that are both learned.",
        sample="prediction = model(x)                  # [64, 1]\nloss = ((prediction - y) ** 2).mean()  # y is [64]\n"
        "loss.backward()",
        remedy="Write model(x).squeeze(-1), or y.unsqueeze(-1).",
    ),
    RuleDoc(
        code="GI801",
        title="History is kept from one backward to the next",
        text="A tensor with a grad_fn keeps the whole graph behind it, and so does a list of such tensors, a running "
        "sum, a hidden state, or a gradient made with create_graph=True. In a loop that is more every time: memory "
        "grows, and where backward goes through the old part again, each step takes longer than the one before. Two "
        "rounds show it: the second finds the graph of the first still held by something that is added to, or joins "
        "it on the line that made it. How much it grows: gradinspect memory train.py --iterations 5.",
        sample="losses = []\nfor x in data:\n    loss = model(x).mean()\n    loss.backward()\n"
        "    losses.append(loss)  # keeps every graph",
        remedy="Write losses.append(loss.item()), or detach() what one round hands to the next.",
    ),
    RuleDoc(
        code="GI901",
        title="Parameters get no gradient on some ranks",
        text="DistributedDataParallel averages each gradient over all ranks as it becomes ready, so every rank waits "
        "for every parameter. A layer that one rank skips makes the others wait, or the next forward fail with "
        "'Expected to have finished reduction' and a list of indices. Under torchrun, the ranks tell each other "
        "before backward begins which parameters it will not reach; the check names them and the line that only some "
        "ranks ran, and stops all ranks, for the engine would wait. Not said with find_unused_parameters=True or "
        "static_graph=True.",
        sample="if rank == 0:\n    h = extra(h)  # on rank 1 extra has no gradient\nmodel(x).mean().backward()",
        remedy="Run the same layers on every rank, or give DistributedDataParallel find_unused_parameters=True.",
    ),
    RuleDoc(
        code="GI902",
        title="Ranks build different graphs",
        text="The gradients that are averaged over ranks belong together only if the ranks compute the same. Under "
        "torchrun, the ranks compare which lines made which nodes. How often a loop went round does not matter: "
        "sequences may differ in length. With find_unused_parameters=True ranks may differ, and nothing is said.",
        sample="loss = model(x).mean()\nif rank == 0:\n    loss = loss + penalty  # averaged with others\n"
        "loss.backward()",
        remedy="Let all ranks decide by the same thing, such as a number that rank 0 broadcasts.",
    ),
)
STORIES = {story.code: story for story in (*_STORIES, *CUT_STORIES)}
CODES = tuple(sorted(STORIES))
