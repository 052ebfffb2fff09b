"""Only regular files are read, and only they are replaced."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ackclock.dataset import folders
from ackclock.errors import InputError
from ackclock.system import files

MAX_BYTES = 1 << 20


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def long(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (pipe, "a pipe"),
        (Path.mkdir, "a directory"),
        (bound, "a socket"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to(path), "an error (Too many levels of symbolic links)"),
        (lambda path: path.symlink_to("nowhere"), "no such file"),
        (lambda path: None, "no such file"),
        (long, "more than 1 MiB"),
    ],
)
def test_special_files_are_rejected_without_blocking(tmp_path, monkeypatch, make, found):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    make(Path("it"))
    with pytest.raises(files.UnreadableError) as error:
        files.read_bytes(Path("it"), MAX_BYTES)
    assert str(error.value) == f"it: found {found}; expected a regular file that can be read"


def test_a_pipe_that_replaces_a_checked_file_does_not_block(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "check", lambda path: None)
    os.mkfifo(tmp_path / "it")
    with pytest.raises(files.UnreadableError, match="found a pipe"):
        files.read_bytes(tmp_path / "it", MAX_BYTES)


@pytest.mark.parametrize(("name", "found"), [("a\0b", "embedded null byte"), ("x" * 300, "File name too long")])
def test_impossible_names_are_rejected(tmp_path, name, found):
    with pytest.raises(InputError, match=found):
        files.read_bytes(tmp_path / name, MAX_BYTES)
    with pytest.raises(InputError, match=found):
        files.check_name(tmp_path / name)


def test_names_that_are_not_utf8_are_rejected(tmp_path):
    odd = tmp_path / os.fsdecode(b"a\xff")
    odd.write_bytes(b"x")
    assert files.read_bytes(odd, MAX_BYTES) == b"x"
    assert files.readable(odd).endswith("/a\N{REPLACEMENT CHARACTER}")
    with pytest.raises(InputError, match="not UTF-8"):
        files.check_name(odd)


def test_atomic_write_follows_a_symbolic_link(tmp_path):
    (tmp_path / "link").symlink_to("target")
    folders.atomic_write(tmp_path / "link", lambda new: new.write_text("new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_special_files_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "it")
    with pytest.raises(InputError, match="not a regular file"):
        folders.atomic_write(tmp_path / "it", lambda new: new.write_text("new"))
    assert (tmp_path / "it").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["it"]
