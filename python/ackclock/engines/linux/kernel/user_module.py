"""A congestion control that the user brings (`--module FILE`): a C file, for a guest's kernel or for the live one.

`mine.c` is compiled as a module of a guest's kernel, against what the guest keeps of its tree, and inserted when a
guest starts. `mine.bpf.c` is compiled as a BPF program of the kernel that is running, and registered while runs go on.
Only the command line brings one: no scenario names what is executed.

Its name is that of its `struct tcp_congestion_ops`, as written in the file, or else the file's own. What has a spec is
told its parameters as the spec's table `[linux.parameters]` says; what has none has no parameters.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from ackclock import algorithms
from ackclock.algorithms import AlgorithmSpec
from ackclock.algorithms.kernel import Absent, Fixed, KernelParameter, Linux
from ackclock.dataset import folders
from ackclock.engines.linux.kernel import bpf, bundled_modules, cache, config
from ackclock.errors import InputError
from ackclock.input.fields import shown
from ackclock.plan import Plan
from ackclock.system import files, signals
from ackclock.system.files import readable

#: File name endings of the two kinds of modules.
BPF, C = ".bpf.c", ".c"

#: A source has fewer bytes, and so has a header.
MAX_BYTES = 1 << 20

#: The kernel's own limit is TCP_CA_NAME_MAX.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,14}")

#: The name in a `tcp_congestion_ops`, and a header beside the file.
NAMED = re.compile(r'struct\s+tcp_congestion_ops\s+\w+[^;{]*=\s*\{.*?\.name\s*=\s*"([^"]*)"', re.DOTALL)
INCLUDED = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

#: Message of modpost on a function that the kernel lacks, or does not export to modules.
UNDEFINED = re.compile(r'^ERROR: modpost: ("\w+") .*undefined!$', re.MULTILINE)

TOOLS = {"gcc": "gcc", "make": "make", "ld": "binutils", "tar": "tar"}


@dataclass(frozen=True, slots=True)
class Module:
    """A module's name, its file, and the SHA-256 of the file and the headers beside it that it includes."""

    name: str
    file: str
    sha256: str

    @property
    def is_bpf(self) -> bool:
        """Return True if it is for the live kernel."""
        return self.file.endswith(BPF)


def read(path: Path) -> Module:
    """Read a module's file. Raises `InputError` for one that cannot be read, or whose name does not end in `.c`."""
    if not path.name.endswith(C):
        raise InputError(f"--module: found {readable(path)}; expected a file that ends in .c, .bpf.c or .py")
    texts = sources(path)
    found = NAMED.search(texts[path.name])
    name = found[1] if found else path.name.removesuffix(BPF if path.name.endswith(BPF) else C)
    if not NAME.fullmatch(name):
        raise InputError(
            f"--module: {readable(path)}: found the name {shown(name)}; expected up to 15 letters or digits"
        )
    digest = hashlib.sha256()
    for each, text in texts.items():
        digest.update(f"{each}\0{text}\0".encode())
    return Module(name, str(path), digest.hexdigest())


def sources(path: Path) -> dict[str, str]:
    """The file's text and those of the headers beside it that it includes, by their names."""
    found: dict[str, str] = {}
    waiting = [path.name]
    while waiting:
        name = waiting.pop()
        beside = path.parent / name
        if name in found or "/" in name or (name != path.name and not beside.is_file()):
            continue
        found[name] = files.read_bytes(beside, MAX_BYTES).decode("utf-8", "replace")
        waiting += INCLUDED.findall(found[name])
    return found


def bring(module: Module) -> None:
    """From now on scenarios may name it. Raises `InputError` for the name of what the kernel has anyway."""
    known = {spec.name: spec for spec in algorithms.every() if spec.family == "congestion"}
    spec = known.get(module.name)
    if spec is not None and spec.linux is not None and not spec.linux.user_supplied:
        raise InputError(
            f"--module: {readable(module.file)}: found the name {shown(module.name)}, which is {spec.title}; "
            "expected a name that is not taken"
        )
    algorithms.bring(_spec(module) if spec is None else _with_defaults(spec))


def _spec(module: Module) -> AlgorithmSpec:
    about = f"The algorithm of {Path(module.file).name}, without a spec."
    linux = Linux(user_supplied=True)
    return AlgorithmSpec(name=module.name, title=module.name, summary=about, family="congestion", linux=linux)


def _with_defaults(spec: AlgorithmSpec) -> AlgorithmSpec:
    """A spec that does not say how a module is told of its parameters: they must have their defaults."""
    if spec.linux is not None:
        return spec
    fixed: dict[str, KernelParameter] = {
        name: Absent(given=False) if parameter.default is None else Fixed(fixed=parameter.default)
        for name, parameter in spec.parameters.items()
    }
    return replace(spec, linux=Linux(user_supplied=True, parameters=fixed))


