"""The help of a verb: its options in groups, at most forty lines; --help-all lists the rare ones as well.

Typer's own help repeats the type of each option (`<bool>`, `<int range> [x>=0]`) and frames every group, so that half
of the options did not fit the screen. An option that is declared hidden is a rare one.
"""

from typing import Any, Final

import typer
from typer.core import TyperCommand

from gradinspect.cli.options.conversion import without_needless_conversion
from gradinspect.units import format_count

RUN: Final = "Run the program"
SHOW: Final = "What to show"
OUTPUT: Final = "Output"
ALL: Final = "--help-all"
MAX_EXAMPLES: Final = 3


class VerbCommand(TyperCommand):
    """A verb whose help is grouped."""

    lists_all = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # click's class, which typer bundles
        """Take --help-all for a --help that leaves nothing out."""
        self.lists_all = ALL in args
        return list(super().parse_args(ctx, ["--help"] if self.lists_all else args))

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # as above
        """Return the options, which convert what they are given."""
        return without_needless_conversion(super().get_params(ctx))

    def format_usage(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  # as above
        """Write what follows the name, in words that the user can replace."""
        words = [param.metavar for param in self.get_params(ctx) if param.param_type_name == "argument"]
        script = " [-- ARGUMENTS OF THE SCRIPT]" if "SOURCE" in words else ""
        formatter.write_usage(ctx.command_path, f"{' '.join(filter(None, words))} [OPTIONS]{script}")

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002  # as above
        """Write what the verb does, then the examples as one block."""
        described, *examples = (part.strip() for part in (self.help or "").split("\n\n"))
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(described.split()))
            formatter.write_paragraph()
            for example in examples[:MAX_EXAMPLES]:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  # as above
        """Write each group, and how many options are left out."""
        groups: dict[str, list[tuple[str, str]]] = {}
        params: list[Any] = list(self.get_params(ctx))
        rows = [(param, _label(param)) for param in params]
        width = max(len(label) for _, label in rows)
        num_rare = 0
        for param, label in rows:
            panel = getattr(param, "rich_help_panel", None)  # in older releases of typer, the option --help has none
            group = "" if param.param_type_name == "argument" else panel or SHOW
            if param.hidden and not self.lists_all:
                num_rare += 1
            elif "--help" not in param.opts:
                groups.setdefault(group, []).append((f"{label:<{width}}", _text(param)))
        for name in ("", SHOW, OUTPUT, RUN):
            if name in groups:
                formatter.write_paragraph()
                formatter.write(f"{typer.style(name, bold=True)}\n" if name else "")
                with formatter.indentation():
                    formatter.write_dl(groups[name])
        if num_rare:
            formatter.write_paragraph()
            formatter.write_text(f"{format_count(num_rare, 'more option')}: {ctx.command_path} {ALL}")


def _label(param: Any) -> str:  # noqa: ANN401  # click's option
    if param.param_type_name == "argument":
        return str(param.metavar)
    return ", ".join(param.opts) + ("" if param.is_flag else f" {param.metavar}")


def _text(param: Any) -> str:  # noqa: ANN401  # click's option
    default = param.default if isinstance(param.default, str | int) and not isinstance(param.default, bool) else None
    return str(param.help) if default is None else f"{param.help} [default: {default}]"
