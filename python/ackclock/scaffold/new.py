"""Templates for `ackclock new`: a Rust file, a spec, a line in the list, a scenario, C for real kernels, C for a stack.

Each template works as it is, so that every change can be tried at once: the congestion control algorithm is Reno with
another decrease, the queue discipline a FIFO with a marking threshold, the transport stack a toy.

An algorithm may begin in Python (`ackclock new control --from FILE`). Its spec has the prototype's parameters; their
ranges and sources are still to be written. Its Rust file has the source of each Python method above the function that
is to replace it; until then it is Reno.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from ackclock import algorithms, stacks
from ackclock.algorithms import AlgorithmSpec
from ackclock.dataset import folders
from ackclock.errors import InputError
from ackclock.input.fields import shown
from ackclock.system import signals
from ackclock.system.files import readable

#: Rust's type of a parameter.
TYPES = {"boolean": "bool", "integer": "i64", "number": "f64"}

#: Methods with a function in the Rust file; the others stand above all of these.
PLACED = ("on_ack", "on_loss", "on_timeout")


def rust_values(spec: AlgorithmSpec, algorithm: type[Any], file: str) -> dict[str, str]:
    """Return what the template `prototype.rs` leaves open."""
    methods = dict(_methods(algorithm))
    defaults = {name: parameter.default for name, parameter in spec.parameters.items()}
    fields = [f"    /// {one.description}.\n    {name}: {TYPES[one.kind]},\n" for name, one in spec.parameters.items()]
    return {
        "title": spec.title,
        "summary": spec.summary,
        "file": file,
        "fields": "".join(fields),
        "parameters": json.dumps(defaults),
        "others": "\n//\n".join(text for name, text in methods.items() if name not in PLACED),
        **{name: textwrap.indent(methods.get(name, ""), "    ") for name in PLACED},
    }


def spec_text(spec: AlgorithmSpec, file: str) -> str:
    """Return the TOML file of the spec."""
    import tomli_w

    references = [{"title": f"the prototype {file}"}]
    parameters = {
        name: {"kind": one.kind, "default": one.default, "description": one.description}
        for name, one in spec.parameters.items()
    }
    head = {"name": spec.name, "title": spec.title, "summary": spec.summary}
    values: Mapping[str, Any] = {
        **head,
        **({"ecn": spec.ecn} if spec.ecn else {}),
        "references": references,
        "parameters": parameters,
    }
    return tomli_w.dumps(values)


def _methods(algorithm: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield each method of the class with its source as a comment of Rust."""
    for name, member in vars(algorithm).items():
        if inspect.isfunction(member):
            source = textwrap.dedent(inspect.getsource(member)).rstrip()
            yield name, "\n".join(f"// {line}".rstrip() for line in source.splitlines())


TEMPLATES = Path(__file__).parent / "templates"

#: The kernel keeps 15 characters of a congestion control's name (TCP_CA_NAME_MAX) and of a qdisc's (IFNAMSIZ).
NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")

