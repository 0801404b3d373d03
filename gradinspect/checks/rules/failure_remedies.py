"""What helps against the errors of torch that people ask about most, by what torch says.

Each remedy names the line, and where they are known the tensor, the layer and the numbers of the message. One whose
names are not known is passed over: the first that can be filled in is taken. The texts are those of torch 2.8 to 2.14.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from gradinspect.checks.facts.failures import FailedCall
from gradinspect.checks.findings import line_of

# What torch says, and what helps. {where} is the line that failed, {floating}, {integer}, {boolean} and {tensor} the
# only tensor of that kind that it names beside parameters, {constructed} is the class of torch that it makes. All else
# are groups of the pattern.
_REMEDIES: Final = {
    # Devices and files
    r"not compiled with CUDA|no NVIDIA driver|No CUDA GPUs":
        "This torch has no GPU here. Write device = 'cuda' if torch.cuda.is_available() else 'cpu', and move models "
        "and tensors with to(device).",
    r"deserialize object on a CUDA device": "At {where}, pass map_location='cpu' to torch.load().",
    r"Weights only load failed":
        "The file holds more than tensors: save model.state_dict() instead of the model. If you trust the file, pass "
        "weights_only=False to torch.load() at {where}.",
    r'Unexpected key\(s\) in state_dict: "(?P<prefix>module\.|_orig_mod\.|model\.)':
        "The file has each name with '{prefix}' before it: at {where}, load "
        "{{name.removeprefix('{prefix}'): one for name, one in state.items()}}.",
    r"size mismatch for (?P<name>[^\s:]+):":
        "Leave {name} out of the file's state, and load the rest with strict=False: that layer has another size here.",
    r"in loading state_dict":
        "Is it the model that was saved, with the same names? With strict=False, load_state_dict() leaves out what "
        "only one of both has, and returns it.",
    # Shapes of layers
    r"(?P<rows>\d+)x(?P<has>\d+) and (?P<wants>\d+)x\d+\)":
        "Make the layer with {has} input features instead of {wants}, or bring the last dimension of its input to "
        "{wants}.",
    r"expected input\[\d+, \d\d+, \d\d+, (?P<wants>[1-4])\] to have (?P=wants) channels":
        "The channels come last in the input: at {where}, pass it as permute(0, 3, 1, 2).",
    r"to have (?P<wants>\d+) channels, but got (?P<has>\d+) channels":
        "Make the layer with in_channels={has}, or give its input {wants} channels.",
    r"Expected \dD \(unbatched\) or (?P<dims>\d)D \(batched\) input":
        "The input lacks dimensions: add one for each of batch and channels that is missing, as unsqueeze(0) does.",
    r"Kernel size can't be greater than actual input size":
        "The input has become smaller than the kernel: give it larger images, padding, or fewer pooling layers before.",
    r"running_mean should contain (?P<has>\d+) elements not (?P<wants>\d+)":
        "Make the batch norm with num_features={has}, as many as its input has channels.",
    r"equal to input_size\. Expected (?P<wants>\d+), got (?P<has>\d+)":
        "Make the layer with input_size={has}, or bring the last dimension of its input to {wants}.",
    r"Expected hidden(?:\[\d\])? size \((?P<layers>\d+), \d+, (?P<size>\d+)\), "
    r"got \[(?P=layers), \d+, (?P=size)\]":
        "The state was made for another number of examples than this batch has: make it in the loop, from x.size(0), "
        "or let the DataLoader leave out the last batch with drop_last=True.",
    r"For (?:un)?batched \d-D input, hx (?:and cx )?should also be":
        "The state has the shape [layers, batch, hidden]: give it a first dimension for the layers, as unsqueeze(0) "
        "does.",
    r"expected (?P<dims>[\w ]+) input \(got (?P<has>\d)D input\)":
        "This norm is one for {dims} inputs, and gets {has}D: use the BatchNorm of the layers before it, or flatten "
        "after it.",
    r"Expected more than 1 spatial element when training":
        "An instance norm needs several positions in each channel: remove it where images have become 1 by 1.",
    r"embed_dim must be divisible by num_heads": "Choose an embed_dim that is a multiple of num_heads.",
    r"attn_mask is torch\.Size\(.*\), but should be \((?P<wants>[\d, ]+)\)":
        "Make the mask from the length of this input: it should be ({wants}).",
    r"missing the required \"forward\" function":
        "Define forward(self, ...) in the class itself: it may be misspelled, or indented into __init__.",
    r"before Module\.__init__\(\) call": "Call super().__init__() before the first assignment in __init__.",
    r"\(torch\.nn\.Parameter or None expected\)":
        "Copy its values into the parameter that is there, under torch.no_grad(), or assign an nn.Parameter.",
    r"Expected more than 1 value per channel when training":
        "A batch norm in train mode needs several examples: let the DataLoader or the loop drop a last batch of one, "
        "as drop_last=True does, or call eval() where one example is enough.",
    # Shapes and dtypes of operators
    r"view size is not compatible": "At {where}, write reshape() instead of view().",
    r"Subtraction, the `-` operator, with a bool tensor": "At {where}, write ~{boolean} instead of 1 - {boolean}.",
    r"Index tensor must have the same number of dimensions":
        "Give the index as many dimensions as the input: at {where}, pass {integer}.unsqueeze(1).",
    r"shape '\[(?P<wants>\d+), -1\]' is invalid":
        "The first dimension is not {wants} here, as of a last batch that is smaller: flatten(1) keeps what it is.",
    r"Dimension out of range":
        "Dimensions are counted from 0: use dim=-1 for the last, or give the tensor a batch.",
    r"Sizes of tensors must match except in dimension":
        "All dimensions but the one that is joined must be equal: crop, pad or interpolate one to the size of the "
        "other.",
    r"Tensors must have same number of dimensions":
        "At {where}, give the one with fewer dimensions those that it lacks, as unsqueeze(1) does.",
    r"zero-dimensional tensor \(at position \d+\) cannot be concatenated":
        "At {where}, write torch.stack() instead of torch.cat(): these are single numbers.",
    r"Class values must be smaller than num_classes":
        "Count classes from 0, or raise num_classes at {where}: of n classes, the last is n - 1.",
    r"index (?P<has>\d+) is out of bounds for dimension (?P<dim>\d+) with size (?P<size>\d+)":
        "Dimension {dim} has {size} entries, counted from 0, and {has} is none of them: do the indices begin at "
        "1, or count the entries of another tensor?",
    r"shape of the mask \[[\d, ]+\] at index \d+ does not match":
        "Select from the mask what was selected from the tensor, so that both have the same rows.",
    r"einsum\(\): subscript (?P<letter>\w) has size (?P<has>\d+) for operand \d+ which does not broadcast with "
    r"previously seen size (?P<size>\d+)":
        "The letter {letter} stands for {has} in one operand and for {size} in another: at {where}, write the letters "
        "of each in the order of its dimensions.",
    r"first two dimensions of batch2 tensor to be":
        "At {where}, the last dimension of the first must be the second of the other: transpose(1, 2) exchanges them.",
    r"more than one element of the written-to tensor refers to a single memory location":
        "What expand() repeats is not copied: write repeat() where that tensor is made, or expand() and clone().",
    r"is a view and is being modified inplace\. This view is (?:the|an) output of a function that returns multiple":
        "What chunk(), split() and unbind() return is a view: at {where}, write y = y * z instead of y *= z.",
    r"0-dim tensor\. Use `tensor\.item\(\)`": "At {where}, read the number with item() instead of [0].",
    r"elements cannot be converted to Scalar":
        "Only a tensor of one element is a number: at {where}, reduce it first, as mean() does.",
    r"only one element tensors can be converted":
        "At {where}, put tensors together with torch.stack(), which keeps their graph, instead of torch.tensor().",
    r"can't convert np\.ndarray of type numpy\.object_":
        "The array holds objects: make it one of numbers before, as astype(numpy.float32) does.",
    r"expected sequence of length \d+ at dim \d+ \(got \d+\)":
        "The rows have different lengths: pad them, as torch.nn.utils.rnn.pad_sequence() does.",
    r"must be Tensor, not (?P<kind>tuple|list)":
        "At {where}, pass the tensor itself: this {kind} holds it, or numbers that torch.tensor() makes one of.",
    r"must be Tensor, not numpy\.ndarray": "At {where}, pass torch.from_numpy() of it, of dtype float32.",
    r"must be Tensor, not (?P<kind>\w+Output\w*)": "At {where}, pass the tensor in it: .logits or .last_hidden_state.",
    r"non-empty (?:list of Tensors|TensorList)": "The list is empty here: did the loop that fills it run?",
    r"index out of range in self":
        "Count indices from 0, or make the embedding larger: of n rows, the last has the index n - 1.",
    r"(?:argument #1 'indices'|tensors used as indices must be long)": "At {where}, pass {floating}.long().",
    r"Can't call numpy\(\) on Tensor that requires grad": "At {where}, write detach().numpy() instead of numpy().",
    r"Only Tensors of floating point": "Make it of floating point: 1.0 instead of 1, or dtype=torch.float32.",
    # Losses
    r"created only for scalar outputs":
        "Backward begins at one number: at {where}, reduce the loss first, as mean() does.",
    r"Boolean value of Tensor with more than one value": (
        "A loss is made once and then called: write {constructed}()(output, target).",
        "Is one true element enough, or must all be? At {where}, write any() or all().",
    ),
    r"cannot be converted to type \S*Half without overflow":
        "That number is outside of float16: at {where}, fill with torch.finfo({floating}.dtype).min instead.",
    r"Target [\d-]+ is out of bounds":
        "Count labels from 0, and give the model as many outputs as there are labels: of n, the greatest is n - 1.",
    r"expected target dtype to be Long|expected scalar type Long but found":
        "Labels of classes are whole numbers: make the target with long().",
    r"multi-target not supported":
        "Labels have one dimension: at {where}, pass {integer}.squeeze(1), or argmax(1) of a one-hot target.",
    r"Expected input batch_size \(\d+\) to match target batch_size \(0\)":
        "Give a single label a dimension: at {where}, pass unsqueeze(0) of it, or y[i : i + 1] instead of y[i].",
    r"Expected input batch_size \((?P<has>\d+)\) to match target batch_size \((?P<wants>\d+)\)":
        "There are {wants} labels, and the first dimension of the scores is {has}: keep it in view() and reshape(), as "
        "flatten(1) does, and flatten a sequence together with its labels.",
    r"Expected target size \[\d+, \d+\], got \[\d+, \d+\]":
        "The second dimension of the scores must be that of the classes, and is as long as a row of the target: at "
        "{where}, pass {floating}.transpose(1, 2), or flatten(0, 1) of both.",
    r"Target size \(.*\) must be the same as input size":
        "Bring both to one shape: unsqueeze(1) for the target, or squeeze(1) for the output.",
    r"all elements of input should be between 0 and 1":
        "Pass the outputs as they are to BCEWithLogitsLoss instead of BCELoss, or through a sigmoid before.",
    r"result type Float can't be cast|Found dtype Long but expected": "At {where}, pass {integer}.float().",
    r"Found dtype Double but expected Float":
        "The loss was given float64, as NumPy makes it: where it is computed, pass target.float().",
    r"dtype, but got (?:Double and Float|Float and Double)|found Double|\((?:torch\.float64|double)\)|but found Float":
        "NumPy computes in float64, and layers in float32: convert the input with float() where it is made.",
    r"dtype, but got (?:Half and Float|Float and Half|BFloat16 and Float|Float and BFloat16)":
        "Convert the input to the dtype of the layer, or keep the layer in float32 and compute under torch.autocast().",
    r"Expected floating point type for target with class probabilities":
        "A one-hot target is one of fractions: at {where}, pass {integer}.float(), or the labels themselves.",
    r"only batches of spatial targets supported \(3D tensors\) but got targets of dimension: 4":
        "Labels have no channels: at {where}, pass {integer}.squeeze(1).",
    r"weight tensor should be defined either for all (?P<wants>\d+) classes":
        "Give the weight {wants} entries: bincount() takes minlength={wants}, to count classes that do not occur, too.",
    r"Expected input_lengths to have value at most (?P<wants>\d+)":
        "Pass the lengths that the scores have, at most {wants}, and not those of the inputs: strides shorten them.",
    # Data
    r"stack expects each tensor to be equal size":
        "Bring the samples of a batch to one shape: pad or cut them, in the dataset or in the DataLoader's collate_fn.",
    r"found <class '(?P<kind>(?!NoneType)[\w.]+)'>":
        "A sample holds a {kind}: return a number, a string or a tensor for it, or nothing.",
    r"dtype of NoneType|must be real number, not NoneType|found <class 'NoneType'>":
        "A sample holds None: return a number or a tensor for it, or leave the sample out in collate_fn.",
    r"num_samples should be a positive integer value":
        "The dataset is empty: do its path and its filter match anything?",
    r"Length of all samples has to be greater than 0":
        "A sequence is empty: drop it, or give it one token, as that of padding.",
    r"Sum of input lengths does not equal the length of the input dataset":
        "Rounding has lost examples: give the last part what is left, len(data) minus the others.",
    r"sampler option is mutually exclusive with shuffle":
        "Remove shuffle=True at {where}: the sampler decides the order.",
    r"sorted in decreasing order": "At {where}, pass enforce_sorted=False.",
    r"should be a 1D CPU int64 tensor":
        "At {where}, pass one length for each sequence, on the CPU: lengths.flatten().cpu().",
    # Distributions and matrices
    r"GreaterThan(?:Eq)?\(lower_bound=0(?:\.0)?\)": "Make the scale positive, as softplus() or exp() does.",
    r"contains either `inf`, `nan` or element < 0": "Pass probabilities: softmax() of the scores, and not the scores.",
    r"input is not positive-definite":
        "Add a small multiple of the identity before, such as 1e-4 * torch.eye(n), so that no eigenvalue is 0 or less.",
    # Optimizers and graphs
    r"optimizer can only optimize Tensors": "Pass the parameters of the module, parameters(), and not the module.",
    r"can't optimize a non-leaf":
        "Make it a leaf: compute its first value, and call requires_grad_() on that, or make an nn.Parameter of it.",
    r"loaded state dict.*parameter group":
        "The state is that of an optimizer with other parameters: freeze and add the same ones before both are made, "
        "or let the new optimizer start without it.",
    r"'initial_lr' is not specified":
        "Leave out last_epoch, or load the optimizer's state before the scheduler is made.",
    r"Tried to step (?P<has>\d+) times\. The specified number of total steps is (?P<total>\d+)":
        "The schedule has {total} steps, and the loop makes more: give it the number of steps that the loop makes, as "
        "epochs * len(loader).",
    r"step\(\) missing 1 required positional argument: 'closure'":
        "This optimizer computes the loss several times: pass a function that clears gradients, calls backward() and "
        "returns the loss.",
    r"step\(\) missing 1 required positional argument: 'metrics'":
        "It waits for a number to stop falling: pass that number, as in step(loss.item()).",
    r"unexpected keyword argument '(?P<name>\w+)'":
        "This version of torch takes no {name}: remove it, or write it as the documentation does.",
    r"unscale_\(\) has already been called": "Call unscale_() once for each step, and update() after the step.",
    r"No inf checks were recorded":
        "The GradScaler has seen no step before {where}: call its step(optimizer) in place of optimizer.step().",
    r"only change requires_grad flags of leaf": "At {where}, write {tensor} = {tensor}.detach() instead.",
    r"Legacy autograd function with non-static forward":
        "Write forward and backward with @staticmethod and ctx instead of self, and call apply() of the class.",
    r"can only save variables, but argument":
        "Only tensors go to save_for_backward(): keep other values as attributes of ctx.",
    r"returned an incorrect number of gradients \(expected (?P<wants>\d+), got (?P<has>\d+)\)":
        "Let backward return {wants} values, one for each argument of forward: None for those without a gradient.",
    r"Inference tensors cannot be saved for backward":
        "Compute what is trained on under torch.no_grad() instead of torch.inference_mode(), or clone() it afterwards.",
}  # fmt: skip
_KNOWN = tuple((re.compile(says, re.DOTALL), remedies) for says, remedies in _REMEDIES.items())


def known_remedy(fact: FailedCall) -> str:
    """Return what helps against an error; "" if nothing is known, or a name for it is not."""
    for says, remedies in _KNOWN:
        match = says.search(fact.text or fact.error)
        for remedy in (remedies,) if isinstance(remedies, str) else remedies if match else ():
            filled = None if match is None else _filled(remedy, {**_names(fact), **match.groupdict()})
            if filled is not None:
                return filled
    return ""


def known_remedies() -> Iterator[str]:
    """Yield all texts, with what is filled in between braces."""
    for _, remedies in _KNOWN:
        yield from (remedies,) if isinstance(remedies, str) else remedies


def _filled(remedy: str, names: Mapping[str, str]) -> str | None:
    try:
        return remedy.format_map(names)
    except KeyError:  # a tensor or a layer that is not known
        return None


def _names(fact: FailedCall) -> dict[str, str]:
    """Return what is known of the call, by the names that the remedies have for it."""
    tensors = [one for one in fact.tensors if not one.is_of_module]
    kinds = {
        "tensor": tensors,
        "integer": [one for one in tensors if one.is_integer and one.dtype != "bool"],
        "boolean": [one for one in tensors if one.dtype == "bool"],
        "floating": [one for one in tensors if not one.is_integer],
    }
    names = {kind: found[0].name for kind, found in kinds.items() if len(found) == 1 and not found[0].is_argument}
    return {"where": line_of(fact.frame), **({"constructed": fact.constructed} if fact.constructed else {}), **names}
