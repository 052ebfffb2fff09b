"""Headers that a user's module is compiled with: the part of a kernel's tree that its makefiles need.

The same files as in Debian's linux-headers, packed: makefiles, headers, scripts and what they were compiled to, the
configuration. The symbols that a module may use are read off the guest itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ackclock.dataset import folders
from ackclock.engines.linux.kernel import config
from ackclock.errors import AckclockError

#: Its name in a guest's folder.
PACKED = "headers.tar.gz"

#: Folders of which all is taken; and those of which makefiles and headers are.
COMPLETE = ("include", "scripts")
PARTIAL = ("arch/um", "arch/x86")
BUILD_FILES = re.compile(r"(Makefile|Kbuild|Kconfig|Platform).*|.*\.h")

#: Object files and the board descriptions of other architectures, which no module needs.
UNWANTED = shutil.ignore_patterns("*.o", "*.cmd", "*.a", "dtc")


def pack(tree: Path, objects: Path, kernel: Path, packed: Path) -> None:
    """Packs them, of a source tree and the folder of objects that was made of it. Raises `AckclockError`."""
    with folders.temporary_folder() as new:
        for root in (tree, objects):
            for name in COMPLETE:
                _copy(root / name, new / name)
            for name in PARTIAL:
                _copy_some(root, name, new)
        for file in (tree / "Makefile", objects / ".config", config.HEADER):
            shutil.copy(file, new)
        write_symbols(kernel, new)
        _run("tar", "-czf", str(packed), "-C", str(new), ".")


def unpack(packed: Path, folder: Path) -> None:
    """Unpacks them into a folder. Raises `AckclockError`."""
    _run("tar", "-xzf", str(packed), "-C", str(folder))


def write_symbols(kernel: Path, folder: Path) -> None:
    """Writes `Module.symvers`: the symbols that the kernel lets modules use, as `modpost` reads them."""
    names = re.findall(r" __ksymtab_(\w+)$", _run("nm", str(kernel)), re.MULTILINE)
    lines = (f"0x00000000\t{name}\tvmlinux\tEXPORT_SYMBOL\t\n" for name in names)
    (folder / "Module.symvers").write_text("".join(lines), encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=UNWANTED, dirs_exist_ok=True)


def _copy_some(root: Path, name: str, target: Path) -> None:
    for folder, _, names in os.walk(root / name):
        inside = Path(folder).relative_to(root)
        for wanted in filter(BUILD_FILES.fullmatch, names):
            (target / inside).mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(folder) / wanted, target / inside / wanted, follow_symlinks=False)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AckclockError(f"{command[0]}: {(done.stderr.splitlines() or ['it failed'])[-1]}")
    return done.stdout