#: Keywords of Rust, which cannot name a module.
RUST_KEYWORDS = """
abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in
let loop macro match mod move mut override priv pub ref return self static struct super trait true try type typeof
unsafe unsized use virtual where while yield
"""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of algorithm: the word after `ackclock new`, its crate, and where its files go in a checkout."""

    command: str
    crate: str
    #: The folder of Rust files, and the file with the macro that lists them.
    sources: Path
    list_file: Path
    macro: str
    #: The folder of specs.
    specs: Path
    #: Template → path in the checkout.
    templates: Mapping[str, str]


CONTROL = Family(
    command="control",
    crate="ackclock-congestion",
    sources=Path("crates/ackclock-congestion/src"),
    list_file=Path("crates/ackclock-congestion/src/lib.rs"),
    macro="controllers",
    specs=Path("python/ackclock/algorithms/congestion"),
    templates={
        "control.rs": "crates/ackclock-congestion/src/$name.rs",
        "control.toml": "python/ackclock/algorithms/congestion/$name.toml",
        "scenario.toml": "scenarios/$name.toml",
        "control.c": "modules/$name.c",
        "control.bpf.c": "modules/$name.bpf.c",
    },
)

QUEUE = Family(
    command="queue",
    crate="ackclock-sim",
    sources=Path("crates/ackclock-sim/src/queue"),
    list_file=Path("crates/ackclock-sim/src/queue.rs"),
    macro="disciplines",
    specs=Path("python/ackclock/algorithms/queue"),
    templates={
        "queue.rs": "crates/ackclock-sim/src/queue/$name.rs",
        "queue.toml": "python/ackclock/algorithms/queue/$name.toml",
        "queue-scenario.toml": "scenarios/$name.toml",
    },
)


@dataclass(frozen=True, slots=True)
class File:
    """A file of a checkout with its whole text; `added` is the new part of a file that exists."""

    path: Path
    text: str
    added: str = ""

    def write(self, path: Path) -> None:
        """Write the text to another path."""
        path.write_text(self.text, encoding="utf-8")


def find_checkout(given: Path | None) -> Path:
    """Return the folder of a checkout: the given one, or the nearest around this folder. Raises `InputError`."""
    start = Path.cwd() if given is None else given.absolute()
    for folder in (start, *start.parents) if given is None else (start,):
        if (folder / CONTROL.list_file).is_file() and (folder / CONTROL.specs).is_dir():
            return folder
    place, hint = (start, "; --checkout DIR names one") if given is None else (given, "")
    raise InputError(
        f"{readable(place)}: found no source checkout of ackclock; expected a folder with {CONTROL.list_file}{hint}"
    )


def render(family: Family, checkout: Path, name: str, texts: Mapping[str, str] | None = None) -> tuple[File, ...]:
    """Return the files that a new algorithm needs; nothing is written yet. `texts` replace templates.

    Raises `InputError` for a name that is invalid or taken, and for a list in another form.
    """
    _check_name(name)
    values = {"name": name, "title": name.replace("_", " ").title()}
    files = []
    for template, path in family.templates.items():
        text = (texts or {}).get(template) or _filled(template, values)
        file = File(Path(Template(path).substitute(values)), text)
        if (checkout / file.path).exists():
            raise InputError(f"{shown(name)}: found {file.path}; expected a name that is not taken")
        files.append(file)
    return (*files, File(family.list_file, _extended_list(family, checkout, name), added=f"    {name},\n"))


def render_prototype(checkout: Path, path: Path) -> tuple[File, ...]:
    """Return the files of a congestion control algorithm that begin with its prototype in Python.

    Raises `InputError` as `render`, and for a file without a prototype.
    """
    from ackclock.algorithms import prototype

    name, _ = prototype.load(path)
    algorithm, spec = prototype.algorithm(name), algorithms.spec("congestion", name)
    texts = {
        "control.rs": _filled("prototype.rs", rust_values(spec, algorithm, path.name)),
        "control.toml": spec_text(spec, path.name),
    }
    return render(CONTROL, checkout, name, texts)


#: Template of a transport stack → path in its folder. The one in C includes the header, which is added.
STACK_IN_C = {"stack.c": "$name.c", "stack-scenario.toml": "$name.toml"}
STACK_OF_QUINN = {
    "quinn-lib.rs": "src/lib.rs",
    "quinn-controller.rs": "src/controller.rs",
    "quinn-crypto.rs": "src/crypto.rs",
    "quinn-Cargo.toml": "Cargo.toml",
    "quinn-Cargo.lock": "Cargo.lock",
    "stack-scenario.toml": "$name.toml",
}

#: Shared library of the crate, in its folder.
QUINN_LIBRARY = "target/release/libstack.so"


def render_stack(folder: Path, name: str, *, quinn: bool = False) -> tuple[File, ...]:
    """Return the files of a new transport stack, by their paths in a folder; nothing is written yet.

    It is a toy in C or, with `quinn`, a crate with the QUIC stack quinn-proto. Raises `InputError` for an invalid name,
    and for files that exist.
    """
    if not stacks.NAME.fullmatch(name) or name == stacks.BUILT_IN:
        expected = f"up to 31 of a–z, 0–9, _ and -, a letter first, such as mine, and not {stacks.BUILT_IN}"
        raise InputError(f"NAME: found {shown(name)}; expected {expected}")
    values = {
        "name": name,
        "title": name.replace("_", " ").title(),
        "library": QUINN_LIBRARY if quinn else f"{name}.so",
    }
    templates = STACK_OF_QUINN if quinn else STACK_IN_C
    texts = {Template(path).substitute(values): _filled(template, values) for template, path in templates.items()}
    if not quinn:
        texts[stacks.HEADER.name] = stacks.HEADER.read_text(encoding="utf-8")
    if taken := [path for path in texts if (folder / path).exists()]:
        raise InputError(f"{readable(folder / taken[0])}: found this file; expected a folder without it")
    return tuple(File(Path(path), text) for path, text in texts.items())


def _filled(template: str, values: Mapping[str, str]) -> str:
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(values)


def write(checkout: Path, files: tuple[File, ...]) -> None:
    """Write all files, or none: if one cannot be written (`InputError`), the others are restored."""
    before = {path: path.read_bytes() for file in files if (path := checkout / file.path).exists()}
    with signals.defer_signals():
        try:
            for file in files:
                folders.atomic_write(checkout / file.path, file.write)
        except InputError:
            for path in (checkout / file.path for file in files):
                if path in before:
                    path.write_bytes(before[path])
                else:
                    with suppress(OSError):  # it was not written yet
                        path.unlink()
            raise


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or name in RUST_KEYWORDS.split():
        raise InputError(
            f"NAME: found {shown(name)}; expected up to 15 of a–z, 0–9 and _, a letter first and no keyword of Rust, "
            "such as my_reno"
        )
    if specs := [spec for spec in algorithms.find(name) if not spec.in_python]:
        raise InputError(f"NAME: found {shown(name)}, which is {specs[0].title}; expected a name that is not taken")


def _extended_list(family: Family, checkout: Path, name: str) -> str:
    """Return the text of the list's file with the name among the others, sorted."""
    path = checkout / family.list_file
    text = path.read_text(encoding="utf-8")
    match = re.search(rf"(?<=^{family.macro}! \{{\n)(?:    \w+,\n)+(?=\}})", text, re.MULTILINE)
    if match is None:
        raise InputError(f'{readable(path)}: found no list "{family.macro}! {{"; expected the one of {family.crate}')
    lines = "".join(f"    {each},\n" for each in sorted([*re.findall(r"\w+", match[0]), name]))
    return text[: match.start()] + lines + text[match.end() :]
