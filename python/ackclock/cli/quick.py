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
from pathlib import Path
from types import ModuleType
from typing import Any

from typer import core

from ackclock.cli.plain import may_be_read

#: Modules of Rich that Typer's help imports, and what of them: a parser of Markdown and a highlighter of Python come
#: with them. Our help is in Rich's markup, and a traceback is Python's own.
UNUSED = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}

#: Typer's function that makes the conversion of a parameter; versions without it have no need of pydantic.
CONVERSION = "build_runtime_param"


def start() -> None:
    """For a process that is only this program."""
    # Nothing here is left to NumPy's linear algebra, yet starting threads for it takes half of NumPy's import.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Pydantic looks through everything that is installed for plugins, of which a scenario needs none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    for name, what in UNUSED.items():
        module = ModuleType(name)
        setattr(module, what, type(what, (), {}))
        sys.modules.setdefault(name, module)
    if make := getattr(core, CONVERSION, None):
        setattr(core, CONVERSION, lambda described: _Conversion(described, make))


@dataclass(frozen=True)
class _Conversion:
    """A parameter's conversion. Typer's own imports pydantic; most parameters are not given, or texts, flags, files."""

    described: Any
    make: Callable[[Any], Any]

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        annotation = self.described.annotation
        if annotation in (str, bool) and isinstance(value, annotation):
            return value
        if annotation == list[Path] and all(map(may_be_read, value)):
            return [Path(path) for path in value]
        return self._made.coerce(value, param=param, ctx=ctx)

    @cached_property
    def _made(self) -> Any:
        return self.make(self.described)
