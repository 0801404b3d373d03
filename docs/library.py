"""Write docs/library.md, the reference of the library: `python docs/library.py`."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import gradinspect
from gradinspect import testing

FILE = Path(__file__).with_suffix(".md")
HEAD = """\
# The library

`import gradinspect as gi` takes no time and loads no torch: each name is imported on first use. What follows is all
that is public. Written by `python docs/library.py` from the docstrings.

## Examples

A loss, and the graph behind it:

```python
import torch
import gradinspect as gi

model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(32, 20), torch.randint(4, (32,))

loss = torch.nn.functional.cross_entropy(model(x), y)
graph = gi.capture(loss)
print(repr(graph))
assert len(graph.find("AddmmBackward0")) == 2
```

With modules and source lines, around any code that trains:

```python
with gi.record(model) as recording:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()

print(recording.graph)  # the tree, as `gradinspect trace` prints it
for node in recording.graph.find(module="2", min_bytes="1KiB"):
    print(node.id, node.name, node.line, node.held_bytes)
assert [node.name for node in recording.graph.find(where="module~2 and bytes>1KiB")] == ["AddmmBackward0"]
```

What is wrong with a training step:

```python
def step():
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()  # and nobody calls optimizer.zero_grad()


findings = gi.check(step)
print(findings)  # the report, as `gradinspect check` prints it
assert [finding.code for finding in findings] == ["GI362"]
```

All headlines of a step, from one run of it:

```python
report = gi.report(step)
print(report)  # as `gradinspect train.py` prints it
assert len(report.findings) == 1 and report.graph.gradients.loss > 0
```

What a whole step needs, measured:

```python
def trains():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


needed = gi.fit(trains)
print(needed)  # the report, as `gradinspect fit` prints it
assert sum(row.num_bytes for row in needed.alive) == needed.peak_bytes
```

Files, figures and other libraries:

```python
gi.save(recording.graph, "run.json.gz", overwrite=True)
graph = gi.load("run.json.gz")
gi.save(graph, "graph.svg", overwrite=True, color_by="bytes")

before = gi.capture(loss)
after = gi.capture(torch.nn.functional.cross_entropy(model(x).relu(), y))
print(gi.diff(before, after))
assert not gi.diff(before, after).is_empty

print(gi.summary(graph).held_bytes, gi.memory(graph))
largest = gi.saved(graph, sort="bytes")[0]
print(largest.node_name, largest.attribute, largest.num_bytes)
assert graph.to_networkx().number_of_nodes() == len(graph.nodes)
```

In a test suite, with the assertions of `gradinspect.testing`; a failing one shows the report:

```python
from gradinspect.testing import assert_no_findings, assert_peak_below, assert_saved_below, assert_trains


def test_training():
    assert_trains(trains)  # every parameter gets a finite gradient other than zero
    assert_no_findings(trains, skip=["GI6"])
    assert_saved_below(model(x).sum(), "64 KiB")
    assert_peak_below(trains, "1 MiB")


test_training()
```

The fixture `gradinspect_recording` records the test that asks for it: `gradinspect_recording.graph` is the graph of its
first backward call. The plugin is there as soon as the package is installed, and loads nothing until it is used.

In a notebook, a graph, findings and memory show themselves, in light and dark themes, and modules expand in place.
There is no script in what they show, so it also works in an exported notebook. `%load_ext gradinspect` adds a magic for
the first line of a cell: `%%gradinspect check`, `%%gradinspect trace` or `%%gradinspect memory`. And `gradinspect check
train.ipynb` runs a notebook as a program: its code cells in order, without magics.

With a trainer, a callback checks the first steps, prints the report on stderr, and records the graph of one step. For
Lightning:

```console
from gradinspect.trainers.lightning import GradInspectCallback

watching = GradInspectCallback(capture_step=20, save_to="step20.json.gz")
Trainer(callbacks=[watching]).fit(model, data)
watching.watch.findings, watching.watch.graph
```

For transformers it is `gradinspect.trainers.transformers.GradInspectCallback`, in `Trainer(..., callbacks=[...])`.
`checks=False` only records.

## Reference

"""
ASSERTIONS = ("## Reference of `gradinspect.testing`", "")
SECTION = re.compile(r"^(Args|Returns|Raises):$")


def library_page() -> str:
    """Return what docs/library.md should say."""
    public = [_entry(name, getattr(gradinspect, name)) for name in gradinspect.__all__]
    assertions = [_entry(name, value) for name, value in vars(testing).items() if name.startswith("assert_")]
    return HEAD + "\n".join("\n".join(entry) for entry in (*public, ASSERTIONS, *assertions))


def _entry(name: str, value: object) -> Iterator[str]:
    """Yield the section of one public name; of a class, with its public methods."""
    is_class = inspect.isclass(value)
    yield from (f"### `{name}`" if is_class else f"### `{name}{_signature(value)}`", "")
    yield from _documentation(value)
    if not is_class:
        return
    fields = {field: str(kind) for field, kind in inspect.get_annotations(value).items() if not field.startswith("_")}
    if fields:
        yield from ("Fields: " + ", ".join(f"`{field}`" for field in fields) + ".", "")
    for method, function in vars(value).items():
        if method.startswith("_"):
            continue
        if isinstance(function, property):
            yield from (f"#### `.{method}`", "")
            yield from _documentation(function)
        elif inspect.isfunction(function):
            yield from (f"#### `.{method}{_signature(function)}`", "")
            yield from _documentation(function)


def _signature(function: object) -> str:
    signature = inspect.signature(function)  # type: ignore[arg-type]  # every one is callable
    shown = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    return str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))


def _documentation(value: object) -> Iterator[str]:
    """Yield a docstring as Markdown: its sections as lists."""
    is_list = False
    for line in (inspect.getdoc(value) or "").splitlines():
        if SECTION.match(line):
            is_list = line != "Returns:"
            yield from (f"**{line}**", "")
        elif is_list and line.startswith("    ") and not line.startswith("     "):
            name, _, text = line.strip().partition(": ")
            yield f"- `{name}`: {text}"
        else:
            yield line.strip() if not is_list else f"  {line.strip()}".rstrip()
    yield ""


if __name__ == "__main__":
    FILE.write_text(library_page(), encoding="utf-8")
    print(f"Wrote {FILE}")  # a command
