"""A congestion control that the user brings: what of its file counts, what is refused, and a run in a guest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from string import Template

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

import ackclock as ac
from ackclock import algorithms
from ackclock.algorithms import Linux
from ackclock.cli import run_jobs
from ackclock.cli.program import application
from ackclock.engines.linux.kernel import bpf, cache, config, user_module
from ackclock.errors import InputError
from ackclock.experiments.sweep import result as sweeps
from ackclock.scaffold.new import TEMPLATES


def scenario(congestion):
    return f"""
duration = "3s"
{dumbbell("10Mbit", "20ms")}
[[flows]]
congestion = {congestion}
"""


@pytest.fixture(autouse=True)
def no_cards_stay():
    yield
    algorithms._USER_SUPPLIED.clear()
    algorithms.names.cache_clear()
    algorithms.spec.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that `ackclock new control mine` writes for kernels, and a scenario."""
    for name in ("control.c", "control.bpf.c"):
        text = Template((TEMPLATES / name).read_text()).substitute(name="mine", title="Mine")
        (tmp_path / name.replace("control", "mine")).write_text(text)
    (tmp_path / "mine.toml").write_text(scenario(congestion='"mine"'))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    command = ["run", "mine.toml", "--engine", "linux", "--seed", "1", "--no-report", "--out", "out", *words]
    return CliRunner().invoke(application, command)


def rejection(*words, status=2):
    done = run(*words)
    assert done.exit_code == status, done.output
    assert not Path("out").exists()
    return done.stderr


class TestAFile:
    def test_its_name_is_that_of_its_operations_else_the_files_own(self, folder):
        assert user_module.read(Path("mine.c")).name == user_module.read(Path("mine.bpf.c")).name == "mine"
        text = Path("mine.c").read_text()
        Path("other.c").write_text(text.replace('.name = "mine"', '.name\t= "his"'))
        Path("third.c").write_text(text.replace('.name = "mine"', ".name = NAME"))
        Path("fourth.bpf.c").write_text("")
        assert [user_module.read(Path(name)).name for name in ("other.c", "third.c", "fourth.bpf.c")] == [
            "his", "third", "fourth",
        ]  # fmt: skip

    def test_its_checksum_covers_the_file_and_its_local_headers(self, folder):
        text = Path("mine.c").read_text()
        Path("mine.c").write_text('#include "one.h"\n' + text)
        Path("one.h").write_text('#include "two.h"\n#include <net/tcp.h>\n')
        Path("two.h").write_text("")
        assert list(user_module.sources(Path("mine.c"))) == ["mine.c", "one.h", "two.h"]
        before = user_module.read(Path("mine.c")).sha256
        assert user_module.read(Path("mine.c")).sha256 == before
        Path("two.h").write_text("#define TWO 2\n")
        assert user_module.read(Path("mine.c")).sha256 != before

    @pytest.mark.parametrize(
        ("name", "text", "what"),
        [
            ("mine.rs", "", "expected a file that ends in .c, .bpf.c or .py"),
            ("gone.c", None, "found no such file"),
            ("a b.c", "", 'found the name "a b"'),
            ("mine.c", 'struct tcp_congestion_ops x = { .name = "of more than 15 letters" };', "found the name"),
        ],
    )
    def test_what_it_cannot_be(self, folder, name, text, what):
        if text is not None:
            Path(name).write_text(text)
        said = rejection("--module", name)
        assert what in said
        assert said.count("\n") == 1

    def test_the_name_of_a_kernel_cca_is_rejected(self, folder):
        Path("cubic.c").write_text("")
        assert 'found the name "cubic", which is CUBIC' in rejection("--module", "cubic.c")


class TestItsCard:
    def user_supplied(self, **changes):
        import dataclasses

        aimd = algorithms.spec("congestion", "aimd")
        algorithms.bring(dataclasses.replace(aimd, name="mine", **changes))
        user_module.bring(user_module.Module("mine", "mine.c", "0" * 64))
        return algorithms.spec("congestion", "mine")

    def plan(self, congestion, **module):
        loaded = ac.loads(scenario(congestion=congestion))
        plan = loaded.plan()
        options = {**plan.options, "linux": {**plan.options["linux"], **({"module": module} if module else {})}}
        import dataclasses

        return dataclasses.replace(plan, options=options)

    def reasons_of(self, congestion):
        from ackclock.engines.linux import LinuxEngine

        plan = self.plan(congestion, name="mine", file="mine.c", sha256="")
        return [each.what for each in LinuxEngine().unsupported(plan)]

    def test_without_one_it_has_no_parameters(self):
        user_module.bring(user_module.Module("mine", "mine.c", "0" * 64))
        assert algorithms.spec("congestion", "mine").parameters == {}
        assert self.reasons_of('"mine"') == []

    def test_without_module_parameters_the_defaults_apply(self):
        self.user_supplied()
        assert self.reasons_of('"mine"') == []
        assert self.reasons_of('{ kind = "mine", beta = 0.8 }') == ['congestion control "mine" with beta = 0.8']

    def test_module_parameters_are_passed_on(self):
        from ackclock.algorithms.kernel import Fixed, Knob

        told = {"beta": Knob(knob="beta_1024", scale=1024), "increase": Fixed(fixed=1.0)}
        self.user_supplied(linux=Linux(user_supplied=True, parameters={**told, "slow_start_step": Fixed(fixed=1.0)}))
        plan = self.plan('{ kind = "mine", beta = 0.75 }', name="mine", file="mine.c", sha256="")
        assert self.reasons_of('{ kind = "mine", beta = 0.75 }') == []
        assert user_module.values(plan, user_module.of(plan)) == {"beta_1024": 768}

    def test_without_a_module_it_is_rejected(self):
        from ackclock.engines.linux import LinuxEngine

        self.user_supplied(linux=Linux(user_supplied=True))
        assert [each.what for each in LinuxEngine().unsupported(self.plan('"mine"'))] == [
            'congestion control "mine" without --module FILE'
        ]


