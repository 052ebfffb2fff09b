"""Packages that can be called: `ackclock.capture("slow.pcap")`.

A public function has the name of a package where the package is all about it. The import system sets that name to the
package whenever something in it is imported, so the package itself is what can be called.

Used by `capture`, `doctor`, `scenario` and `shell`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from inspect import Signature, signature
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    @property
    def __signature__(self) -> Signature:
        return signature(self._function())

    def _function(self) -> Callable[..., Any]:
        module, name = self._called
        return getattr(import_module(module), name)  # type: ignore[no-any-return]

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the package's function."""
        return self._function()(*given, **named)


def make_callable(package: str, module: str, name: str) -> None:
    """Make an imported package callable; the function `name` of `module` is imported when it is called first."""
    this = sys.modules[package]
    this.__class__ = _Package
    vars(this)["_called"] = module, name
