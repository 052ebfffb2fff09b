"""The file of a bundle: a tar archive (POSIX.1-1988 as GNU tar writes it) that has one form only.

Its first part, `bundle.json`, lists the others with their sizes and SHA-256, and has its own SHA-256 as the manifests
of results have. The others follow in the order of their names; of a file's header only name and size are free. So
every byte of a bundle follows from the list and the parts: the same parts make the same bytes, on any machine and at
any time, and a reader compares all of them. Nothing in it is compressed, a link, a device, or there twice, and no
part is longer than the list says, because the file would be another one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from ackclock import _core
from ackclock.dataset import checksums, folders, manifests
from ackclock.errors import InputError
from ackclock.system import files
from ackclock.system.files import readable

#: The part that lists the others.
LIST = "bundle.json"

#: Version of the form; a reader refuses another.
FORM = 1

#: Longest list, in bytes, and most parts.
LONGEST_LIST, MAX_PARTS = 64 << 20, 1_000_000

#: Longest name of a part, and of what is between two slashes, in bytes: what file systems take.
LONGEST_NAME, LONGEST_STEP = 4000, 255

#: Bytes that are read at a time.
AT_A_TIME = 1 << 20

#: Content of a part: a file, or bytes.
Given: TypeAlias = "Path | bytes"

#: Expectation of a file that is no bundle.
EXPECTED = "a file that `ackclock bundle` has written"

#: A tar archive ends with two empty blocks.
BLOCK_BYTES, END = 512, bytes(2 * 512)

#: Magic of GNU tar's header, and its offset.
_MAGIC, _MAGIC_AT = b"ustar  \0", 257


@dataclass(frozen=True, slots=True)
class Part:
    """A part's size and SHA-256."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that has been found whole: what its list says, and its parts by name."""

    path: Path
    about: Mapping[str, Any]
    parts: Mapping[str, Part]


def write(path: Path, about: Mapping[str, Any], parts: Mapping[str, Given]) -> None:
    """Writes a bundle, whole or not at all. Raises `InputError` for what cannot be a part, or cannot be written."""
    for name in parts:
        if wrong := _wrong_name(name):
            raise InputError(f"{readable(name)}: found {wrong}; expected a name that a bundle can have")
    listed = {name: _part(given) for name, given in sorted(parts.items())}
    folders.atomic_write(path, lambda new: _fill(new, _list(about, listed), listed, parts))


def read(path: Path, into: Path | None = None, wanted: Callable[[str], bool] = lambda _: True) -> Bundle:
    """Compares a bundle with its list, byte for byte, and puts the parts that are `wanted` into the new folder `into`.

    Raises `InputError` if it is none, of another form, or damaged, with the part that is.
    """
    with _opened(path) as file:
        bundle = _listed(path, file)
        for name, part in bundle.parts.items():
            _take(path, file, name, part, into / name if into is not None and wanted(name) else None)
        _expect_end(path, file)
    return bundle


def _take(path: Path, file: IO[bytes], name: str, part: Part, target: Path | None) -> None:
    _expect(path, file, _header(name, part.size_bytes), f"the header of {name}")
    if _copied(path, file, name, part, target) != part.sha256:
        raise _damaged(path, name)
    _expect(path, file, _padding(part.size_bytes), f"what follows {name}")


def _expect_end(path: Path, file: IO[bytes]) -> None:
    _expect(path, file, END, "its end")
    if file.read(1):
        raise InputError(f"{readable(path)}: damaged: found more after its end")


def _part(given: Given) -> Part:
    if isinstance(given, bytes):
        return Part(len(given), hashlib.sha256(given).hexdigest())
    try:
        return Part(given.lstat().st_size, checksums.of_file(given))
    except OSError as error:
        raise InputError(f"{readable(given)}: found an error ({files.reason(error)}); expected a file") from None


