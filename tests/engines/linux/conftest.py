"""What the tests of the engine linux share: somebody who is not root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

NOBODY = 65534


@dataclass(frozen=True)
class User:
    """Somebody who is not root, and a folder of theirs."""

    prefix: tuple[str, ...]
    home: Path

    def python(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """What this Python does with some words, as the user."""
        command = [*self.prefix, sys.executable, *map(str, words)]
        package = Path(__file__).parents[3] / "python"
        own = {"HOME": str(self.home), "TMPDIR": str(self.home), "PYTHONPATH": str(package)}
        done = subprocess.run(command, env=os.environ | own, cwd=self.home, capture_output=True, text=True, check=False)
        if check:
            assert done.returncode == 0, done.stderr
        return done


@pytest.fixture
def ordinary_user() -> Iterator[User]:
    """Whoever runs the tests; for root, nobody, if nobody may run this Python."""
    is_root = os.getuid() == 0
    words = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    home = Path("/tmp") / f"ackclock-test-{os.getpid()}"
    home.mkdir()
    try:
        if is_root:
            os.chown(home, NOBODY, NOBODY)
        user = User(("setpriv", *words, "env") if is_root else (), home)
        if user.python("-c", "import ackclock", check=False).returncode:
            pytest.skip("an ordinary user may not run this Python")
        yield user
    finally:
        shutil.rmtree(home)
