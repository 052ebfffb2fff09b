"""Configuration of the guest's kernel: the lines of `guest.config`, and all traffic control and TCP of its tree."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from ackclock.dataset import folders
from ackclock.errors import AckclockError, InputError

HERE = Path(__file__).parent
FRAGMENT = HERE / "guest.config"
HEADER = HERE / "same_everywhere.h"
MODULES = HERE / "modules"

#: Kconfig files of a tree, and the options in them that are asked for, each by a pattern of its name.
ALL_OF = {
    "net/ipv4/Kconfig": r"TCP_CONG_\w+",
    "net/sched/Kconfig": r"NET_(?:SCH|CLS|ACT|EMATCH)_\w+",
}


def required_options() -> dict[str, bool]:
    """The options that a guest must have (true) or must not have."""
    lines = FRAGMENT.read_text(encoding="utf-8").splitlines()
    pairs = [line.removeprefix("CONFIG_").split("=") for line in lines if line.startswith("CONFIG_")]
    return {name: value != "n" for name, value in pairs}


def offered(source: Path) -> list[str]:
    """All congestion controls, disciplines, classifiers and actions of a tree, by their options' names."""
    return [
        name
        for file, pattern in ALL_OF.items()
        for name in re.findall(rf"^config ({pattern})$", (source / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]


def all_lines(source: Path) -> str:
    """The configuration to start from; what is not in it is off."""
    fragment = FRAGMENT.read_text(encoding="utf-8")
    more = [name for name in offered(source) if name not in required_options()]
    return fragment + "".join(f"CONFIG_{name}=y\n" for name in more)


def settings(made: str) -> dict[str, str]:
    """The options that are on in the text of a `.config`."""
    return dict(re.findall(r"^CONFIG_(\w+)=(.*)$", made, re.MULTILINE))


def check(made: dict[str, str], version: str) -> None:
    """Raises `InputError` if a tree's configuration lacks what is wanted, or has what must not be there."""
    wrong = [name for name, on in required_options().items() if (name in made) != on]
    if wrong:
        raise InputError(
            f"Linux {version}: found no way to set {', '.join(f'CONFIG_{name}' for name in wrong)} as guest.config "
            "wants; expected a tree that has these options (6.1 does)"
        )


def disciplines(made: dict[str, str]) -> list[str]:
    """Names of the queue disciplines of a configuration, as options spell them: `fq_codel`."""
    return sorted(name[8:].lower() for name, value in made.items() if name.startswith("NET_SCH_") and value == "y")


@functools.cache
def inputs_hash() -> str:
    """A short hash of all that we put into a guest besides Linux itself."""
    digest = hashlib.sha256()
    for path in [FRAGMENT, HEADER, *module_files()]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def module_files() -> list[Path]:
    """Sources of our kernel modules: the C files, headers and the Kbuild file in `modules/`."""
    kinds = ("*.c", "*.h", "Kbuild", "Makefile")
    found = sorted(path for kind in kinds for path in MODULES.glob(kind))
    return found if any(path.suffix == ".c" for path in found) else []


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
        for file in (tree / "Makefile", objects / ".config", HEADER):
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
