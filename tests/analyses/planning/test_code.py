"""The code that carries out a plan."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from gradinspect.analyses.planning.changes import (
    Checkpoint,
    CheckpointSegments,
    ChunkLoss,
    DeleteVariable,
    Fused,
    HalfSaves,
    NamedPlace,
    Offload,
    Plan,
    ReleaseGradients,
    WithoutForeach,
    describe_plan,
    edits_of,
    is_exact,
)
from gradinspect.analyses.planning.code import applied_code, can_be_written, code_of, part_of

FIRST = Checkpoint(root=0, paths=("h.0", "h.1", "h.2"), class_name="Block", num_alike=5)
KEEPING = Checkpoint(
    root=0,
    paths=("h.3", "h.4"),
    class_name="Block",
    num_alike=5,
    kept=("aten.addmm.default", "aten.mm.default"),
    keeps_statistics=True,
)


def test_only_the_call_that_clears_gradients_is_removed_from_a_line() -> None:
    """A line that runs backward and the step as well keeps them."""
    release = ReleaseGradients(line="train.py:9", code="opt.zero_grad(); loss.backward(); opt.step()")

    assert str(release.edits[0]).startswith("at train.py:9: remove opt.zero_grad(), and write zero_grad()")


def test_a_plan_is_a_function_and_its_calls() -> None:
    """Imports are inside, so that no name of the program changes; paths that count up are a range."""
    assert code_of(Plan(changes=(FIRST,)), ("net",)) == snapshot(
        """\
def checkpoint_modules(model, paths):
    from functools import partial

    from torch.utils.checkpoint import checkpoint

    def run(module, forward, *args, **kwargs):
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    for path in paths:
        module = model.get_submodule(path)
        module.forward = partial(run, module, module.forward)


checkpoint_modules(net, [f"h.{n}" for n in range(3)])
"""
    )


def test_a_sequential_is_run_in_segments() -> None:
    """The outermost module may be one; batch norms in it do not count what is computed again."""
    plain = CheckpointSegments(root=0, path="", class_name="Sequential", starts=(0, 2, 5))
    counting = CheckpointSegments(root=0, path="body", class_name="Stem", starts=(0, 3), keeps_statistics=True)
    code = code_of(Plan(changes=(counting,)), ("net",))

    assert code_of(Plan(changes=(plain,)), ("net",)) == snapshot("""\
def checkpoint_segments(model, path, starts):
    from torch.utils.checkpoint import checkpoint

    sequence = model.get_submodule(path)

    def run(first, last, input):
        for number in range(first, last):
            input = sequence[number](input)
        return input

    def forward(input):
        for first, last in zip(starts, starts[1:]):
            input = checkpoint(run, first, last, input, use_reentrant=False)
        return run(starts[-1], len(sequence), input)

    sequence.forward = forward