class TestWhatIsMissing:
    @pytest.fixture(autouse=True)
    def guest(self, folder, monkeypatch):
        kernel = folder / "guests" / "linux"
        kernel.parent.mkdir()
        kernel.write_text("a guest")
        monkeypatch.setattr(cache, "home", lambda: folder / "cache")
        return kernel

    def test_headers(self, guest):
        said = rejection("--kernel", str(guest), "--module", "mine.c")
        assert "found no headers.tar.gz beside it; `ackclock kernel build` makes it" in said
        assert said.count("\n") == 1

    def test_tools(self, guest, monkeypatch):
        monkeypatch.setattr(bpf, "tool_path", lambda name: None if name == "gcc" else name)
        assert rejection("--kernel", str(guest), "--module", "mine.c") == "--module: found no gcc; apt install them\n"

    def test_another_kind_of_kernel(self, guest):
        said = rejection("--kernel", str(guest), "--module", "mine.bpf.c")
        assert "found a BPF program with --kernel" in said
        assert "expected --kernel live" in said
        with pytest.raises(InputError, match=r"found a module with --kernel live; expected a guest, or a \.bpf\.c"):
            user_module.check(user_module.read(Path("mine.c")), "live")
        with pytest.raises(InputError, match="with the kernels of a testbed"):
            user_module.check(user_module.read(Path("mine.c")), "hosts")

    def test_another_engine(self):
        done = CliRunner().invoke(application, ["run", "mine.toml", "--module", "mine.c"])
        assert done.exit_code == 2
        assert done.stderr == '--module: found "mine.c" with --engine packet; expected --engine linux\n'

    def test_flows_that_have_it(self, guest, monkeypatch):
        monkeypatch.setattr(user_module, "compiled", lambda *_: None)
        Path("mine.toml").write_text(scenario(congestion='"reno"'))
        said = rejection("--kernel", str(guest), "--module", "mine.c")
        assert 'found no flows with congestion = "mine"' in said

    def test_a_comparison_rejects_it_with_the_same_message(self, guest, monkeypatch):
        compare = ("compare", "mine.toml", "--module", "mine.c", "--kernel", str(guest), "--out", "out")
        done = CliRunner().invoke(
            application, ["compare", "mine.toml", "--module", "mine.c", "--engine", "packet,fluid"]
        )
        assert (done.exit_code, done.stderr) == (
            2, '--module: found "mine.c" with --engine packet,fluid; expected --engine linux\n',
        )  # fmt: skip
        monkeypatch.setattr(user_module, "compiled", lambda *_: None)
        Path("mine.toml").write_text(scenario(congestion='"reno"'))
        done = CliRunner().invoke(application, [*compare, "--engine", "packet,linux"])
        assert (done.exit_code, Path("out").exists()) == (2, False)
        assert 'found no flows with congestion = "mine"' in done.stderr

    def test_a_scenario_names_no_module(self, folder):
        text = '[linux]\nmodule = "mine.c"\n' + scenario(congestion='"reno"')
        Path("mine.toml").write_text("".join(sorted(text.splitlines(True), key=lambda line: line == "")))
        with pytest.raises(InputError, match=r"linux\.module: found an unknown key"):
            ac.loads(scenario(congestion='"reno"') + '[linux]\nmodule = "mine.c"\n').plan()


def test_mistakes_are_the_compilers_first_lines():
    said = "\n".join([
        "In file included from mine.c:3:",
        *(f"mine.c:{line}:5: error: no such thing" for line in range(10, 20)),
        "make[1]: *** [mine.o] Error 1",
    ])  # fmt: skip
    lines = user_module.mistakes(said).splitlines()
    assert lines[0] == "mine.c:10:5: error: no such thing"
    assert len(lines) == bpf.MAX_MISTAKES
    undefined = user_module.mistakes('ERROR: modpost: "no_such" [/tmp/x/mine.ko] undefined!\nmake: *** Error 2\n')
    assert undefined == '--module: found "no_such"; expected what the kernel exports to modules'
    assert user_module.mistakes("gcc: out of memory\n") == "gcc: out of memory"