def _list(about: Mapping[str, Any], parts: Mapping[str, Part]) -> bytes:
    sizes = {name: part.size_bytes for name, part in parts.items()}
    whole = {"ackclock": _core.version, "bundle": {"form": FORM, **about, "bytes": sizes}}
    return manifests.content(whole, {name: part.sha256 for name, part in parts.items()})


def _fill(new: Path, head: bytes, listed: Mapping[str, Part], parts: Mapping[str, Given]) -> None:
    with new.open("wb") as file:
        _put(LIST, head, len(head), file)
        for name, part in listed.items():
            _put(name, parts[name], part.size_bytes, file)
        file.write(END)


def _put(name: str, given: Given, size_bytes: int, file: IO[bytes]) -> None:
    file.write(_header(name, size_bytes))
    if (written := _pour(given, file)) != size_bytes:
        raise InputError(f"{readable(name)}: found {written} bytes, and {size_bytes} before; expected no change")
    file.write(_padding(size_bytes))


def _pour(given: Given, file: IO[bytes]) -> int:
    written = 0
    with io.BytesIO(given) if isinstance(given, bytes) else checksums.opened(given) as source:
        while piece := source.read(AT_A_TIME):
            written += file.write(piece)
    return written


def _header(name: str, size_bytes: int) -> bytes:
    """The blocks before a part: nothing of who wrote it, when and where."""
    info = tarfile.TarInfo(name)
    info.size = size_bytes
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def _padding(size_bytes: int) -> bytes:
    return bytes(-size_bytes % BLOCK_BYTES)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    files.check(path)
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"{readable(path)}: found an error ({files.reason(error)}); expected {EXPECTED}") from None


