"""Temporary folders that nothing leaves behind."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from types import TracebackType

from ackclock.system import signals


class Folder:
    """A new, empty folder. It is removed at the end of a `with` block, with this object, or when a signal comes.

    `name` tells what it is for, `parent` where it is (by default where temporary files are); it is its owner's alone.
    """

    def __init__(self, name: str = "ackclock-", parent: Path | None = None, suffix: str = "") -> None:
        """Raises `OSError` if it cannot be made."""
        with signals.making() as register:
            self.path = Path(tempfile.mkdtemp(suffix, name, parent))
            self._end = weakref.finalize(self, _remove, self.path)
            register(self.path, self._end)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.remove()

    def remove(self) -> None:
        """Removes it with all that is in it; once is enough."""
        self._end()


def _remove(path: Path) -> None:
    """Also where another thread goes on to write into it."""
    for _ in range(10):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            break
    signals.forget(path)
