"""Builds a guest: get the source, configure, compile, start it once, keep it.

The source is Debian's package `linux-source-*`, or a tree of the user's, which is read only (`make O=`). Everything
happens in one temporary folder of the cache, which goes whatever happens; a guest appears there whole or not at all.
What is built does not depend on the day, the user or the host's name.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ackclock.dataset import folders
from ackclock.engines.linux import guest
from ackclock.engines.linux.kernel import cache, config
from ackclock.errors import AckclockError, InputError
from ackclock.input.fields import shown
from ackclock.system import signals

Report = Callable[[str], None]


def check_source(given: Path | None) -> None:
    """Raises `InputError` unless `given` is a tree of Linux, or a package or archive with one, or nothing."""
    if given is None or (given.is_file() and re.search(r"\.(deb|tar(\.\w+)?)$", given.name)):
        return
    if not (given / "Kconfig").is_file() or not (given / "arch" / "um").is_dir():
        raise InputError(f"--source {given}: found no Linux there; expected a source tree, a .deb or a .tar.xz of one")
    if (given / ".config").exists() or (given / "include" / "config").exists():
        raise InputError(
            f"--source {given}: found a tree in which a kernel was built; expected a clean one (make ARCH=um mrproper)"
        )


def source_tree(given: Path | None, work: Path, say: Report, series: str | None = None) -> Path:
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


#: Commands, or files, that a build needs, and the Debian packages that have them.
TOOLS = {
    "gcc": "gcc",
    "ld": "binutils",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl-base",
}
FETCHING = {"apt-get": "apt", "apt-cache": "apt"}
UNPACKING = {"dpkg-deb": "dpkg", "tar": "tar", "xz": "xz-utils"}

#: Objects that are compiled, more or less: for the progress bar alone.
OBJECTS = 1100

#: 8-byte words that the guest keeps of a process's vector registers: 12 KiB.
REGISTER_WORDS = 1536

#: Room that a build needs, in bytes: the source, and what is made of it.
ROOM = 2 << 30

#: The guest that a build starts to see whether it works has this much memory.
TRIAL_MEMORY_BYTES = 128 << 20

#: Command of the trial run in the guest.
TRIAL = ["sh", "-c", "cat /proc/sys/net/ipv4/tcp_available_congestion_control /proc/version >answer"]

Progress = Callable[[float], None]


def build(
    given: Path | None, progress: Progress, say: Report, *, again: bool = False, series: str | None = None
) -> cache.Kept:
    """Makes a guest of a source tree (by default Debian's own, or of a series), or finds that it is there already.

    `progress` is called with the share that is done, `say` with what is done next. Raises `InputError` for a missing
    tool or a source that cannot be used, `AckclockError` if the build fails; then nothing is left but a log.
    """
    check_source(given)
    wanted = given is None and not again
    if wanted and (there := _existing(series)) and _is_complete(there):
        return there
    _check_host(given)
    with folders.write_errors(cache.home()), cache.only_one(say):
        there = _existing(series) if wanted else None
        if there and _is_complete(there):  # made while we waited
            return there
        with _workshop() as work:
            if there:
                return _completed(there, work, say)
            return _made(source_tree(given, work, say, series), work, progress, say, again, beside=series is not None)


def _existing(series: str | None) -> cache.Kept | None:
    """The guest of a series; or the one that a run takes, unless there are only those beside it."""
    if series is not None:
        return cache.of_version(series)
    there = cache.taken(cache.every())
    return None if there is None or there.is_additional else there


def _is_complete(kept: cache.Kept) -> bool:
    """Return True if modules can be compiled for it."""
    return (kept.folder / config.PACKED).is_file()


def _completed(kept: cache.Kept, work: Path, say: Report) -> cache.Kept:
    """Adds what modules are compiled against. A guest that cannot have it is good for all else, so that it stays."""
    try:
        series = ".".join(kept.version.split(".")[:2]) if kept.is_additional else None
        make = Make(source_tree(None, work, say, series), work / "objects", work / "build.log")
        if (version := make.version()) != kept.version:
            raise AckclockError(f"Debian has Linux {version}; `ackclock kernel build --force` makes a guest of it")
        _add_headers(kept, make, say)
    except AckclockError as error:
        say(f"nothing can be compiled for the guest of Linux {kept.version} (--module): {error}")
    return kept


def _add_headers(kept: cache.Kept, make: Make, say: Report) -> None:
    say("keeping what modules are compiled against")
    shutil.copy(kept.folder / "config", make.objects / ".config")
    make.run(["olddefconfig"])
    make.run(["prepare", "modules_prepare"])
    folders.atomic_write(kept.folder / config.PACKED, partial(config.pack, make.tree, make.objects, kept.kernel))


def _check_host(given: Path | None) -> None:
    if platform.machine() != "x86_64":
        raise InputError(f"The guest kernel: found a {platform.machine()} machine; expected x86_64")
    needed = TOOLS | (FETCHING if given is None else {}) | ({} if given and given.is_dir() else UNPACKING)
    missing = {package for tool, package in needed.items() if not shutil.which(tool)}
    if shutil.which("gcc") and not _has_libc():
        missing.add("libc6-dev")
    if missing:
        names = " ".join(sorted(missing))
        raise InputError(
            f"The guest kernel cannot be built without {names}. As root on Debian: apt-get install {names}"
        )
    with folders.write_errors(cache.home()):
        cache.home().mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache.home()).free
    if free < ROOM:
        raise InputError(f"{cache.home()}: found {free >> 20} MiB free; expected {ROOM >> 20} MiB to build a kernel in")


def _has_libc() -> bool:
    found = subprocess.run(["gcc", "-print-file-name=crt1.o"], capture_output=True, text=True, check=False)
    return Path(found.stdout.strip()).is_absolute()


@contextmanager
def _workshop() -> Iterator[Path]:
    """An empty folder, gone at the end; what a killed build has left goes too."""
    work = cache.home() / ".build"
    remove = partial(shutil.rmtree, work, ignore_errors=True)
    remove()
    with signals.cleanup(remove):
        work.mkdir()
        yield work


def _made(tree: Path, work: Path, progress: Progress, say: Report, again: bool, *, beside: bool) -> cache.Kept:
    make = Make(tree, work / "objects", work / "build.log")
    version = make.version()
    target = cache.folder_of(version)
    if not again and (there := next((kept for kept in cache.every() if kept.folder == target), None)):
        if not _is_complete(there):
            _add_headers(there, make, say)
        return there
    try:
        settings = _configured(make, version)
        make.run(["prepare"])
        _widen_registers(make.objects)
        say(f"compiling Linux {version}")
        make.run(["linux"], progress)
        modules = _modules(make, work, say)
        config.pack(make.tree, make.objects, make.objects / "linux", work / config.PACKED)
        say("starting it once")
        answer = _trial(make.objects / "linux", work)
    except (AckclockError, OSError):
        _keep_log(make.log)
        raise
    about = {**_about(version, settings, answer), "beside": beside}
    with folders.replace_folder(target) as new:
        shutil.copy(make.objects / "linux", new / "linux")
        shutil.copy(make.log, new / "build.log")
        shutil.copy(work / config.PACKED, new)
        shutil.copy(make.objects / ".config", new / "config")
        (new / "modules").mkdir()
        for module in modules:
            shutil.copy(module, new / "modules" / module.name)
        (new / "about.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return cache.Kept(target, about)


def _keep_log(log: Path) -> None:
    if log.exists():
        shutil.copy(log, failed_log())


def failed_log() -> Path:
    """Return the path of the last failed build's log."""
    return cache.home() / "failed.log"


class Make:
    """`make` for a tree and a folder of objects, with all that makes the result the same everywhere."""

    def __init__(self, tree: Path, objects: Path, log: Path) -> None:
        self.tree, self.objects, self.log = tree, objects, log
        objects.mkdir()
        # A file beside the objects: the path of the package may have a space in it.
        header = objects / config.HEADER.name
        shutil.copy(config.HEADER, header)
        self.words = ["make", "-C", str(tree), f"O={objects}", "ARCH=um", f"KCFLAGS=-include {header}"]
        self.environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
            "KBUILD_BUILD_USER": "ackclock",
            "KBUILD_BUILD_HOST": "ackclock",
        }

    def version(self) -> str:
        """The tree's version: `6.1.192`. Raises `AckclockError`."""
        return self._query("kernelversion")

    def release(self) -> str:
        """The version with all its additions, as `uname -r` says it."""
        return self._query("kernelrelease")

    def _query(self, what: str) -> str:
        command = [*self.words, "-s", "--no-print-directory", what]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        lines = done.stdout.split()
        if done.returncode or not lines:
            raise AckclockError(
                f"{self.tree}: make {what} failed: {(done.stderr.splitlines() or ['no reason given'])[-1]}"
            )
        return lines[-1]

    def run(self, targets: Sequence[str], progress: Callable[[float], None] = lambda _: None) -> None:
        """Makes targets on all cores. Raises `AckclockError` with the first error's line."""
        command = [*self.words, f"-j{len(os.sched_getaffinity(0))}", *targets]
        done, said = 0, []
        with self.log.open("a", encoding="utf-8") as log, _ended(command, self.environment) as making:
            assert making.stdout is not None
            for line in making.stdout:
                log.write(line)
                if re.match(r"  (CC|AS|LD|AR)\b", line):
                    done += 1
                    progress(min(done / OBJECTS, 0.99))
                elif re.search(r"\berror\b|\*\*\*", line, re.IGNORECASE):
                    said.append(line.strip())
        if making.returncode:
            reason = said[0] if said else f"status {making.returncode}"
            raise AckclockError(f"The guest kernel was not built: {reason} (all of it: {failed_log()})")


