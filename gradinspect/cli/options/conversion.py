"""Typer converts each value of the command line with pydantic, also those that are not given.

That would be a quarter of what a command takes to start: pydantic alone is imported in 80 ms. So what is already as its
option wants it is not converted: a default, and text.
"""

from typing import Any


def without_needless_conversion(params: list[Any]) -> list[Any]:
    """Return options and arguments that convert only what is given and is not text."""
    for param in params:
        if "process_value" not in vars(param):
            param.process_value = _processing(param)
    return params


def _processing(param: Any) -> Any:  # noqa: ANN401  # click's option, which typer bundles
    converted = param.process_value

    def process_value(ctx: Any, value: Any) -> Any:  # noqa: ANN401  # as above
        is_default = ctx.get_parameter_source(param.name).name == "DEFAULT" and not param.required
        is_text = isinstance(value, str) and param.param_type_name == "argument"  # all of ours are
        if not (is_text or is_default):
            return converted(ctx, value)
        ready = () if value is None and param.nargs == -1 else value
        return param.callback(ctx, param, ready) if param.callback else ready

    return process_value
