"""Configuration of the guest's kernel: the lines of `guest.config`, and all traffic control and TCP of its tree."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

from ackclock.errors import InputError

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
