"""The commands of `gradinspect step`, modeled on pdb."""

import cmd
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from inspect import cleandoc
from typing import TYPE_CHECKING, Final

from rich.text import Text

from gradinspect.analyses.explain.explanation import InputGradient, explain_class
from gradinspect.analyses.gradients.stepping import (
    Breakpoint,
    Step,
    leaf_node,
    parse_breakpoint,
    path_to_root,
)
from gradinspect.analyses.structure.node_names import names_of_leaf, node_number
from gradinspect.catalog import Catalog
from gradinspect.cli.output.console import output_console, print_line, terminal_page
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.terminal.nodes.steps import StepPage
from gradinspect.source import ReadSource

if TYPE_CHECKING:
    from gradinspect.observers.stepping.lockstep import LiveStep

MAX_PRINTED = 1000
_EXPRESSION: Final = re.compile(r"(?:grad|incoming|outgoing|saved|node|torch)\b")  # what help print lists
COMMANDS = ("step", "next", "until", "continue", "break", "clear", "watch", "print", "where", "up", "down", "list",
            "quit", "help")  # fmt: skip


class Debugger(cmd.Cmd):
    """Receives each executed node, and stops at breakpoints."""

    prompt = "(step) "

    def __init__(self, catalog: Catalog, read_source: ReadSource, script: Iterable[str] | None = None) -> None:
        """Prepare.

        Args:
            catalog: The formulas.
            read_source: Maps a file name in the record to its lines.
            script: Commands to run instead of prompting; at their end, continue.
        """
        super().__init__()
        self._catalog = catalog
        self._read_source = read_source
        is_terminal = sys.stdin is not None and sys.stdin.isatty()
        self._commands = iter(script) if script is not None else None if is_terminal else sys.stdin or iter(())
        self._with_our_stdio: Callable[[], AbstractContextManager[None]] = nullcontext
        self._graph: Graph | None = None
        self._breakpoints: list[Breakpoint] = []
        self._watched: set[int] = set()
        self._seen: dict[int, Step] = {}
        self._stops: Callable[[Step], bool] = _always
        self._live: LiveStep | None = None
        self._selected = 0
        self._wants_more = True
        self.problem: GradInspectError | None = None  # what ended a script of commands

    # Called by the capture.

    def begin(self, graph: Graph, start: str, with_our_stdio: Callable[[], AbstractContextManager[None]]) -> bool:
        """Show the graph before the first step, and prompt. False: quit."""
        is_first = self._graph is None
        self._graph, self._with_our_stdio = graph, with_our_stdio
        self._seen.clear()
        with self._with_our_stdio():
            self._print(self._page().introduction(graph, start))
            if is_first:
                self.cmdloop()
        return self._wants_more

    def ran(self, live: "LiveStep") -> bool:
        """Receive an executed node, and stop there if needed. False: quit."""
        step = live.step
        self._seen[step.node] = step
        reasons = [point.text for point in self._breakpoints if point.hits(step)]
        if step.node in self._watched:
            reasons.append("watch")
        if not (reasons or self._stops(step)):
            return True
        self._live, self._selected = live, step.node
        with self._with_our_stdio():
            for reason in reasons:
                self._print([Text(f"Stopped: {reason}")])
            self._show(step)
            self.cmdloop()
        self._live = None
        return self._wants_more

    # Commands. The docstrings are what `help` prints.

    def do_step(self, _argument: str) -> bool:
        """Step (s): run the next node."""
        self._stops = _always
        return True

    def do_next(self, _argument: str) -> bool:
        """Next (n): run until a node of another module call."""
        here = None if self._live is None else self._known_graph().nodes[self._live.step.node].module
        self._stops = lambda step: self._known_graph().nodes[step.node].module != here
        return True

    def do_until(self, argument: str) -> bool | None:
        """Until WHAT (u): run until such a node has run: until #12.

        WHAT is a node (#12), or what help break lists: a class, a module, a parameter, a line, a shape, nan or zero.
        """
        word, graph = argument.strip(), self._known_graph()
        try:
            number = node_number(word, graph) if word.startswith("#") or word.isdecimal() or not word else None
            point = parse_breakpoint(word if number is None else f"#{number}", graph)
        except GradInspectError as error:
            return self._refuse(error)
        if point.nodes is not None and self._seen.keys() >= set(point.nodes):  # it would run to the end
            what = f"Every node of '{word}'" if number is None else f"#{number}"
            return self._refuse(GradInspectError(f"{what} has run already."))
        self._stops = point.hits
        return True

    def do_continue(self, _argument: str) -> bool:
        """Continue (c): run to a breakpoint, a watched parameter, or the end."""
        self._stops = _never
        return True

    def do_break(self, argument: str) -> bool | None:
        """Break WHAT (b): stop at matching nodes; see help break.

        A class (Addmm*), a module (h.0.*), a parameter, a line (model.py:41), a node (#12), a gradient of a
        shape (32x64, *x64); nan: finite gradients in, non-finite out; zero: a gradient in, only zeros out.
        Without WHAT: list the breakpoints.
        """
        if not argument.strip():
            self._print([Text(f"  {point.text}") for point in self._breakpoints] or [Text("There are no breakpoints.")])
            return None
        try:
            self._breakpoints.append(parse_breakpoint(argument, self._known_graph()))
        except GradInspectError as error:
            return self._refuse(error)
        return None

    def do_clear(self, argument: str) -> None:
        """Clear [WHAT]: remove one breakpoint, or all of them."""
        kept = [point for point in self._breakpoints if argument.strip() and point.text != argument.strip()]
        self._print([Text(f"Removed {len(self._breakpoints) - len(kept)}.")])
        self._breakpoints = kept

    def do_watch(self, argument: str) -> bool | None:
        """Watch PARAMETER: stop when a gradient is accumulated into it."""
        try:
            self._watched.add(leaf_node(argument.strip(), self._known_graph()))
        except GradInspectError as error:
            return self._refuse(error)
        return None

    def do_where(self, _argument: str) -> None:
        """Where (w): print the path from the root to this node."""
        graph = self._known_graph()
        if self._has_run():
            self._print(self._page().path(graph, path_to_root(graph, self._current()), self._selected))

    def do_up(self, _argument: str) -> None:
        """up: show the previous node on the path from the root."""
        self._move(1)

    def do_down(self, _argument: str) -> None:
        """down: show the next node, toward the current one."""
        self._move(-1)

    def do_list(self, _argument: str) -> None:
        """List (l): print the source around the line that made this node.

        Before the first step, this is the root, which runs first.
        """
        graph = self._known_graph()
        root = graph.roots[0].node if graph.roots else 0
        frame = graph.nodes[root if self._live is None else self._selected].frame
        lines = None if frame is None else self._read_source(graph.frames[frame].file)
        if frame is None or lines is None:
            self._print([Text("This node has no source line.")])
        else:
            self._print(self._page().source(lines, graph.frames[frame].line))

    def do_print(self, argument: str) -> None:
        """Print [EXPRESSION] (p): evaluate Python, or show this node; see help print.

        Available names: incoming and outgoing (tuples of gradients), grad (the incoming one, as in formulas), saved
        (by name: saved.self), node (the grad_fn) and torch. Without an expression: show this node again, with all
        values, sizes and formulas.
        """
        if not self._has_run():
            return
        if self._selected != self._current():
            self._print([Text("Tensors are only available for the current node; use down.")])
        elif not argument.strip():
            self._show(self._live.step, is_brief=False)  # type: ignore[union-attr]  # set while commands run
        else:
            self._print(self._printed(argument))

    def do_quit(self, _argument: str) -> bool:
        """Quit (q): stop here; the program ends too."""
        self._wants_more = False
        return True

    do_s, do_n, do_u, do_c, do_b, do_w, do_l, do_p, do_q = (
        do_step, do_next, do_until, do_continue, do_break, do_where, do_list, do_print, do_quit,
    )  # fmt: skip

    def do_EOF(self, _argument: str) -> bool:  # noqa: N802  # cmd calls it so
        """End of input: quit at a terminal, else continue to the end."""
        return self.do_continue("") if self._commands is not None else self.do_quit("")

    def do_help(self, argument: str) -> None:
        """Help [COMMAND] (h): list the commands, or explain one."""
        if argument.strip():
            command = getattr(self, f"do_{argument.strip()}", None)
            text = cleandoc(command.__doc__ or "") if command else f"There is no command '{argument.strip()}'."
            for part in text.split("\n\n"):
                self._print(self._page().paragraph(" ".join(part.splitlines())))
            return
        for name in COMMANDS:
            text = getattr(self, f"do_{name}").__doc__ or ""
            head, _, rest = text.partition(": ")
            self._print([Text(f"  {head:<22} ").append(rest.splitlines()[0] if rest else "", "dim")])

    do_h = do_help

    # Hooks of cmd.

    def emptyline(self) -> bool:
        """Step again, as most debuggers do."""
        return self.do_step("")

    def default(self, line: str) -> None:
        """Print an expression that begins with a name of this node, as pdb does; report any other unknown command."""
        word = line.split(maxsplit=1)[0]
        if _EXPRESSION.match(line):
            self.do_print(line)
            return
        self._print([Text(f"There is no command '{word}'. Try help.")])

    def cmdloop(self, intro: object = None) -> None:
        """Read commands from the terminal or from the script; echo those of a script."""
        if self._commands is None:
            super().cmdloop(intro)
            return
        is_done: bool | None = False
        while not is_done:
            line = next(self._commands, None)
            if line is not None and (not line.strip() or line.lstrip().startswith("#")):
                continue
            if line is not None:
                self._print([Text(f"{self.prompt}{line.strip()}", "dim")])
            is_done = self.onecmd("EOF" if line is None else line.strip())

    def completenames(self, text: str, *_ignored: object) -> list[str]:
        """Complete the long names of commands."""
        return [name for name in super().completenames(text) if len(name) > 1 and name != "EOF"]

    def completedefault(self, text: str, *_ignored: object) -> list[str]:
        """Complete classes, modules and parameters."""
        graph = self._known_graph()
        names = {node.name for node in graph.nodes} | {call.path for call in graph.modules}
        names |= {name for node in graph.nodes if node.leaf is not None for name in names_of_leaf(graph, node.leaf)}
        return sorted(name for name in names if name.startswith(text))

    # Parts.

    def _known_graph(self) -> Graph:
        assert self._graph is not None  # noqa: S101  # commands run after begin
        return self._graph

    def _current(self) -> int:
        assert self._live is not None  # noqa: S101  # commands run while stopped
        return self._live.step.node

    def _has_run(self) -> bool:
        """Return whether a node has run, and report it if not."""
        if self._live is None:
            self._print([Text("No node has run yet. Try step.")])
        return self._live is not None

    def _move(self, by: int) -> None:
        if not self._has_run():
            return
        graph = self._known_graph()
        path = path_to_root(graph, self._current())
        place = path.index(self._selected) + by
        if not 0 <= place < len(path):
            self._print([Text("This is the root." if by > 0 else "This is the current node.")])
            return
        self._selected = path[place]
        step = self._seen.get(self._selected)
        self._print([Text(f"#{self._selected} has not run.")]) if step is None else self._show(step)

    def _printed(self, expression: str) -> Iterable[Text]:
        from gradinspect.observers.stepping.expression_eval import evaluate  # noqa: PLC0415  # torch is imported by now

        assert self._live is not None  # noqa: S101  # as in _current
        return self._page().values(evaluate(expression, self._live, self._known_graph(), MAX_PRINTED))

    def _show(self, step: Step, *, is_brief: bool = True) -> None:
        graph = self._known_graph()
        self._print(self._page(is_brief=is_brief).step(graph, step, self.formulas(graph.nodes[step.node].name)))

    def formulas(self, name: str) -> tuple[InputGradient, ...]:
        """Return the formulas of a class; none if derivatives.yaml does not have it."""
        return explain_class(name, self._catalog).gradients if name in self._catalog.entries else ()

    def _page(self, *, is_brief: bool = False) -> StepPage:
        return terminal_page(StepPage, is_brief=is_brief)

    def _print(self, lines: Iterable[Text]) -> None:
        console = output_console()
        for line in lines:
            print_line(console, line)

    def _refuse(self, error: GradInspectError) -> bool:
        """Say what is wrong at a terminal; end a script of commands, which would run past the place it meant."""
        if self._commands is None:
            self._print([Text(str(error))])
            return False
        self.problem = error
        return self.do_quit("")


def _always(_step: Step) -> bool:
    return True


def _never(_step: Step) -> bool:
    return False
