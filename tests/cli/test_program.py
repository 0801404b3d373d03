"""The command line as a user meets it: exit codes, one sentence for each mistake, clean output."""

import errno
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import webbrowser
from pathlib import Path

import pytest
from factories import product_plus_two
from msgspec.structs import replace
from runs import gradinspect

from gradinspect.cli import main
from gradinspect.cli.options.command_line import split_arguments
from gradinspect.cli.options.request import label_of
from gradinspect.cli.verbs import VERBS
from gradinspect.graph import Frame
from gradinspect.storage import encode_graph, read_graph


@pytest.fixture
def capture_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A capture file in the folder where the command runs, at 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("run.json").write_bytes(encode_graph(product_plus_two(), compressed=False))
    return "run.json"


def test_words_after_two_dashes_are_the_scripts() -> None:
    """Only the first `--` is ours."""
    assert split_arguments(["trace", "t.py", "--", "--lr", "1", "--", "x"]) == (
        ["trace", "t.py"],
        ("--lr", "1", "--", "x"),
    )


def test_an_absolute_path_stays_out_of_the_record() -> None:
    """A record is the same on every machine."""
    assert [label_of(name) for name in ("a/t.py", "/home/me/t.py", "pkg.mod:f()")] == ["a/t.py", "t.py", "pkg.mod:f()"]


