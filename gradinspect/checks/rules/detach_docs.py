"""The stories of the codes about gradients that are missing."""

from gradinspect.checks.rule_doc import RuleDoc

CUT_STORIES = (
    RuleDoc(
        code="GI301",
        title="The way back to parameters is cut",
        text="A parameter's value reaches the loss, and no gradient comes back: some call on the way gave the value on"
        " without its graph. detach(), .data, torch.tensor() of a tensor, argmax and other whole numbers, "
        "no_grad, item() and NumPy, writing into .data, wrapping in Variable or nn.Parameter, a reentrant "
        "checkpoint without an input that requires grad. torch says nothing. The optimizer's step meets .grad "
        "that is None and passes it over. The check notes every call, follows the value forward from the "
        "parameter, and names the call after which its result no longer required grad. What is cut on purpose is "
        "left in peace: parameters that another watched backward reaches, and those that no step meets without a "
        "gradient.",
        sample="features = encoder(x).detach()      # to save memory\nloss = F.cross_entropy(head(features), y)\n"
        "loss.backward()\noptimizer.step()                    # leaves the encoder as it is",
        remedy="Leave the cut out. Where the encoder is meant to stay as it is, do not give it to the optimizer.",
    ),
    RuleDoc(
        code="GI302",
        title="The loss does not require grad",
        text="'element 0 of tensors does not require grad and does not have a grad_fn': nothing leads back from the "
        "loss. Either a call on the way cut every path, as an accuracy made with argmax does, or a no_grad left "
        "over from evaluation. Or all parameters are frozen. Or no tensor was made with requires_grad. The check "
        "says which, and on which line. loss.requires_grad_() silences the error and trains nothing.",
        sample="predicted = model(x).argmax(1)   # whole numbers have no gradient\n"
        "loss = (predicted != y).float().mean()\nloss.backward()",
        remedy="Use a loss with a derivative: F.cross_entropy(model(x), y).",
    ),
    RuleDoc(
        code="GI303",
        title="Parameters are used, but not for the loss",
        text="Something is computed from these parameters, and it ends there: a head whose loss is never added, a "
        "pooler that nobody reads, a value that is only logged, a variable that the next line overwrites. The "
        "optimizer holds them, so somebody meant them to learn. Under DistributedDataParallel they raise "
        "'Expected to have finished reduction in the prior iteration' unless find_unused_parameters=True.",
        sample="box_loss = boxes(h).abs().mean()\nclass_loss = F.cross_entropy(classes(h), y)\n"
        "loss = box_loss                 # class_loss is forgotten\nloss.backward()",
        remedy="Add it to the loss, or leave these parameters out of the optimizer.",
    ),
    RuleDoc(
        code="GI304",
        title="Parameters get no gradient because nothing read them",
        text="The optimizer holds parameters that the forward pass never used: a layer that was made in __init__ and "
        "forgotten in forward, or the parameters of a model that has been replaced since the optimizer was made. "
        "One of several parts in a ModuleList or ModuleDict of which others ran, such as an expert, is taken for "
        "a choice and not reported. For autograd.grad it means an input that the loss was not computed from, such"
        " as a view or a copy of the right one: 'One of the differentiated Tensors appears to not have been used "
        "in the graph'.",
        sample="optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model = Net()                   # the optimizer still holds the old one\nmodel(x).sum().backward()\n"
        "optimizer.step()",
        remedy="Make the optimizer after the model is complete. Leave out what is not used. If a later batch uses it, "
        "watch more backward calls with --steps.",
    ),
    RuleDoc(
        code="GI305",
        title="The .grad of a tensor that is no leaf is never filled",
        text="Backward fills .grad of leaves: tensors that no operator made. w = torch.randn(3, requires_grad=True) * "
        "0.1 is the result of a multiplication; the leaf is the tensor before it, which nobody can reach any "
        "more. The same with nn.Parameter(w).to(device), x.unsqueeze(0), x.view(-1). The check names the operator"
        " that made the tensor and the line that reads its .grad.",
        sample="w = torch.randn(3, requires_grad=True) * 0.1   # not a leaf\n(w * x).sum().backward()\n"
        "print(w.grad)                                  # None",
        remedy="Write (torch.randn(3) * 0.1).requires_grad_(). For a tensor in the middle, w.retain_grad().",
    ),
    RuleDoc(
        code="GI402",
        title="A gradient that is used in a loss carries no graph",
        text="autograd.grad and backward give gradients without a graph unless create_graph=True. In a loss such a "
        "gradient is a constant: a gradient penalty changes the number that is printed and nothing else, and a "
        "loss made of gradients alone cannot go backward at all. The check follows each gradient, and reports it "
        "where a loss adds it up. What is meant so is left in peace: first-order MAML, which subtracts the "
        "gradient from the very tensor it belongs to; gradients that move an input, that scale another loss, that"
        " are logged or detached.",
        sample="(g,) = torch.autograd.grad(critic(x).sum(), x)       # no graph\n"
        "penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()\n(critic(x).mean() + 10 * penalty).backward()",
        remedy="Write torch.autograd.grad(critic(x).sum(), x, create_graph=True).",
    ),
)
