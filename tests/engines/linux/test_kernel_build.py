"""Building and keeping guest kernels: with made-up tools and trees, without compilation."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from ackclock.cli.program import application
from ackclock.engines import linux
from ackclock.engines.linux import guest
from ackclock.engines.linux.kernel import build, cache, config
from ackclock.errors import AckclockError, InputError

#: A `make` that answers as Linux's does, and "builds" a guest that runs its own trial.
MAKE = """#!/bin/sh
for word; do case $word in O=*) out=${word#O=} ;; esac; done
case $* in
    *kernelversion*) echo 6.1.7 ;;
    *allnoconfig*) grep -v '=n$' "$KCONFIG_ALLCONFIG" >"$out/.config" ;;
    *" prepare"*)
        mkdir -p "$out/arch/x86/um"
        echo '.ascii "->HOST_FP_SIZE $337 2696 / 8"' >"$out/arch/x86/um/user-offsets.s" ;;
    *" linux"*) FAIL_HERE
        echo "  CC      a.o"; cp "$out/arch/x86/um/user-offsets.s" "$out/linux"; chmod +x "$out/linux" ;;
esac
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ackclock" / "kernels"


@pytest.fixture
def tree(tmp_path):
    """A tree of Linux, as far as a build looks at it before `make`."""
    folder = tmp_path / "linux tree"
    for name, text in {
        "Kconfig": "",
        "Makefile": "",
        "arch/um/Makefile": "",
        "include/net/tcp.h": "/* TCP */",
        "net/ipv4/Kconfig": "config TCP_CONG_CUBIC\n\ttristate\nconfig TCP_CONG_NEWER\n\ttristate\nconfig DEFAULT_X\n",
        "net/sched/Kconfig": "config NET_SCH_NEWER\n\ttristate\nconfig NET_ACT_NEWER\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder of made-up tools ahead of the real ones; `tools("make", text)` adds one. The trial is not run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def add(name: str, text: str) -> None:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    for name in ("flex", "bison", "bc"):
        add(name, "#!/bin/sh\n")
    monkeypatch.setattr(build, "_trial", lambda *_: {"congestion": "reno cubic", "version": "Linux version 6.1.7"})
    monkeypatch.setattr(build, "_has_libc", lambda: True)
    add("make", MAKE.replace("FAIL_HERE", ""))
    add("nm", "#!/bin/sh\necho ' 60500000 r __ksymtab_tcp_slow_start'\n")
    return add


def made(tree: Path, **options: bool) -> cache.Kept:
    return build.build(tree, lambda _: None, lambda _: None, **options)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_guest_is_stored_completely(home, tree, tools):
    kept = made(tree)
    assert kept.folder == home / f"6.1.7-{config.inputs_hash()}"
    assert {"linux", "about.json", "build.log", "config"} <= names(kept.folder)
    assert names(home) == {kept.folder.name, ".lock"}
    about = json.loads((kept.folder / "about.json").read_text())
    assert (about["version"], about["congestion"]) == ("6.1.7", ["cubic", "reno"])
    assert {"htb", "fq_codel", "netem", "newer"} <= set(about["disciplines"])
    assert cache.chosen().kernel == kept.kernel
    assert stat.S_IMODE(kept.kernel.stat().st_mode) & 0o111


def test_the_users_tree_is_left_as_it_is(home, tree, tools):
    before = sorted(path for path in tree.rglob("*"))
    made(tree)
    assert sorted(path for path in tree.rglob("*")) == before


def test_the_buffer_fits_the_registers_of_any_host(home, tree, tools):
    words = re.search(r"HOST_FP_SIZE \$(\d+)", made(tree).kernel.read_text())  # the made-up guest is this file
    assert words is not None
    assert int(words[1]) * 8 >= 11_008  # XSAVE area with AMX tile data: 2816 + 8192 bytes (Intel SDM vol. 1, 13.5)


def test_an_existing_guest_is_not_rebuilt(home, tree, tools):
    first = made(tree)
    tools("make", MAKE.replace("FAIL_HERE", "exit 1"))
    assert made(tree).about == first.about
    assert build.build(None, lambda _: None, lambda _: None).folder == first.folder
    with pytest.raises(AckclockError):
        made(tree, again=True)
    assert cache.chosen().about == first.about


def test_a_failed_build_leaves_a_log_and_reports_the_reason(home, tree, tools):
    tools("make", MAKE.replace("FAIL_HERE", "echo 'net/a.c:7: error: no such thing'; exit 2"))
    with pytest.raises(AckclockError, match=r"net/a.c:7: error: no such thing .*failed.log") as failed:
        made(tree)
    assert "\n" not in str(failed.value)
    assert names(home) == {".lock", "failed.log"}


def test_what_a_killed_build_has_left_is_not_taken(home, tree, tools):
    for left in (".build", ".6.1.7-abc.0000.tmp", "6.1.8-torn"):
        (home / left).mkdir(parents=True)
        (home / left / "linux").touch()
    assert cache.every() == []
    made(tree)
    assert not (home / ".build").exists()


def test_two_builds_wait_for_each_other(home, tree, tools):
    said: list[str] = []
    with cache.only_one(said.append):
        other = threading.Thread(target=build.build, args=(tree, lambda _: None, said.append))
        other.start()
        while "waiting for another build to end" not in said:
            assert other.is_alive()
        assert cache.every() == []
    other.join()
    assert [kept.version for kept in cache.every()] == ["6.1.7"]


def test_options_missing_in_a_tree_are_named(home, tree, tools):
    tools("make", MAKE.replace("=n$", "=n$\\|_VETH\\|_HTB"))
    with pytest.raises(InputError, match="CONFIG_VETH, CONFIG_NET_SCH_HTB"):
        made(tree)


def test_every_option_is_requested_from_a_tree(tree):
    lines = config.all_lines(tree).splitlines()
    assert {"CONFIG_TCP_CONG_NEWER=y", "CONFIG_NET_SCH_NEWER=y", "CONFIG_NET_ACT_NEWER=y"} <= set(lines)
    assert "CONFIG_DEFAULT_X=y" not in lines
    assert lines.count("CONFIG_TCP_CONG_CUBIC=y") == 1


@pytest.mark.parametrize(("tool", "package"), [("flex", "flex"), ("bc", "bc"), ("xz", "xz-utils"), ("apt-get", "apt")])
def test_a_missing_tool_is_named_with_its_package(home, tool, package, monkeypatch):
    found = build.shutil.which
    monkeypatch.setattr(build.shutil, "which", lambda name, **_: None if name == tool else found(name) or "/bin/true")
    result = CliRunner().invoke(application, ["kernel", "build"])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert f"apt-get install {package}" in result.stderr
    assert not home.exists()


@pytest.mark.parametrize("what", ["nothing", "a file", "a folder"])
def test_a_folder_that_is_no_kernel_source_is_rejected(home, tmp_path, what):
    given = tmp_path / "given"
    if what == "a file":
        given.touch()
    elif what == "a folder":
        given.mkdir()
    result = CliRunner().invoke(application, ["kernel", "build", "--source", str(given)])
    assert result.exit_code == 2
    assert "found no Linux there; expected a source tree" in result.stderr
    assert not home.exists()


def test_a_tree_with_build_output_is_rejected(tree):
    (tree / ".config").touch()
    with pytest.raises(InputError, match="mrproper"):
        build.check_source(tree)


APT_CACHE = """#!/bin/sh
case $1 in
search) echo 'linux-source-6.1 - source'; echo 'linux-source-6.12 - source' ;;
pkgnames) echo linux-source-6.1; {own} ;;
depends) printf 'linux-source\\n  Depends: linux-source-6.1\\n' ;;
esac
"""


@pytest.mark.parametrize(("own", "taken"), [("echo linux-source", r"6\.1"), (":", r"6\.12")])
def test_the_package_of_the_releases_own_kernel_is_taken_or_the_newest(home, tree, tools, own, taken, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    tools("apt-cache", APT_CACHE.format(own=own))
    tools("apt-get", '#!/bin/sh\necho "$*" >&2; exit 1\n')
    with pytest.raises(AckclockError, match=rf"apt-get download failed: download -q linux-source-{taken}$"):
        build.build(None, lambda _: None, lambda _: None)


def test_root_updates_the_apt_lists(home, tree, tools, tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    tools("apt-cache", APT_CACHE.format(own=":"))
    tools("apt-get", f'#!/bin/sh\necho "$*" >> {tmp_path}/asked; [ "$1" = update ]\n')
    with pytest.raises(AckclockError, match="apt-get download failed"):
        build.build(None, lambda _: None, lambda _: None)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["download", "update", "download"]


def test_an_apt_without_source_entries_is_explained(home, tools):
    tools("apt-cache", "#!/bin/sh\n")
    tools("apt-get", "#!/bin/sh\n")
    with pytest.raises(InputError, match=r"apt-get update.*--source DIR"):
        build.build(None, lambda _: None, lambda _: None)


def test_the_list_marks_the_guest_that_a_run_takes(home, tree, tools):
    assert "ackclock kernel build" in CliRunner().invoke(application, ["kernel", "list"]).stdout
    kept = made(tree)
    other = home / "9.9.9-000000000000"
    other.mkdir()
    (other / "linux").touch()
    (other / "about.json").write_text(json.dumps(kept.about | {"version": "9.9.9", "inputs": "000000000000"}))
    printed = CliRunner().invoke(application, ["kernel", "list"], env={"COLUMNS": "300"}).stdout.splitlines()
    assert ["9.9.9" in printed[1], "of another version of ackclock" in printed[1]] == [True, True]
    assert ["6.1.7" in printed[2], "default" in printed[2]] == [True, True]


def test_without_a_guest_a_run_explains_how_to_make_one(home):
    with pytest.raises(InputError, match="ackclock kernel build"):
        cache.chosen()


def test_relative_cache_folders_are_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.home() == Path.home() / ".cache" / "ackclock" / "kernels"


def test_the_command_line_names_no_file_but_the_kernel():
    words = guest.Guest(Path("/some/where/linux"), 512 << 20, seed=7).arguments()
    assert [word for word in words if "/some" in word] == ["/some/where/linux"]
    assert "ackclock.seed=7" in words


def test_a_guest_without_what_modules_need_is_given_it(home, tree, tools, monkeypatch):
    kept = made(tree)
    packed = kept.folder / config.PACKED
    packed.unlink()
    monkeypatch.setattr(build, "source_tree", lambda *_: tree)
    monkeypatch.setattr(build, "FETCHING", {})
    before = (kept.folder / "linux").stat()
    tools("make", MAKE.replace("FAIL_HERE", "exit 1"))
    assert build.build(None, lambda _: None, lambda _: None).folder == kept.folder
    assert packed.is_file()
    assert (kept.folder / "linux").stat() == before, "it is not compiled anew"


def test_where_debian_has_another_kernel_by_now_the_guest_stays(home, tree, tools, monkeypatch):
    kept = made(tree)
    (kept.folder / config.PACKED).unlink()
    monkeypatch.setattr(build, "source_tree", lambda *_: tree)
    monkeypatch.setattr(build, "FETCHING", {})
    tools("make", MAKE.replace("6.1.7", "6.1.8"))
    said: list[str] = []
    assert build.build(None, lambda _: None, said.append).folder == kept.folder
    assert not (kept.folder / config.PACKED).exists()
    assert "Debian has Linux 6.1.8; `ackclock kernel build --force`" in said[-1]


def test_what_modules_need_is_packed(home, tree, tools, tmp_path):
    config.unpack(made(tree).folder / config.PACKED, tmp_path)
    assert (tmp_path / "include/net/tcp.h").read_text() == "/* TCP */"
    assert (tmp_path / "Module.symvers").read_text() == "0x00000000\ttcp_slow_start\tvmlinux\tEXPORT_SYMBOL\t\n"
    assert {"Makefile", ".config", "same_everywhere.h"} <= names(tmp_path)


class TestSeries:
    """Kernels beside the one that a run takes."""

    @pytest.fixture(autouse=True)
    def both(self, home, tree, tools, monkeypatch):
        """The release's own, then one that was asked for."""
        monkeypatch.setattr(build, "FETCHING", {})
        monkeypatch.setattr(build, "_fetched", lambda _, series: tree if series else pytest.fail("not asked"))
        monkeypatch.setattr(build, "_unpacked", lambda archive, _: archive)
        self.own = made(tree)
        tools("make", MAKE.replace("6.1.7", "6.12.3").replace("FAIL_HERE", ""))
        self.newer = build.build(None, lambda _: None, lambda _: None, series="6.12")

    def test_a_requested_guest_does_not_replace_the_default_of_the_release(self):
        assert [kept.version for kept in cache.every()] == ["6.12.3", "6.1.7"]
        assert cache.chosen().version == self.own.version == "6.1.7"

    def test_an_existing_guest_is_reported(self, tools):
        tools("make", MAKE.replace("FAIL_HERE", "exit 1"))
        assert build.build(None, lambda _: None, lambda _: None, series="6.12").folder == self.newer.folder

    @pytest.mark.parametrize(("name", "version"), [("6.1", "6.1.7"), ("6.12", "6.12.3"), ("6.12.3", "6.12.3")])
    def test_a_scenario_names_a_version_or_a_series(self, name, version):
        assert linux._kernel(name).parent.name.startswith(f"{version}-")

    def test_a_missing_guest_is_named_with_the_existing_ones(self):
        with pytest.raises(InputError, match=r'found "6\.13"; .*"6\.12\.3", "6\.1\.7"') as raised:
            linux._kernel("6.13")
        assert "\n" not in str(raised.value)


def test_an_unavailable_series_is_rejected_with_the_available_ones(home, tools):
    tools("apt-cache", APT_CACHE.format(own="echo linux-source"))
    tools("apt-get", "#!/bin/sh\n")
    with pytest.raises(InputError, match=r'--series: found "7\.1"; expected one that apt knows: 6\.1, 6\.12$'):
        build.build(None, lambda _: None, lambda _: None, series="7.1")


def test_a_source_and_a_series_are_one_too_many(home, tree):
    result = CliRunner().invoke(application, ["kernel", "build", "--source", str(tree), "--series", "6.12"])
    assert (result.exit_code, result.stderr) == (
        2,
        "--series: found both --source and --series; expected one of them\n",
    )
