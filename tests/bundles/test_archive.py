"""A bundle is what its list says: whatever is not that is refused, and the part that is damaged is named."""

from __future__ import annotations

import hashlib
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
    return tar((archive.LIST, manifests.content(whole, files)))


def tar(*members: tuple[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return made.getvalue()


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


def test_a_flipped_bit_anywhere_is_detected_or_changes_nothing(path, tmp_path):
    whole, draw = path.read_bytes(), random.Random(1)
    for number, place in enumerate([*range(0, len(whole), 97), *draw.sample(range(len(whole)), 100)]):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        into = tmp_path / f"new-{number}"
        try:
            bundle = archive.read(path, into)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert {name: (into / name).read_bytes() for name in bundle.parts} == PARTS


def test_a_truncated_file_is_rejected(path):
    whole = path.read_bytes()
    end = whole.index(PARTS["results/a/größe.csv"][:100])
    for length in range(513, end, 331):
        assert "damaged: " in rejection(path, whole[:length])
    assert "cut off in results/a/größe.csv" in rejection(path, whole[: end + 100])
    assert "an empty file" in rejection(path, b"")


def test_parts_that_are_not_listed_or_no_regular_files_are_rejected(path):
    listed = manifests.content({"ackclock": "0.1.0", "bundle": {"form": archive.FORM, "bytes": {}}}, {})
    assert "damaged: 'extra' is not what the list says" in rejection(path, tar((archive.LIST, listed), ("extra", b"1")))
    digest = hashlib.sha256(b"").hexdigest()
    head = manifests.content({"ackclock": "0.1.0", "bundle": {"form": archive.FORM, "bytes": {"a": 0}}}, {"a": digest})
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as file:
        info = tarfile.TarInfo(archive.LIST)
        info.size = len(head)
        file.addfile(info, io.BytesIO(head))
        link = tarfile.TarInfo("a")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(link)
    assert "damaged: 'a' is not what the list says" in rejection(path, made.getvalue())


def test_headers_that_name_the_next_header_without_end_are_rejected(path):
    long_name = tarfile.TarInfo("././@LongLink")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 512
    header = long_name.tobuf(tarfile.GNU_FORMAT) + bytes(512)
    assert "damaged: " in rejection(path, header * 5000)
    assert "damaged: " in rejection(path, path.read_bytes()[:-1024] + header * 5000)


def test_other_files_are_rejected_by_kind(path, tmp_path):
    assert "a zip archive" in rejection(path, b"PK\3\4" + bytes(600))
    assert "a gzip file" in rejection(path, b"\x1f\x8b" + bytes(600))
    assert "a tar archive that does not begin with bundle.json" in rejection(path, tar(("../../etc/passwd", b"")))
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
        ({"bytes": {"a": 0}}, {"a": ""}),
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
    head = manifests.content(
        {"ackclock": "0.1.0", "bundle": {"form": archive.FORM, "bytes": {name: 2**50}}}, {name: "0" * 64}
    )
    info = tarfile.TarInfo(name)
    info.size = 2**50
    content = tar((archive.LIST, head))[: 512 + -(-len(head) // 512) * 512]
    assert "cut off in results/a" in rejection(path, content + info.tobuf(tarfile.GNU_FORMAT) + b"short")


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
