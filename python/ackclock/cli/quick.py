"""What keeps the start of each command short: what this program does not use is not imported.

It was half of the time of `ackclock show` and a quarter of that of `ackclock --help`; `benchmarks/start.py` measures
them. Nothing here changes what a command accepts or prints.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from typer import core

#: Modules that others import, what of them, and what stands there instead. Two are for Typer's help: a parser of
#: Markdown and a highlighter of Python come with them, but our help is in Rich's markup, and a traceback is Python's
#: own. Pydantic looks with the third for plugins, of which a scenario needs none; all that reads packages' metadata,
#: mail headers included, comes with it.
UNUSED = {
    "rich.markdown": ("Markdown", type("Markdown", (), {})),
    "rich.traceback": ("Traceback", type("Traceback", (), {})),
    "pydantic.plugin._loader": ("get_plugins", tuple),
}

#: Typer's function that makes the conversion of a parameter; versions without it have no need of pydantic.
CONVERSION = "build_runtime_param"


def start() -> None:
    """For a process that is only this program."""
    # Nothing here is left to NumPy's linear algebra, yet starting threads for it takes half of NumPy's import.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The processes of a sweep have Pydantic's own module for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    for name, (what, instead) in UNUSED.items():
        module = ModuleType(name)
        setattr(module, what, instead)
        sys.modules.setdefault(name, module)
    if make := getattr(core, CONVERSION, None):
        setattr(core, CONVERSION, lambda described: _Conversion(described, make))


@dataclass(frozen=True)
class _Conversion:
    """A parameter's conversion. Typer's own imports pydantic, and most parameters are not given, or are texts."""

    described: Any
    make: Callable[[Any], Any]

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        return value if self.described.annotation is str else self._made.coerce(value, param=param, ctx=ctx)

    @cached_property
    def _made(self) -> Any:
        return self.make(self.described)