checkpoint_segments(net, "", [0, 2, 5])
""")
    assert describe_plan(Plan(changes=(plain, counting))) == snapshot(
        "checkpoint Sequential in 3 segments, all but the last; checkpoint body Stem in 2 segments, all but the last"
    )
    compile(code, "pasted", "exec")
    assert "input = checkpoint(run, first, last, input, use_reentrant=False, context_fn=partial(" in code
    assert code.endswith('checkpoint_segments(net, "body", [0, 3])\n')


def test_what_is_kept_and_counted_is_in_the_code() -> None:
    """It is Python, and names the operators."""
    code = code_of(Plan(changes=(FIRST, KEEPING)), ("self.net",))

    compile(code, "pasted", "exec")
    assert "statistics_kept(module, again)" in code
    assert code.endswith(
        'checkpoint_modules(self.net, ["h.3", "h.4"], keep=[\n    "aten.addmm.default",\n    "aten.mm.default",\n])\n'
    )


def test_each_change_is_described_in_a_line() -> None:
    """How many of how many, and what is kept."""
    release = ReleaseGradients(line="train.py:9", code="optimizer.zero_grad()")
    deletion = DeleteVariable(name="out", file="train.py", line=12, indent=4, code="loss = f(out)", num_bytes=9)
    plan = Plan(changes=(release, deletion, FIRST, KEEPING))

    assert [*map(str, edits_of(plan))] == [
        "at train.py:9: remove optimizer.zero_grad(), and write zero_grad() right after the optimizer's step()",
        "at train.py:12, loss = f(out): write del out after it",
    ]
    assert describe_plan(plan).split("; ") == [
        "free gradients right after the optimizer's step",
        "del out after train.py:12",
        "checkpoint h.0-2 Block x3 of 5",
        "checkpoint h.3-4 Block x2 of 5, keeping matrix products, convolutions and attention",
    ]
    assert describe_plan(Plan()) == "no change"
    assert code_of(Plan(changes=(release,)), ("net",)) == ""


def test_equal_changes_are_described_as_one_and_no_other_module_is_named() -> None:
    """However the search came to them."""
    first = Checkpoint(root=0, paths=("h.0.mlp",), class_name="MLP", num_alike=4)
    others = Checkpoint(root=0, paths=("h.1.mlp", "h.2.mlp", "h.3.mlp"), class_name="MLP", num_alike=4)
    apart = Checkpoint(root=0, paths=("a.0.b.1", "a.1.b.0"), class_name="MLP", num_alike=4)
    spread = Checkpoint(root=0, paths=("h.0", "h.2", "h.5"), class_name="Block", num_alike=6)

    assert describe_plan(Plan(changes=(first, others)), "×") == "checkpoint h.0-3.mlp MLP ×4"
    assert describe_plan(Plan(changes=(apart,))) == "checkpoint a.0.b.1, a.1.b.0 MLP x2 of 4"
    assert describe_plan(Plan(changes=(spread,))) == "checkpoint h.0,2,5 Block x3 of 6"


def test_what_is_held_otherwise_is_described_and_called() -> None:
    """Both functions stand once, and our own runs offload to another place than the program."""
    offload = Offload(root=0, paths=("h.0", "h.1", "h.2"), class_name="Block", num_alike=4)
    half = HalfSaves(root=0, paths=("head",), class_name="Linear", num_alike=1)
    plan = Plan(changes=(offload, half))

    assert describe_plan(plan).split("; ") == [
        "offload what h.0-2 Block x3 of 4 saves to the CPU",
        "hold what head Linear saves as bfloat16",
    ]
    assert code_of(plan, ("net",)).endswith(
        'offload_saved(net, [f"h.{n}" for n in range(3)])\nsave_in_half(net, ["head"])\n'
    )
    assert applied_code([offload, half], "meta").count("def offload_saved(") == 1
    assert """for n in range(3)], to='meta')""" in applied_code([offload, half], "meta")


def test_the_line_of_a_loss_is_the_programs_own() -> None:
    """Where an installed package computes it, that line is named beside it."""
    chunked = ChunkLoss(
        root=0, path="head", chunks=8, projection="model.py:5", loss="train.py:6", loss_code="loss = model(x)",
        package_line="transformers/loss/loss_utils.py:40",
    )  # fmt: skip

    assert str(edits_of(Plan(changes=(chunked,)))[0]).startswith(
        "at train.py:6, loss = model(x) (there transformers/loss/loss_utils.py:40 computes it): give what head"
    )


@given(st.lists(st.text(min_size=1).filter(lambda name: "." not in name), min_size=1, max_size=4, unique=True))
def test_no_name_of_a_module_breaks_out_of_the_code(names: list[str]) -> None:
    """A module may have any name: quotes, braces, ends of lines. Executed, the code asks for exactly these."""
    paths = tuple(f"{name}.{number}" for name in names for number in range(3))
    code = code_of(Plan((Checkpoint(0, paths, "Block", 12),)), ("model",))
    tree = ast.parse(code)
    call = tree.body[-1]

    assert [type(statement) for statement in tree.body] == [ast.FunctionDef, ast.Expr]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    given_paths = eval(compile(ast.Expression(call.value.args[1]), "<paths>", "eval"))  # noqa: S307  # what is tested
    assert sorted(given_paths) == sorted(paths)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("body", "model.body"),
        ("body.head", "model.body.head"),
        ("größe", "model.größe"),
        ("blocks.0", 'model.get_submodule("blocks.0")'),
        ("class", 'model.get_submodule("class")'),
        ("a b", "model.get_submodule('a b')"),
        ('"', "model.get_submodule('\"')"),
        ("'\n\\", r"""model.get_submodule("'\n\\")"""),
        ("\ufb01", 'model.get_submodule("\ufb01")'),  # Python reads model.ﬁ as model.fi
        ("\u202e\u200b\udc80", r"model.get_submodule('\u202e\u200b\udc80')"),
        ("9" * 5000, f'model.get_submodule("{"9" * 5000}")'),
    ],
)
def test_a_module_inside_another_is_valid_python(path: str, code: str) -> None:
    """Whatever a module is called: attributes for identifiers, a text for all else."""
    written = part_of("model", path)
    pasted = code_of(Plan((Checkpoint(0, (path, f"{path}.x"), "Block", 1),)), (written,))

    assert written == code
    call = ast.parse(pasted).body[-1]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert ast.literal_eval(call.value.args[1]) == [path, f"{path}.x"]
    assert ast.unparse(ast.parse(code)) == ast.unparse(call.value.args[0])


def test_names_that_only_python_itself_can_give_are_not_written() -> None:
    """`globals()["my model"]` has no name to paste."""
    names = (
        "model",
        "nets[0]",
        "nets['a b']",
        "self.model",
        "größe",
        "my model",
        "class",
        "0",
        "\ufb01",
        "",
        "(" * 9999,
    )

    assert [can_be_written(name) for name in names] == [True] * 5 + [False] * 6


def test_options_of_optimizers_are_written_where_they_are_made() -> None:
    """Or named, where that line is not known; only a fused kernel rounds otherwise."""
    known = NamedPlace(name="first", after="train.py:5", code="first = AdamW(decay, foreach=True)")
    loop, fused = WithoutForeach(optimizers=(known,)), Fused(optimizers=(known, NamedPlace(name="second")))

    assert describe_plan(Plan(changes=(loop, fused))) == (
        "step first with foreach=False; step first and second with fused=True"
    )
    assert [*map(str, edits_of(Plan(changes=(loop, fused))))] == [
        "at train.py:5, first = AdamW(decay, foreach=True): write foreach=False",
        "at train.py:5, first = AdamW(decay, foreach=True): write fused=True, without foreach",
        "where second is made: write fused=True, without foreach",
    ]
    assert (is_exact(Plan(changes=(loop,))), is_exact(Plan(changes=(fused,)))) == (True, False)