def test_a_live_kernel_has_it_while_runs_go_on_and_no_longer(folder, monkeypatch):
    said = []
    monkeypatch.setattr(bpf, "register", lambda source, values, _: said.append(("in", source.name, values)) or 7)
    monkeypatch.setattr(bpf, "unregister", lambda number: said.append(("out", number)))
    module = user_module.read(Path("mine.bpf.c"))
    user_module.bring(module)
    plan = TestItsCard().plan('"mine"', **user_module.option(module))
    with pytest.raises(RuntimeError), user_module.loaded(plan):
        said.append("running")
        raise RuntimeError
    assert said == [("in", "mine.bpf.c", {}), "running", ("out", 7)]


@pytest.fixture
def kernel_with_headers(guest_kernel):
    if not (guest_kernel.parent / config.PACKED).is_file():
        pytest.skip(f"the guest has no {config.PACKED}: run `make kernel`")
    missing = [tool for tool in user_module.TOOLS if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    return guest_kernel


def test_a_guest_runs_it_and_the_manifest_records_it(folder, kernel_with_headers, monkeypatch):
    done = run("--module", "mine.c")
    assert done.exit_code == 0, done.output
    manifest = json.loads(Path("out/manifest.json").read_text())
    module = user_module.read(Path("mine.c"))
    assert manifest["linux"]["module"] == {"name": "mine", "sha256": module.sha256}
    goodput_bps = 8 * ac.Dataset.read("out").flows["delivered_bytes"][0] / 3
    assert goodput_bps > 8e6
    monkeypatch.setattr(user_module, "_make", lambda *_: pytest.fail("it was compiled again"))
    assert user_module.compiled(module, kernel_with_headers).is_file()


def test_a_mistake_gives_the_compilers_lines(folder, kernel_with_headers):
    text = Path("mine.c").read_text()
    Path("mine.c").write_text(text.replace("tcp_slow_start(tp", "tcp_slow_strat(tp"))
    line = 1 + text[: text.index("tcp_slow_start(tp")].count("\n")
    assert rejection("--module", "mine.c").startswith(f"mine.c:{line}:")


SWEPT = """
[sweep]
"flows[0].congestion" = ["mine", "reno"]
"""


def sweep(*words):
    command = ["sweep", "swept.toml", "--engine", "linux", "--seed", "1", "--no-report", "--out", "out", *words]
    return CliRunner().invoke(application, command)


def test_points_of_a_sweep_have_it_too(folder, kernel_with_headers):
    Path("swept.toml").write_text(Path("mine.toml").read_text() + SWEPT)
    done = sweep("--module", "mine.c")
    assert done.exit_code == 0, done.output
    module = user_module.read(Path("mine.c"))
    found = sweeps.read(Path("out"))
    assert found.manifest["sweep"]["module"] == {"name": "mine", "sha256": module.sha256}
    assert found.table["goodput_bps"].min() > 8e6
    Path("mine.c").write_text(Path("mine.c").read_text() + "/* */\n")
    done = sweep("--module", "mine.c")
    assert (done.exit_code, "found an earlier sweep, which differs in: module" in done.stderr) == (2, True), done.output


def test_a_question_has_it_too(folder, kernel_with_headers):
    asked = (
        "mine.toml",
        "--require",
        "goodput >= 8Mbit",
        "--candidates",
        "reno,mine",
        "--repeats",
        "2",
        "--out",
        "answer",
    )
    done = CliRunner().invoke(application, ["find", *asked, "--engine", "linux", "--module", "mine.c", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads((Path("answer") / "answer.json").read_text())
    assert [point["verdict"] for point in found["points"]] == ["holds", "holds"]
    manifest = json.loads((Path("answer") / "manifest.json").read_text())
    assert manifest["find"]["module"]["sha256"] == user_module.read(Path("mine.c")).sha256
    done = CliRunner().invoke(application, ["find", *asked, "--module", "mine.c"])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    assert done.stderr.startswith('--module: found "mine.c" with --engine packet; expected --engine linux')


def test_a_sweep_is_rejected_like_a_run(folder):
    Path("swept.toml").write_text(scenario(congestion='"reno"') + SWEPT.replace('"mine", ', '"cubic", '))
    done = sweep("--module", "mine.c", "--engine", "packet")
    assert done.exit_code == 2
    assert done.stderr.startswith('--module: found "mine.c" with --engine packet; expected --engine linux')
    done = sweep("--module", "mine.bpf.c")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    assert not Path("out/points.parquet").exists()


def test_a_program_of_the_live_kernel_has_one_set_of_parameters(folder, monkeypatch):
    monkeypatch.setattr(user_module, "check", lambda *_: None)
    told = iter([{"increase": 1}, {"increase": 2}])
    monkeypatch.setattr(user_module, "values", lambda *_: next(told))
    options = run_jobs.Options("linux", kernel="live", module=Path("mine.bpf.c"))
    plan = run_jobs.load_scenario(Path("mine.toml"), options).plan()
    with pytest.raises(InputError, match="found points that give it different parameters; expected one set"):
        run_jobs.check_module([(plan, "linux"), (plan, "linux")], Path("mine.bpf.c"))