def _listed(path: Path, file: IO[bytes]) -> Bundle:
    """Parse the list, once its hash is verified."""
    header = file.read(BLOCK_BYTES)
    if header[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC or not header.startswith(LIST.encode()):
        raise InputError(f"{readable(path)}: found {_what(header)}; expected {EXPECTED}")
    try:
        size_bytes = tarfile.TarInfo.frombuf(header, "utf-8", "strict").size
    except (tarfile.TarError, ValueError):
        raise _damaged(path, f"the header of {LIST}") from None
    if header != _header(LIST, size_bytes) or not 0 < size_bytes <= LONGEST_LIST:
        raise _damaged(path, f"the header of {LIST}")
    given = file.read(size_bytes)
    if len(given) < size_bytes:
        raise _cut(path, LIST)
    if not manifests.is_intact(given):
        raise _damaged(path, LIST)
    about, parts = _of_list(path, given)
    _expect(path, file, _padding(size_bytes), f"what follows {LIST}")
    return Bundle(path, about, parts)


def _of_list(path: Path, given: bytes) -> tuple[Mapping[str, Any], dict[str, Part]]:
    """The list as values. It may come from anybody, and have a sum that is right."""
    values = _values(path, given)
    about = _about(path, values)
    return about, _parts(path, values.get("files"), about.get("bytes"))


def _values(path: Path, given: bytes) -> Any:
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise _damaged(path, LIST) from None


def _about(path: Path, values: Any) -> Mapping[str, Any]:
    """Return the bundle's description. Raises `InputError` for a format that cannot be read."""
    about = values.get("bundle") if isinstance(values, dict) else None
    if not isinstance(about, dict):
        raise InputError(f"{readable(path)}: found no bundle in {LIST}; expected {EXPECTED}")
    _check_form(path, about.get("form"), values.get("format"))
    return about


def _check_form(path: Path, form: object, of_results: object) -> None:
    if form != FORM or of_results != manifests.FORMAT:
        found = f"form {str(form)[:20]!r} with results of format {str(of_results)[:20]!r}"
        ours = f"this ackclock reads form {FORM} with results of format {manifests.FORMAT}"
        raise InputError(f"{readable(path)}: found a bundle of {found}; {ours}")


def _parts(path: Path, sums: Any, sizes: Any) -> dict[str, Part]:
    _check_files(path, sums, sizes)
    for name, size_bytes in sizes.items():
        _check_part(path, name, size_bytes, sums[name])
    return {name: Part(size, sums[name]) for name, size in sizes.items()}


def _check_files(path: Path, sums: Any, sizes: Any) -> None:
    if not isinstance(sums, dict) or not isinstance(sizes, dict) or [*sums] != sorted(sums) or [*sums] != [*sizes]:
        raise InputError(f"{readable(path)}: {LIST}: found no list of files with their sizes; expected {EXPECTED}")
    if len(sums) > MAX_PARTS:
        raise InputError(f"{readable(path)}: {LIST}: found {len(sums)} files; expected at most {MAX_PARTS}")


def _check_part(path: Path, name: str, size_bytes: Any, sha256: Any) -> None:
    if wrong := _wrong_name(name):
        raise InputError(f"{readable(path)}: {LIST}: found {wrong}: {name[:80]!r}; expected names within a folder")
    if not isinstance(sha256, str) or type(size_bytes) is not int or not 0 <= size_bytes < 2**63:
        raise InputError(f"{readable(path)}: {LIST}: {name}: found no size and SHA-256; expected both")


def _wrong_name(name: str) -> str:
    """Return why a part's name could be unsafe to unpack; empty if it is safe."""
    return next((wrong for wrong, is_so in _WRONG_NAMES.items() if is_so(name)), "")


def _is_outside(name: str) -> bool:
    return any(step in ("", ".", "..") for step in name.split("/"))


def _is_the_list(name: str) -> bool:
    return name == LIST


def _is_no_utf8(name: str) -> bool:
    """Half a pair of UTF-16, which JSON can spell."""
    return any("\ud800" <= letter <= "\udfff" for letter in name)


def _is_too_long(name: str) -> bool:
    return len(name.encode()) > LONGEST_NAME or any(len(step.encode()) > LONGEST_STEP for step in name.split("/"))


def _is_odd(name: str) -> bool:
    return not name.isprintable() or "\\" in name


#: Reason → test of a name, in this order.
_WRONG_NAMES: Mapping[str, Callable[[str], bool]] = {
    "a name that leads elsewhere": _is_outside,
    "a name that is the list's own": _is_the_list,
    "a name that is not UTF-8": _is_no_utf8,
    "a name that is too long": _is_too_long,
    "a name with characters that not every system has": _is_odd,
}


def _expect(path: Path, file: IO[bytes], wanted: bytes, what: str) -> None:
    found = file.read(len(wanted))
    if found != wanted:
        raise _cut(path, what) if wanted.startswith(found) else _damaged(path, what)


def _copied(path: Path, file: IO[bytes], name: str, part: Part, target: Path | None) -> str:
    """The SHA-256 of a part, which is also written to `target`."""
    sums, left = hashlib.sha256(), part.size_bytes
    with folders.write_errors(target or path), _sink(target) as sink:
        while left:
            piece = file.read(min(left, AT_A_TIME))
            if not piece:
                raise _cut(path, name)
            sums.update(piece)
            sink.write(piece)
            left -= len(piece)
    return sums.hexdigest()


def _sink(target: Path | None) -> IO[bytes]:
    if target is None:
        return Path(os.devnull).open("wb")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.open("xb")


def _what(header: bytes) -> str:
    """Return what a file that is no bundle seems to be."""
    if not header:
        return "an empty file"
    kinds = {b"PK\3\4": "a zip archive", b"\x1f\x8b": "a gzip file", b"\x28\xb5\x2f\xfd": "a zstd file"}
    known = next((what for magic, what in kinds.items() if header.startswith(magic)), "something else")
    is_tar = header[_MAGIC_AT : _MAGIC_AT + 5] == _MAGIC[:5]
    return f"a tar archive that does not begin with {LIST}" if is_tar else known


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"{readable(path)}: damaged: {what} is not what was written")


def _cut(path: Path, what: str) -> InputError:
    return InputError(f"{readable(path)}: damaged: it is cut off in {what}")
