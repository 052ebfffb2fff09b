"""What `ackclock new control` writes: the Rust file, the card, a line in the list, a scenario, C for real kernels.

What it writes works as it stands, a Reno with another decrease, so that every change can be tried at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template

from ackclock import algorithms
from ackclock.dataset import folders
from ackclock.errors import InputError
from ackclock.input.fields import shown
from ackclock.scaffold.checkout import CARDS, LIST
from ackclock.system import signals
from ackclock.system.files import readable

TEMPLATES = Path(__file__).parent / "templates"

#: Template → where its text goes in a checkout.
PLACES = {
    "control.rs": f"{LIST.parent}/$name.rs",
    "control.toml": f"{CARDS}/$name.toml",
    "scenario.toml": "scenarios/$name.toml",
    "control.c": "modules/$name.c",
    "control.bpf.c": "modules/$name.bpf.c",
}

#: The kernel keeps 15 characters of a congestion control's name (TCP_CA_NAME_MAX).
NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")

#: Words of Rust that no module can have for a name.
RUST = """
abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in
let loop macro match mod move mut override priv pub ref return self static struct super trait true try type typeof
unsafe unsized use virtual where while yield
"""

#: The list and its lines.
LISTED = re.compile(r"(?<=^controllers! \{\n)(?:    \w+,\n)+(?=\})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Written:
    """A file of a checkout, by its path there, and all of its text; of one that was there, what is new."""

    path: Path
    text: str
    added: str = ""

    def write(self, path: Path) -> None:
        """Writes it elsewhere."""
        path.write_text(self.text, encoding="utf-8")


def control(checkout: Path, name: str) -> tuple[Written, ...]:
    """What a new control needs in a checkout; nothing is written yet.

    Raises `InputError` for a name that cannot be one or is taken, and for a list in another form.
    """
    _check_name(name)
    values = {"name": name, "title": name.replace("_", " ").title()}
    made = [Written(Path(_filled(place, values)), _filled(_template(file), values)) for file, place in PLACES.items()]
    for each in made:
        if (checkout / each.path).exists():
            raise InputError(f"{shown(name)}: found {each.path}; expected a name that is not taken")
    return (*made, Written(LIST, _listed(checkout / LIST, name), added=f"    {name},\n"))


def write(checkout: Path, files: tuple[Written, ...]) -> None:
    """Writes all files, or none: what is there already goes again if one cannot be written (`InputError`)."""
    before = {path: path.read_bytes() for each in files if (path := checkout / each.path).exists()}
    with signals.whole():
        try:
            for each in files:
                folders.atomic_write(checkout / each.path, each.write)
        except InputError:
            _put_back(checkout, files, before)
            raise


def _put_back(checkout: Path, files: tuple[Written, ...], before: dict[Path, bytes]) -> None:
    for path in (checkout / each.path for each in files):
        if path in before:
            path.write_bytes(before[path])
        else:
            with suppress(OSError):  # it was never there
                path.unlink()


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or name in RUST.split():
        raise InputError(
            f"NAME: found {shown(name)}; expected up to 15 of a–z, 0–9 and _, a letter first and no word of Rust's, "
            "such as my_reno"
        )
    if found := algorithms.find(name):
        raise InputError(f"NAME: found {shown(name)}, which is {found[0].title}; expected a name that is not taken")


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _filled(text: str, values: dict[str, str]) -> str:
    return Template(text).substitute(values)


def _listed(path: Path, name: str) -> str:
    """The list's file with the control among the others, in the order of their names."""
    text = path.read_text(encoding="utf-8")
    found = LISTED.search(text)
    if found is None:
        raise InputError(f'{readable(path)}: found no list "controllers! {{"; expected the one of ackclock-congestion')
    return text[: found.start()] + "".join(_sorted(found[0], name)) + text[found.end() :]


def _sorted(lines: str, name: str) -> Iterator[str]:
    return (f"    {each},\n" for each in sorted([*re.findall(r"\w+", lines), name]))