def test_a_capture_file_is_traced(capture_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Head, tree and legend, without an escape in a pipe."""
    code = main(["trace", capture_file])
    captured = capsys.readouterr()

    assert (code, captured.err) == (0, "")
    assert "\x1b" not in captured.out
    assert captured.out.startswith("backward #1")
    assert "MulBackward0" in captured.out
    assert captured.out.splitlines()[-1].startswith("gradients flow down")


def test_a_page_is_opened(
    capture_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is in a folder of its own for nobody else, named after the source, and its path is said."""
    opened: list[str] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def opens(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", opens)
    monkeypatch.setenv("BROWSER", "any")

    assert main(["trace", capture_file, "--open", "--around", "#1", "--radius", "0"]) == 0
    page = Path(capsys.readouterr().err.removeprefix("Wrote ").strip())

    assert opened == [page.as_uri()]
    assert page.name == "run.html"
    assert page.parent.stat().st_mode & 0o077 == 0
    assert "1 of 2 nodes" in page.read_text()


@pytest.mark.skipif(sys.platform in {"darwin", "win32"}, reason="there is always a browser")
def test_without_a_browser_the_file_is_named(
    capture_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is started in the terminal."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda _: pytest.fail("a browser was asked for"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)

    assert main(["trace", capture_file, "--open"]) == 0
    wrote, no_browser = capsys.readouterr().err.splitlines()

    assert Path(wrote.removeprefix("Wrote ")).is_file()
    assert no_browser == "No browser was found. Open the file in a browser on any machine."


@pytest.mark.parametrize(
    "words", [["--backward", "2"], ["--input", "2x3"], ["--root", "loss"], ["--fake"], ["--at", "end"], ["--", "--lr"]]
)
def test_a_capture_file_takes_no_option_of_a_run(
    words: list[str], capture_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would have no effect, so it is refused."""
    assert main(["trace", capture_file, *words]) == 2
    assert capsys.readouterr().err == (
        f"gradinspect: '{words[0]}' is about running a program, and '{capture_file}' is a capture file. Remove this "
        "option, or give a program.\n"
    )


def test_a_part_is_shown_and_drawn(capture_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The tree and the picture have what was asked for, a file of data all of it, and says so."""
    code = main(["trace", capture_file, "--around", "#1", "--radius", "0", "-o", "part.dot", "-o", "all.json"])
    captured = capsys.readouterr()

    assert code == 0
    assert "1 of 2 nodes, with 1 of 1 leaf: within 0 of #1\n#1 AddBackward0" in captured.out
    assert captured.err.splitlines() == [
        "Wrote part.dot", "all.json: contains the whole graph, not only the part in focus", "Wrote all.json",
    ]  # fmt: skip
    assert "MulBackward0" not in Path("part.dot").read_text()
    assert read_graph(Path("all.json")) == product_plus_two()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--radius", "2"], "gradinspect: '--radius 2' requires --around. Add --around NAME.\n"),
        (
            ["--around", "c"],
            'gradinspect: No class, module or parameter in this graph matches "c". Closest matches: "AccumulateGrad", ',
        ),
        (
            ["--format", "json", "--path-to", "a"],
            "gradinspect: '--format json' has the figures of the whole graph, not",
        ),
        (
            ["--where", "bytes>big"],
            "gradinspect: The condition 'bytes>big' cannot be read at \"bytes>big\". Write it like ",
        ),
    ],
)
def test_a_part_that_is_not_there(
    words: list[str], problem: str, capture_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, and nothing is printed or written."""
    code = main(["trace", capture_file, *words, *([] if "json" in words else ["-o", "part.dot"])])
    captured = capsys.readouterr()

    assert (code, captured.out) == (2, "")
    assert captured.err.startswith(problem)
    assert not Path("part.dot").exists()


def test_a_link_that_is_none(capture_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused before anything is run or written."""
    code = main(["export", capture_file, "-o", "graph.svg", "--link", "javascript:alert({line})//{file}"])

    assert code == 2
    assert capsys.readouterr().err.startswith("gradinspect: 'javascript:alert({line})//{file}' is not a URL that a")
    assert not Path("graph.svg").exists()


def test_links_lead_to_files_that_are_there(capture_file: str) -> None:
    """A file beside the capture is linked by its path; one that is not there, or not below it, is not."""
    frames = (Frame(file="train.py", line=3), Frame(file="../secret.py", line=4))
    linked = product_plus_two()
    nodes = (replace(linked.nodes[0], frame=0), replace(linked.nodes[1], frame=1), linked.nodes[2])
    Path(capture_file).write_bytes(encode_graph(replace(linked, frames=frames, nodes=nodes), compressed=False))
    Path("train.py").write_text("")
    Path("../secret.py").write_text("")

    assert main(["export", capture_file, "-o", "graph.dot", "--link", "vscode://file/{path}:{line}"]) == 0
    written = Path("graph.dot").read_text()

    assert f'URL="vscode://file{Path("train.py").resolve()}:3"' in written
    assert written.count("URL=") == 1


def test_the_figures_for_machines(capture_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--format json` has exactly the figures of the head."""
    assert main(["trace", capture_file, "--format", "json"]) == 0
    figures = json.loads(capsys.readouterr().out)

    assert sorted(figures) == sorted((
        "nodes", "edges", "none_edges", "roots", "leaves", "max_depth",
        "classes", "held_bytes", "weight_bytes", "saved_bytes_by_origin", "captured_at", "other_calls",
    ))  # fmt: skip
    assert (figures["nodes"], figures["edges"], figures["none_edges"], figures["max_depth"]) == (3, 4, 1, 3)


@pytest.mark.parametrize("output_format", ["table", "csv", "json", "markdown"])
def test_the_saved_table_in_every_format(
    output_format: str, capture_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of them has a row for each saved value; the table lists numbers when all is asked for."""
    assert main(["saved", capture_file, "--full", "--format", output_format]) == 0
    printed = capsys.readouterr().out

    assert printed.count("_saved_") == 3


@pytest.mark.parametrize("by", ["module", "operator", "line", "storage"])
@pytest.mark.parametrize("output_format", ["table", "csv", "json"])
def test_held_memory_in_every_format(
    by: str, output_format: str, capture_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a capture file, where there is no source to show beside it."""
    assert main(["memory", capture_file, "--by", by, "--format", output_format]) == 0
    printed = capsys.readouterr().out

    assert printed.startswith(
        {"table": "backward #1", "json": "{\n", "csv": "path," if by == "module" else "label,"}[output_format]
    )


@pytest.mark.parametrize("file", ["/dev/zero", "../secret.py", "folder"])
def test_a_capture_file_cannot_make_us_read_what_it_names(
    file: str, capture_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only plain files below the folder are shown beside the bytes."""
    Path("folder").mkdir()
    Path("../secret.py").write_text("secret = 1\n" * 9)
    record = replace(read_graph(Path(capture_file)), frames=(Frame(file=file, line=2, code="secret = 1"),))
    nodes = tuple(replace(node, frame=0) for node in record.nodes)
    Path("hostile.json").write_bytes(encode_graph(replace(record, nodes=nodes), compressed=False))

    assert main(["memory", "hostile.json", "--by", "line"]) == 0
    assert capsys.readouterr().out.count("secret = 1") == 1


def test_files_are_written_by_their_suffix(capture_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`-o` can be repeated; what was written is said on stderr."""
    names = ["g.svg", "g.png", "g.dot", "g.csv", "g.json", "g.json.gz", "g.pdf", "g.html"]
    code = main(["export", capture_file, *[word for name in names for word in ("-o", name)]])
    captured = capsys.readouterr()

    assert (code, captured.out) == (0, "")
    assert captured.err.splitlines() == [f"Wrote {name}" for name in names]
    assert Path("g.json").read_bytes() == Path(capture_file).read_bytes()
    assert gzip.decompress(Path("g.json.gz").read_bytes()) == Path(capture_file).read_bytes()
    assert Path("g.png").read_bytes().startswith(b"\x89PNG")
    assert Path("g.pdf").read_bytes().startswith(b"%PDF")
    assert b"<svg" in Path("g.svg").read_bytes()
    assert Path("g.html").read_bytes().startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["trace"], "A SOURCE or -m MODULE is needed, and neither was given"),
        (["trace", "run.json", "-m", "pkg"], "A SOURCE or -m MODULE is needed, and both was given"),
        (["trace", "missing.py"], "The file 'missing.py' does not exist"),
        (["trace", "runn.json"], "Did you mean 'run.json'?"),
        (["trace", "run.json", "--dept", "2"], "--dept"),
        (["trace", "run.json", "--backward", "0"], "'--backward 0'"),
        (["saved", "run.json", "--sort", "size"], "sorted by 'size'"),
        (["export", "run.json", "-o", "a.csv", "-o", "a.csv"], "The file 'a.csv' is given twice."),
        (["trace", "run.json", "--backward", "2", "--at", "end"], "cannot be combined"),
        (["export", "run.json"], "No output file was given"),
        (["export", "run.json", "-o", "x.tiff"], "The format of 'x.tiff' is unknown"),
        (["export", "run.json", "-o", "run.json"], "The file 'run.json' exists. Use --force"),
        (["export", "run.json", "-o", "nowhere/x.svg"], "The directory 'nowhere' does not exist"),
        (["saved", "run.json", "--node", "Addd*"], "Addd*"),
        (["saved", "run.json", "--status", "lively"], "lively"),
        (["memory", "run.json", "--by", "color"], "'--by color'"),
        (["memory", "run.json", "--module", "h.9"], "h.9"),
        (["memory", "run.json", "--iterations", "3"], "'run.json' is a capture of one moment"),
        (["memory", "run.json", "--iterations", "3", "--top", "2"], "'--iterations 3' observes several backward calls"),
        (
            ["memory", "run.json", "--device", "cpu"],
            "'--device' is about running a program, and 'run.json' is a capture file.",
        ),
        (["memory", "run.json", "--fake"], "'run.json' is a capture file"),
        (["trace", "run.json", "--input", "2x"], "The input '2x' has an empty size"),
        (["traec", "run.json"], "traec"),
        (["find", "bytes>0", "run.json"], "Write: gradinspect find run.json 'bytes>0'\n"),
        (["find", "bytes>0", "run.json:Net()"], "'bytes>0' is given before its SOURCE 'run.json:Net()'."),
        (["find", "missing", "bytes>0"], "The file 'missing' does not exist."),
        (["explain"], "Exactly one of NAME, --list or --search is needed; got nothing. Give one of them."),
        (["explain", "mul", "--list"], "got NAME and --list."),
        (["explain", "mulll"], "There is no Backward class or operator 'mulll'. Closest matches:"),
        (["explain", "gi99"], "No rule has the code 'GI99'. Closest matches: GI901 and GI902."),
        (["explain", "run.json#99"], "There is no node '#99' in 'run.json'. It has #0 to #2."),
        (["explain", "run.json#x"], "There is no node '#x'"),
        (["explain", "none.json#1"], "none.json"),
        (["explain", "none.py:Fn"], "The file 'none.py' cannot be read"),
        (["explain", "--search", "never heard of"], "No class has 'never heard of'"),
    ],
)
def test_each_mistake_is_one_sentence(
    arguments: list[str], sentence: str, capture_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, nothing on stdout, one line on stderr with the wrong thing in it."""
    code = main(arguments)
    captured = capsys.readouterr()

    assert (code, captured.out) == (2, "")
    assert len(captured.err.splitlines()) == 1
    assert sentence in captured.err
    assert "Try:" not in captured.err or ". Try:" in captured.err or "? Try:" in captured.err


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"\x80\x04K\x01.", b"\x1f\x8b\x08\x00", b'{"format": "x"}'])
def test_a_foreign_file_is_one_sentence(content: bytes, capture_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever stands in a file, it is read as data."""
    Path(capture_file).write_bytes(content)
    code = main(["trace", capture_file])
    error = capsys.readouterr().err

    assert code == 2
    assert error.startswith("gradinspect: ")
    assert len(error.splitlines()) == 1


def test_control_characters_of_the_program_do_not_reach_the_terminal(
    capture_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A parameter name may hold an escape sequence; it is shown, not obeyed."""
    content = Path(capture_file).read_text().replace('"name":"a"', '"name":"a\\u001b[31m[bold]"')
    Path(capture_file).write_text(content)
    for verb in ("trace", "saved"):
        assert main([verb, capture_file]) == 0
    printed = capsys.readouterr().out

    assert "\x1b" not in printed
    assert "[bold]" in printed


def test_without_a_word_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Asking for nothing is no mistake: the verbs are listed, and the exit code is 0."""
    assert main([]) == 0
    captured = capsys.readouterr()

    assert captured.err == ""
    assert all(f"\n  {verb} " in captured.out for verb in VERBS)


def test_the_versions_that_a_report_names(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours, Python's and torch's, in one line."""
    assert main(["--version"]) == 0
    printed = capsys.readouterr().out

    assert re.fullmatch(r"gradinspect \S+, Python \d+\.\d+\.\d+\S*, torch \d+\.\d+\S*\n", printed)


def test_a_node_is_explained_under_any_name(capture_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A class, an operator, a node of a capture; as text and as JSON; all of them as a list."""
    assert main(["explain", "MulBackward0", "aten::add", "run.json#0"]) == 0
    printed = capsys.readouterr().out
    assert main(["explain", "relu", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert main(["explain", "--list"]) == main(["explain", "--search", "gelu"]) == 0

    assert [line for line in printed.splitlines() if line.endswith("Backward0") and line[0] != " "] == [
        "MulBackward0", "struct MulBackward0", "AddBackward0", "struct AddBackward0", "MulBackward0",
        "struct MulBackward0",
    ]  # fmt: skip
    assert "#0 of backward #1" in printed
    assert found["name"] == "ReluBackward0"


def test_help_and_capture_files_need_no_torch(capture_file: str) -> None:
    """In a process where torch cannot be imported, everything but running a program works."""
    program = (
        "import sys; sys.modules['torch'] = None; from gradinspect.cli import main\n"
        "assert main(['--help']) == main(['trace', 'run.json']) == main(['saved', 'run.json']) == 0\n"
        "assert main(['explain', 'GI102']) == main(['--version']) == 0\n"
        "assert main(['export', 'run.json', '-o', 'x.svg', '-o', 'x.csv']) == 0\n"
        "open('t.py', 'w').close(); assert main(['trace', 't.py']) == 2\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 0, done.stderr
    assert "Running a program needs PyTorch, which is not installed." in done.stderr


def test_an_ascii_terminal_gets_ascii(capture_file: str) -> None:
    """No character that the encoding lacks, and no traceback about it."""
    done = gradinspect("trace", capture_file, PYTHONIOENCODING="ascii")

    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "MulBackward0" in done.stdout


@pytest.mark.parametrize("arguments", ["trace --format json", "saved --format csv", "saved"])
def test_a_name_that_the_encoding_lacks_is_escaped(arguments: str, capture_file: str) -> None:
    """In every format that goes to the terminal."""
    content = Path(capture_file).read_text().replace('"name":"a"', '"name":"größe"')
    Path(capture_file).write_text(content)
    verb, *options = arguments.split()
    done = gradinspect(verb, capture_file, *options, PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


@pytest.mark.parametrize("verb", ["trace", "saved", "saved --format csv"])
def test_a_reader_that_leaves_early_is_no_error(verb: str, capture_file: str) -> None:
    """As `| head -1` does; 1 would say that a check found something."""
    command = f"{sys.executable} -m gradinspect {verb} {capture_file} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False)

    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("trace", "page.html"),
        ("diff {0}", "page.html"),
        pytest.param("check", "found.json", marks=pytest.mark.slow),
        pytest.param("fit", "page.html", marks=pytest.mark.slow),
    ],
)
def test_a_reader_that_leaves_early_loses_no_file(
    verb: str, name: str, capture_file: str, tmp_path: Path
) -> None:  # the lines are more than a pipe holds at once, or come after the reader has left
    """What `-o` asks for is written whoever reads the screen."""
    program = tmp_path / "program.py"
    program.write_text("import torch\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\n")
    source = capture_file if verb in {"trace", "diff {0}"} else str(program)
    words = f"{verb.format(source)} {source} -o {tmp_path / name} --force"
    command = f"exec 3> >(exec true); sleep 0.2; {sys.executable} -m gradinspect {words} >&3"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).stat().st_size > 0


def test_a_folder_that_may_not_be_written_is_said_before_the_script_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when the tests run as a user who may do everything."""
    (tmp_path / "talk.py").write_text("print('I ran')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    code = main(["trace", "talk.py", "-o", "a.svg"])
    captured = capsys.readouterr()

    assert (code, captured.out) == (2, "")
    assert captured.err == "gradinspect: The directory '.' is not writable. Choose another directory.\n"


def test_the_scripts_own_output_comes_first(tmp_path: Path) -> None:
    """Also when stdout is a pipe; --quiet-script hides it, a child's too."""
    (tmp_path / "talk.py").write_text(
        "import subprocess, sys, torch\nprint('mine', sys.argv[1:])\nsubprocess.run(['echo', 'child'])\n"
        "x = torch.ones(1, requires_grad=True)\n(x * 2).backward()\n"
    )
    loud = gradinspect("trace", "talk.py", "--", "--depth", "9", cwd=tmp_path)
    quiet = gradinspect("trace", "talk.py", "--quiet-script", cwd=tmp_path)

    assert loud.stdout.splitlines()[:2] in (["mine ['--depth', '9']", "child"], ["child", "mine ['--depth', '9']"])
    assert quiet.stdout.startswith("backward #1  talk.py:5")


def test_a_module_is_run_as_python_does(tmp_path: Path) -> None:
    """`-m` takes a package with `__main__`, and its arguments after `--`."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "part.py").write_text("import torch\n\n\ndef double(x):\n    return x * 2\n")
    (package / "__main__.py").write_text(
        "import sys\nimport torch\nfrom .part import double\nassert sys.argv[1:] == ['7'], sys.argv\n"
        "double(torch.ones(1, requires_grad=True)).backward()\n"
    )
    done = gradinspect("trace", "-m", "pkg", "--", "7", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "part.py:5" in done.stdout


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    """A capture file can be committed and compared."""
    sample = Path(__file__).parent.parent.parent / "samples" / "transformer.py"
    for name in ("a.json", "b.json"):
        assert gradinspect("export", sample, "-o", name, cwd=tmp_path, is_new=True).returncode == 0

    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["trace", "x.py", "--lr", "0.1"],
            "'trace' has no option '--lr'. Options of the script follow --: gradinspect trace x.py -- --lr 0.1. "
            "See: gradinspect trace --help",
        ),
        (
            ["saved", "x.py", "--dept=2"],
            "'saved' has no option '--dept'. Options of the script follow --: gradinspect saved x.py -- --dept=2. "
            "See: gradinspect saved --help",
        ),
        (
            ["trace", "x.py", "--color-by", "bytes"],
            "'trace' has no option '--color-by'. 'export' has it: gradinspect export x.py --color-by bytes. "
            "Options of the script follow --: gradinspect trace x.py -- --color-by bytes. "
            "See: gradinspect trace --help",
        ),
        (
            ["memory", "x.py", "--split", "net"],
            "'memory' has no option '--split'. 'plan' has it: gradinspect plan x.py --split net --fit SIZE. Options of "
            "the script follow --: gradinspect memory x.py -- --split net. See: gradinspect memory --help",
        ),
        (["explain", "--jsn"], "'explain' has no option '--jsn'. See: gradinspect explain --help"),
    ],
)
def test_an_unknown_option_may_be_the_scripts(words: list[str], sentence: str) -> None:
    """Or that of another verb: the error says where each goes, and where those of the verb are listed."""
    done = gradinspect(*words)

    assert (done.returncode, done.stderr) == (2, f"gradinspect: {sentence}\n")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory", "a/package"),
        ImportError("libx.so: failed to map segment from shared object"),
        SystemError("error return without exception set"),
    ],
)
def test_a_lack_of_memory_is_one_sentence(
    capture_file: str, error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where Python reports it as an error of a file, as it does while it looks for modules."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("gradinspect.cli.trace.report_on", fail)
    monkeypatch.setattr("gradinspect.cli.program.is_address_space_limited", lambda: True)

    assert main(["trace", capture_file]) == 2
    assert capsys.readouterr().err == (
        "gradinspect: Not enough memory. Free some, raise the limit (ulimit -v), or capture a smaller step of the "
        "program.\n"
    )


@pytest.mark.parametrize("error", [SystemError("error return without exception set"), ImportError("No module 'x'")])
def test_an_error_of_python_without_a_limit_is_no_lack_of_memory(
    capture_file: str, error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a bug of ours, like a library that is missing."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("gradinspect.cli.trace.report_on", fail)
    monkeypatch.setattr("gradinspect.cli.program.is_address_space_limited", lambda: False)

    assert main(["trace", capture_file]) == 4
    assert f"{type(error).__name__}: {error}" in capsys.readouterr().err


def test_a_callable_that_fails_shows_the_frames_of_the_program(tmp_path: Path) -> None:
    """Those of torch between them say nothing about a wrong input."""
    script = tmp_path / "model.py"
    script.write_text(
        "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.inner = nn.Linear(3, 2)\n    def forward(self, x):\n        return self.inner(x)\n"
    )
    done = gradinspect("trace", f"{script}:Net()", "--input", "2x5")
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File ")]

    assert frames == [f'  File "{script}", line 7, in forward']
    assert "mat1 and mat2 shapes cannot be multiplied" in done.stderr