def of(plan: Plan) -> Module | None:
    """The module of a plan, if it has one."""
    found: Mapping[str, str] | None = plan.options["linux"].get("module")
    return Module(**found) if found else None


def option(module: Module) -> dict[str, str]:
    """Return the module as a plan stores it."""
    return asdict(module)


def missing_modules(plan: Plan) -> Iterator[str]:
    """The controls of a plan that come with a module only, where none is given."""
    module = of(plan)
    for kind in sorted({group.congestion.kind for group in plan.groups if group.congestion}):
        linux = algorithms.spec("congestion", kind).linux
        if linux is not None and linux.user_supplied and (module is None or module.name != kind):
            yield kind


def values(plan: Plan, module: Module) -> dict[str, int]:
    """The module's parameters in a plan, as its code counts them."""
    found = [group.congestion for group in plan.groups if group.congestion and group.congestion.kind == module.name]
    return bundled_modules.values(module.name, found[0].parameters) if found else {}


def check(module: Module, kernel: str) -> None:
    """Raises `InputError` for a file that is not for this kernel (as in `[linux] kernel`), and for missing tools."""
    file = readable(module.file)
    if kernel == "hosts":
        raise InputError(f"--module: found {file} with the kernels of a testbed; expected a guest, or --kernel live")
    if module.is_bpf != (kernel == "live"):
        found, expected = ("a BPF program", "--kernel live") if module.is_bpf else ("a module", "a guest, or a .bpf.c")
        raise InputError(f"--module: {file}: found {found} with --kernel {kernel}; expected {expected}")
    check_tools(bpf.PACKAGES if module.is_bpf else TOOLS, "--module")


def check_tools(needed: Mapping[str, str], whose: str) -> None:
    """Raises `InputError` for programs that this machine lacks."""
    missing = {package for tool, package in needed.items() if not bpf.tool_path(tool)}
    if missing:
        raise InputError(f"{whose}: found no {', '.join(sorted(missing))}; apt install them")


def compiled(module: Module, kernel: Path) -> Path:
    """The module for a guest's kernel; what was compiled before is kept. Raises `InputError` with its mistakes."""
    packed = kernel.parent / config.PACKED
    if not packed.is_file():
        raise InputError(f"{readable(kernel)}: found no {config.PACKED} beside it; `ackclock kernel build` makes it")
    sums = hashlib.sha256((module.sha256 + hashlib.sha256(kernel.read_bytes()).hexdigest()).encode())
    kept = cache.home() / "modules" / f"{module.name}-{sums.hexdigest()[:16]}.ko"
    if not kept.is_file():
        folders.atomic_write(kept, partial(_compile, module, packed))
    return kept


def _compile(module: Module, packed: Path, target: Path) -> None:
    """Makes the module beside an unpacked tree; messages name the user's file."""
    with folders.temporary_folder() as work:
        (tree := work / "tree").mkdir()
        config.unpack(packed, tree)
        (folder := work / "module").mkdir()
        for name, text in sources(Path(module.file)).items():
            (folder / name).write_text(
                f'#line 1 "{module.file}"\n{text}' if name.endswith(C) else text, encoding="utf-8"
            )
        (folder / Path(module.file).name).rename(folder / f"{module.name}.c")
        (folder / "Kbuild").write_text(f"obj-m := {module.name}.o\n", encoding="utf-8")
        include = f"KCFLAGS=-include {tree / config.HEADER.name}"
        _make("make", "-s", "-C", str(tree), "ARCH=um", include, f"M={folder}", "modules")
        shutil.copy(folder / f"{module.name}.ko", target)


def _make(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise InputError(mistakes(done.stdout + done.stderr))


def mistakes(said: str) -> str:
    """The first mistakes that a compiler speaks of, a line each; its last line if there are none."""
    undefined = [
        f"--module: found {name}; expected what the kernel exports to modules" for name in UNDEFINED.findall(said)
    ]
    found = list(dict.fromkeys([*bpf.MISTAKE.findall(said), *undefined]))
    return "\n".join(found[: bpf.MAX_MISTAKES] or said.strip().splitlines()[-1:] or ["the compiler gave no reason"])


@contextmanager
def loaded(plan: Plan) -> Iterator[None]:
    """While a plan's runs go on: its BPF program, if it brings one, is in the live kernel."""
    module = of(plan)
    if module is None or not module.is_bpf:
        yield
        return
    with folders.temporary_folder() as folder:
        number = bpf.register(Path(module.file), values(plan, module), folder)
        with signals.cleanup(partial(bpf.unregister, number)):
            yield