@contextmanager
def _ended(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process whose whole group has ended with the block."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process, signals.cleanup(partial(_kill, process)):
        yield process
        process.wait()


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _configured(make: Make, version: str) -> dict[str, str]:
    wanted = make.objects / "wanted.config"
    wanted.write_text(config.all_lines(make.tree), encoding="utf-8")
    make.environment["KCONFIG_ALLCONFIG"] = str(wanted)
    make.run(["allnoconfig"])
    settings = config.settings((make.objects / ".config").read_text(encoding="utf-8"))
    config.check(settings, version)
    return settings


def _widen_registers(objects: Path) -> None:
    """Gives the guest room for the vector registers of any host.

    Linux 6.1 has 2696 bytes for them, but a processor with AMX has 11008, and there a guest does not start. The number
    is in a file that `make prepare` has made from the source. Newer kernels ask the host, and have no such number.
    """
    file = objects / "arch/x86/um/user-offsets.s"
    if file.exists():
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(r"(->HOST_FP_SIZE \$)\d+", rf"\g<1>{REGISTER_WORDS}", text), encoding="utf-8")


def _modules(make: Make, work: Path, say: Report) -> list[Path]:
    """Our kernel modules, built against the tree."""
    make.run(["modules_prepare"])
    config.write_symbols(make.objects / "linux", make.objects)
    files = config.module_files()
    if not files:
        return []
    say("compiling modules")
    folder = work / "modules"
    folder.mkdir()
    for path in files:
        shutil.copy(path, folder)
    make.run([f"M={folder}", "modules"])
    return sorted(folder.glob("*.ko"))


def _trial(kernel: Path, work: Path) -> dict[str, str]:
    """Starts the guest once. Raises `AckclockError` if it does not work on this host."""
    folder = work / "trial"
    folder.mkdir()
    trial = guest.Guest(kernel, TRIAL_MEMORY_BYTES)
    try:
        guest.run(trial, folder / "order", lambda _: None, ["sh", "-c", f"cd {folder} && {TRIAL[2]}"])
    finally:
        _append(folder / "console.log", work / "build.log")
    congestion, version = (folder / "answer").read_text(encoding="utf-8").splitlines()
    return {"congestion": congestion, "version": version}


def _append(what: Path, log: Path) -> None:
    if what.exists():
        with log.open("a", encoding="utf-8") as file:
            file.write("\nThe guest's console\n" + what.read_text(encoding="utf-8", errors="replace"))


def _about(version: str, settings: dict[str, str], answer: dict[str, str]) -> dict[str, Any]:
    return {
        "version": version,
        "release": answer["version"],
        "inputs": config.inputs_hash(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "congestion": sorted(answer["congestion"].split()),
        "disciplines": config.disciplines(settings),
        "options": settings,
    }
