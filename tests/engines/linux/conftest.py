"""Fixtures of the engine linux: an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

UNPRIVILEGED_UID = 65534


@dataclass(frozen=True)
class User:
    """Somebody who is not root, and a folder of theirs."""

    prefix: tuple[str, ...]
    home: Path

    def python(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run this Python with some arguments as the user."""
        command = [*self.prefix, sys.executable, *map(str, words)]
        package = Path(__file__).parents[3] / "python"
        own = {"HOME": str(self.home), "TMPDIR": str(self.home), "PYTHONPATH": str(package)}
        done = subprocess.run(command, env=os.environ | own, cwd=self.home, capture_output=True, text=True, check=False)
        if check:
            assert done.returncode == 0, done.stderr
        return done


#: Opens folders of root's that hold this Python, in mounts of its own: `… FOLDER … -- COMMAND …`.
OPENED = """
set -e
while [ "$1" != -- ]; do
    mkdir -p hold
    mount --rbind "$1" hold
    mount -t tmpfs -o mode=755 tmpfs "$1"
    for child in hold/* hold/.[!.]*; do
        [ ! -d "$child" ] || { mkdir "$1/${child#hold/}"; mount --rbind "$child" "$1/${child#hold/}"; }
    done
    shift
done
shift
exec "$@"
"""


def closed_folders() -> list[Path]:
    """The folders above this Python and its packages that others may not enter."""
    used = (Path(sys.executable).resolve(), Path(sys.prefix).resolve(), Path(__file__).resolve())
    above = dict.fromkeys(folder for path in used for folder in reversed(path.parents))
    return [folder for folder in above if not folder.stat().st_mode & 0o001]


@pytest.fixture
def ordinary_user() -> Iterator[User]:
    """Whoever runs the tests; for root, nobody."""
    is_root = os.getuid() == 0
    words = ("setpriv", f"--reuid={UNPRIVILEGED_UID}", f"--regid={UNPRIVILEGED_UID}", "--clear-groups", "env")
    opened = ("unshare", "--mount", "sh", "-c", OPENED, "sh", *map(str, closed_folders()), "--")
    home = Path("/tmp") / f"ackclock-test-{os.getpid()}"
    home.mkdir()
    try:
        if is_root:
            os.chown(home, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
        user = User((*opened, *words) if is_root else (), home)
        if is_root and subprocess.run([*opened, "true"], cwd=home, check=False).returncode:
            pytest.skip("root may not mount here, so nobody cannot be given this Python")
        user.python("-c", "import ackclock")
        yield user
    finally:
        shutil.rmtree(home)
