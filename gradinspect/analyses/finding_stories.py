"""The codes of findings, each with its story and a small sample: one table, for `check` and for `explain`."""

from gradinspect.analyses.cut_stories import CUT_STORIES
from gradinspect.analyses.story import Story

_STORIES = (
    Story(
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
    Story(
        code="GI102",
        title="An optimizer stepped between forward and backward",
        text="An optimizer's step writes into the weights. If a graph was built with the old weights and its backward "
        "comes after the step, the weights it saved are no longer there, and backward refuses. It is what happens "
        "with two networks and two optimizers, where one loss goes through both networks.",
        sample="score = D(G(z))       # keeps the weights of D\nloss_d.backward()\nopt_d.step()          # writes into "
        "them\nloss_g = -score.mean()\nloss_g.backward()",
        remedy="Call opt_d.step() after loss_g.backward(), or compute D(G(z)) again after the step.",
    ),
    Story(
        code="GI103",
        title="A saved tensor was changed, and torch does not notice",
        text="Some writes do not raise the version: through .data, by optimizers with fused=True, by batch norm into "
        "its running statistics. Backward then runs on the new values, and its gradients are wrong without an error. "
        "A write that leaves the values as they are does no harm, and cannot be told from one that does. NumPy's "
        "writes are not seen.",
        sample="y = (w * x).sum()   # keeps w\nw.data.mul_(0.9)    # writes into w, the version stays\ny.backward()",
        remedy="Do it after backward.",
    ),
    Story(
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
    Story(
        code="GI501",
        title="Backward turned a finite gradient into NaN or Inf",
        text="A derivative can be infinite where the value itself is fine: that of sqrt, log or a norm at "
        "0. Often the culprit's value was not even used: torch.where gives the branch that it leaves out a gradient "
        "of 0, and 0 times an infinite derivative is NaN. The check names the first node that got a finite gradient "
        "and passed on one that is not, and its line. With a GradScaler an Inf in the first steps is on purpose.",
        sample="x = torch.zeros(3, requires_grad=True)\ny = torch.where(x > 0, x.sqrt(), 0.0)\ny.sum().backward()   "
        "# x.grad is NaN",
        remedy="Keep the input itself away from the bad place: torch.where(x > 0, x, 1.0).sqrt() inside the where.",
    ),
    Story(
        code="GI502",
        title="The loss is NaN or Inf before backward begins",
        text="Then every gradient will be, and backward is not to blame. The check looks through the values that nodes "
        "keep, from the first operator of the forward pass on, and names the line that made the earliest one that is "
        "not finite. Operators that keep nothing are not seen, so the culprit may stand a little before that line.",
        sample="p = torch.softmax(logits * 1e4, -1)  # has zeros\nloss = -(p * p.log()).sum()  # 0 * -inf\n"
        "loss.backward()",
        remedy="Use the form that is made for it, such as log_softmax, or keep the input away from the bad place.",
    ),
    Story(
        code="GI601",
        title="A gradient dies on the way to its parameters",
        text="A node got a gradient and passed on exactly zero to all its inputs, and some parameters behind it get "
        "nothing else: they will not learn, and there is no error. Rounding is flat everywhere, a clamp outside its "
        "bounds, a ReLU where its input is negative.",
        sample="code = encoder(x).round()   # flat: its derivative is 0\nloss = decoder(code).pow(2).mean()\n"
        "loss.backward()             # encoder.weight.grad is all zeros",
        remedy="Pass the gradient straight through the rounding: z + (z.round() - z).detach().",
    ),
)
STORIES = {story.code: story for story in (*_STORIES, *CUT_STORIES)}
CODES = tuple(sorted(STORIES))
