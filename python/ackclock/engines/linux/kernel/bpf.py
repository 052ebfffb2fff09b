"""Our congestion controls in the kernel that is running, as BPF programs: no module, no reboot, gone on request.

The code is compiled against the kernel's own description of its types (BTF) and registered as a `struct_ops`, which
takes its place among the kernel's congestion controls: for every namespace, until it is unloaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ackclock import algorithms
from ackclock.dataset import folders
from ackclock.engines.linux.kernel import bundled_modules
from ackclock.errors import AckclockError, InputError
from ackclock.input.fields import dotted, nearest, shown

#: The types of the kernel that is running.
BTF = Path("/sys/kernel/btf/vmlinux")

#: Congestion control algorithms that sockets may choose, and the default.
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")

#: Capabilities of this process.
STATUS = Path("/proc/self/status")

#: The Debian package of each tool.
PACKAGES = {"bpftool": "bpftool", "clang": "clang"}

#: The type that a kernel has if BPF programs may be its congestion controls.
STRUCT_OPS = "bpf_struct_ops_tcp_congestion_ops"

CAP_NET_ADMIN, CAP_BPF = 12, 39

#: Lines of a compiler's output that report errors; the first ones are the most useful.
MISTAKE = re.compile(r"^\S[^\n]*:\d+:(?:\d+:)? (?:fatal )?error: [^\n]*", re.MULTILINE)
MAX_MISTAKES = 5


def load(name: str, parameters: Mapping[str, Any]) -> dict[str, int]:
    """Loads a congestion control; returns its parameters as the code counts them.

    Args:
        name: `lincubic` or `accucubic`.
        parameters: some of the spec's, as a scenario writes them (`{"beta": 0.7, "tick": "1ms"}`).

    Raises:
        InputError: an unknown name or parameter, a value out of the spec's range, a name that is loaded already, a
            missing tool or right, or a kernel that cannot.
    """
    values = bundled_modules.values(name, complete(name, parameters))
    if name in loaded():
        raise InputError(f"{name} is loaded already; ackclock kernel unload {name} removes it")
    _require_kernel()
    with folders.temporary_folder() as folder:
        program = _compiled(bundled_modules.FOLDER / f"{name}.c", values, folder)
        _bpftool("struct_ops", "register", str(program))
    return values


def register(source: Path, values: Mapping[str, int], folder: Path) -> int:
    """Compiles a user's program in a folder and registers it; returns its number in the kernel.

    Raises `InputError` for a missing tool or right, and with the compiler's lines for mistakes in it.
    """
    _require_kernel()
    before = _registered()
    _bpftool("struct_ops", "register", str(_compiled(source, values, folder)))
    (number,) = _registered() - before
    return number


def unregister(number: int) -> None:
    """Removes what was registered under this number."""
    _bpftool("struct_ops", "unregister", "id", str(number))


def _registered() -> set[int]:
    """The numbers of all congestion controls that are BPF programs."""
    return {int(each["id"]) for each in json.loads(_bpftool("--json", "struct_ops", "list") or "[]")}


def unload(name: str) -> None:
    """Removes a congestion control; connections that have it keep it until they end.

    Raises `InputError` where it is not loaded or is what new connections get.
    """
    _check_name(name)
    if name not in loaded():
        raise InputError(f"{name} is not loaded; ackclock kernel load {name} loads it")
    if DEFAULT.read_text(encoding="ascii").strip() == name:
        raise InputError(
            f"{name} is the default; first choose another: sysctl -w net.ipv4.tcp_congestion_control=cubic"
        )
    _require_rights()
    _bpftool("struct_ops", "unregister", "name", name)


def loaded() -> tuple[str, ...]:
    """Return which of our congestion control algorithms are registered now."""
    if not AVAILABLE.exists():
        return ()
    available = AVAILABLE.read_text(encoding="ascii").split()
    return tuple(name for name in bundled_modules.NAMES if name in available)


def complete(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters, with the names and units of a plan; raises `InputError` for what the spec does not accept."""
    _check_name(name)
    spec = algorithms.spec("congestion", name)
    try:
        table = spec.table.model_validate({"kind": name, **parameters})
    except ValidationError as error:
        mistakes = (f"{name}: {dotted(detail['loc'])}: {detail['msg']}" for detail in error.errors())
        raise InputError("\n".join(mistakes)) from None
    given = {key: getattr(table, key) for key in table.model_fields_set & spec.parameters.keys()}
    return {spec.key(key): value for key, value in spec.complete(given, getattr(table, "variant", None)).items()}


def _check_name(name: str) -> None:
    if name not in bundled_modules.NAMES:
        raise InputError(f"found {shown(name)}; expected {nearest(name, bundled_modules.NAMES)}")


def _require_kernel() -> None:
    if not BTF.exists():
        raise InputError(f"found no {BTF}; expected a Linux kernel with its types in it (CONFIG_DEBUG_INFO_BTF)")
    _require_rights()


def _require_rights() -> None:
    """Raise `InputError` if this process may not load BPF programs. Root in a container gets bpftool's own message."""
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    rights = int(effective[1], 16) if effective else 0
    if not all(rights >> capability & 1 for capability in (CAP_NET_ADMIN, CAP_BPF)):
        raise InputError("what is in the kernel can be changed by root only (CAP_BPF and CAP_NET_ADMIN); try sudo")


def _compiled(source: Path, values: Mapping[str, int], folder: Path) -> Path:
    """The program for this kernel, with its parameters in it."""
    types = _bpftool("btf", "dump", "file", str(BTF), "format", "c")
    if STRUCT_OPS not in types:
        raise InputError("this kernel has no BPF congestion controls; expected Linux 6.1 or newer with CONFIG_BPF_JIT")
    (folder / "vmlinux.h").write_text(types, encoding="utf-8")
    program = folder / f"{source.stem}.o"
    settings = [f"-D{key.upper()}={value}" for key, value in values.items()]
    options = ["-O2", "-g", "-target", "bpf", "-DBPF_NO_KFUNC_PROTOTYPES", f"-I{folder}", *settings]
    _run([_tool("clang"), *options, "-c", str(source), "-o", str(program)])
    return program


def _bpftool(*arguments: str) -> str:
    return _run([_tool("bpftool"), *arguments])


def _tool(name: str) -> str:
    if (path := tool_path(name)) is None:
        raise InputError(f"found no {name}; apt install {PACKAGES[name]}")
    return path


def tool_path(name: str) -> str | None:
    """Return the path of a tool; None if it is not installed."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin")))


def _run(command: Sequence[str]) -> str:
    """Return the output of a tool. Raises `InputError` with its reason in one line if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    if "bpf/bpf_helpers.h" in done.stderr:
        raise InputError("found no bpf/bpf_helpers.h; apt install libbpf-dev")
    if mistakes := MISTAKE.findall(done.stderr):
        raise InputError("\n".join(mistakes[:MAX_MISTAKES]))
    raise AckclockError(f"{Path(command[0]).name}: {_reason(done.stderr) or f'exit status {done.returncode}'}")


def _reason(text: str) -> str:
    """The first line that speaks of an error, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = (line for line in lines if re.search(r"error|fail", line, re.IGNORECASE))
    return next(errors, lines[-1] if lines else "")
