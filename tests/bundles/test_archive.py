"""A bundle has one form: whatever is not that is refused, and the part that is damaged is named."""

from __future__ import annotations

import io
import os
import random
import subprocess
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.bundles import archive
from ackclock.dataset import manifests
from ackclock.errors import InputError

PARTS = {
    "results/a/manifest.json": b"{}\n",
    "results/a/flows.parquet/part-0000.parquet": bytes(range(256)) * 5,
    "results/a/" + "deep/" * 30 + "note.txt": b"longer than a header's name",
    "results/a/empty": b"",
    "results/a/größe.csv": b"1,2\n" * 128,
}


@pytest.fixture
def path(tmp_path):
    archive.write(tmp_path / "x.tar", {"results": []}, PARTS)
    return tmp_path / "x.tar"


def rejection(path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        archive.read(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def signed(about, files, bundle=None) -> bytes:
    """A file with a list whose sum is right, whatever it says, and no parts."""
    whole = {"ackclock": "0.1.0", "bundle": {"form": archive.FORM, **about} if bundle is None else bundle}
    head = manifests.content(whole, files)
    return archive._header(archive.LIST, len(head)) + head + archive._padding(len(head)) + archive.END


def test_what_is_written_is_read_and_tar_unpacks_it(path, tmp_path):
    bundle = archive.read(path, tmp_path / "new")
    assert bundle.about["results"] == []
    assert {name: (tmp_path / "new" / name).read_bytes() for name in bundle.parts} == PARTS
    (tmp_path / "by-tar").mkdir()
    subprocess.run(["tar", "xf", path, "-C", tmp_path / "by-tar"], check=True)
    assert {name: (tmp_path / "by-tar" / name).read_bytes() for name in PARTS} == PARTS


def test_the_same_parts_make_the_same_bytes(path, tmp_path):
    (tmp_path / "flows").write_bytes(PARTS["results/a/flows.parquet/part-0000.parquet"])
    (tmp_path / "flows").chmod(0o755)
    os.utime(tmp_path / "flows", (1, 1))
    again = {**dict(reversed(PARTS.items())), "results/a/flows.parquet/part-0000.parquet": tmp_path / "flows"}
    archive.write(tmp_path / "y.tar", {"results": []}, again)
    assert (tmp_path / "y.tar").read_bytes() == path.read_bytes()


def test_every_flipped_bit_is_detected_and_the_part_is_named(path):
    whole = path.read_bytes()
    places = {name: whole.index(content) for name, content in PARTS.items() if len(content) > 4}
    for name, place in places.items():
        flipped = bytearray(whole)
        flipped[place] ^= 4
        assert f"damaged: {name} is not" in rejection(path, bytes(flipped))
    draw = random.Random(1)
    for place in [*range(0, len(whole), 97), *draw.sample(range(len(whole)), 100)]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << draw.randrange(8)
        assert rejection(path, bytes(flipped))


def test_a_truncated_or_extended_file_is_rejected(path):
    whole = path.read_bytes()
    for length in (*range(513, len(whole), 331), len(whole) - 1):
        assert "cut off in" in rejection(path, whole[:length])
    assert "found more after its end" in rejection(path, whole + b"\0")
    assert "an empty file" in rejection(path, b"")


def test_other_files_are_rejected_by_kind(path, tmp_path):
    assert "a zip archive" in rejection(path, b"PK\3\4" + bytes(600))
    assert "a gzip file" in rejection(path, b"\x1f\x8b" + bytes(600))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("../../etc/passwd"))
    assert "a tar archive that does not begin with bundle.json" in rejection(path, made.getvalue())
    with pytest.raises(InputError, match="a directory"):
        archive.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a pipe"):
        archive.read(tmp_path / "pipe")


@pytest.mark.parametrize(
    "name", ["../up", "/etc/passwd", "a/../../b", "a//b", "./a", "", "a\\b", "a\nb", "a\0b", "x" * 300, "bundle.json"]
)
def test_names_outside_the_folder_are_rejected_by_writer_and_reader(path, tmp_path, name):
    with pytest.raises(InputError):
        archive.write(tmp_path / "y.tar", {}, {name: b""})
    assert not (tmp_path / "y.tar").exists()
    assert "name" in rejection(path, signed({"bytes": {name: 0}}, {name: "0" * 64}))


@pytest.mark.parametrize(
    ("about", "files"),
    [
        ({}, {}),
        ({"bytes": {"a": 0}}, {}),
        ({"bytes": {"b": 0, "a": 0}}, {"b": "", "a": ""}),
        ({"bytes": {"a": -1}}, {"a": "0" * 64}),
        ({"bytes": {"a": 1e300}}, {"a": "0" * 64}),
        ({"bytes": {"a": True}}, {"a": "0" * 64}),
        ({"bytes": {"a": 2**62}}, {"a": "0" * 64}),
        ({"bytes": []}, {}),
    ],
)
def test_impossible_lists_are_rejected(path, about, files):
    assert rejection(path, signed(about, files))


def test_another_format_version_is_rejected_by_number(path):
    assert "found a bundle of form '2'" in rejection(path, signed({}, {}, {"form": 2}))
    assert "found no bundle in bundle.json" in rejection(path, signed({}, {}, []))


def test_a_long_part_takes_no_more_than_the_file_has(path, tmp_path):
    name = "results/a"
    content = signed({"bytes": {name: 2**50}}, {name: "0" * 64})[: -len(archive.END)]
    assert "cut off in results/a" in rejection(path, content + archive._header(name, 2**50) + b"short")


@given(st.binary(max_size=3000))
def test_any_bytes_are_rejected_in_one_line(tmp_path_factory, content):
    rejection(tmp_path_factory.getbasetemp() / "any.tar", content)


#: Whatever JSON can say.
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON.filter(bool))
def test_any_list_is_rejected_in_one_line(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "any-list.tar"
    rejection(path, signed({}, {}, {"form": archive.FORM, "bytes": values}))
    rejection(path, signed({}, {}, values))
