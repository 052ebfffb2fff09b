"""Source of Linux: Debian's package `linux-source-*`, or a tree of the user's."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from ackclock.errors import AckclockError, InputError
from ackclock.input.fields import shown

Report = Callable[[str], None]


def check(given: Path | None) -> None:
    """Raises `InputError` unless `given` is a tree of Linux, or a package or archive with one, or nothing."""
    if given is None or (given.is_file() and re.search(r"\.(deb|tar(\.\w+)?)$", given.name)):
        return
    if not (given / "Kconfig").is_file() or not (given / "arch" / "um").is_dir():
        raise InputError(f"--source {given}: found no Linux there; expected a source tree, a .deb or a .tar.xz of one")
    if (given / ".config").exists() or (given / "include" / "config").exists():
        raise InputError(
            f"--source {given}: found a tree in which a kernel was built; expected a clean one (make ARCH=um mrproper)"
        )


def tree(given: Path | None, work: Path, say: Report, series: str | None = None) -> Path:
    """A source tree: the given one as it is, else Debian's of a series, unpacked below `work`. `AckclockError`."""
    if given is not None and given.is_dir():
        return given.absolute()
    if given is None:
        say("fetching Linux's source")
        given = _fetched(work, series)
    say("unpacking Linux's source")
    return _unpacked(given.absolute(), work)


def _fetched(work: Path, series: str | None) -> Path:
    """The package's file. Root asks apt anew if it knows no package, or one that is no longer there."""
    try:
        _download(work, series)
    except AckclockError:
        if os.geteuid():
            raise
        _run(["apt-get", "update", "-q"], work)
        _download(work, series)
    return next(work.glob("linux-source-*.deb"))


def _download(work: Path, series: str | None) -> None:
    known = _run(["apt-cache", "search", "--names-only", r"^linux-source-[0-9.]+$"], work)
    own = (
        _run(["apt-cache", "depends", "linux-source"], work) if "linux-source" in _run(_PACKAGES, work).split() else ""
    )
    _run(["apt-get", "download", "-q", _chosen(known, own, series)], work)


#: Prints the package whose dependency is the release's own kernel, if there is one.
_PACKAGES = ["apt-cache", "pkgnames", "linux-source"]


def _chosen(known: str, own: str, series: str | None = None) -> str:
    """The package of a series; else that of the release's own kernel, or the newest of those that apt knows."""
    names: list[str] = re.findall(r"^linux-source-[0-9.]+", known, re.MULTILINE)
    if series is not None and f"linux-source-{series}" not in names:
        there = ", ".join(name.removeprefix("linux-source-") for name in sorted(names, key=_numbers))
        raise InputError(f"--series: found {shown(series)}; expected one that apt knows: {there or 'it knows none'}")
    if series is not None:
        return f"linux-source-{series}"
    if depends := re.search(r"Depends: (linux-source-[0-9.]+)", own):
        return depends[1]
    if not names:
        raise InputError(
            "apt knows no package linux-source-*: `apt-get update` as root may help; "
            "else --source DIR takes any tree of Linux"
        )
    return max(names, key=_numbers)


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _unpacked(archive: Path, work: Path) -> Path:
    if archive.suffix == ".deb":
        _run(["dpkg-deb", "-x", str(archive), "package"], work)
        inner = sorted((work / "package").glob("usr/src/linux-source-*.tar.*"))
        if not inner:
            raise InputError(f"{archive}: found no usr/src/linux-source-*.tar.xz in it; expected Debian's linux-source")
        archive = inner[0]
    folder = work / "source"
    folder.mkdir()
    _run(["tar", "-xf", str(archive), "--strip-components=1", "-C", str(folder)], work)
    if not (folder / "arch" / "um").is_dir():
        raise InputError(f"{archive}: found no Linux in it; expected a source tree with arch/um")
    return folder


def _run(command: list[str], work: Path) -> str:
    done = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("W:")]
        reason = lines[-1] if lines else f"status {done.returncode}"
        raise AckclockError(f"{' '.join(command[:2])} failed: {reason}")
    return done.stdout
