"""LinCubic and AccuCubic in C: on the host against closed forms and the specs, and in the kernel that is running."""

import ctypes
import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ackclock import algorithms
from ackclock.cli import kernel as kernels
from ackclock.cli.program import application
from ackclock.engines.linux.kernel import bpf, bundled_modules
from ackclock.errors import InputError

HERE = Path(__file__).parent

requires_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (apt install gcc)")


class Module:
    """A congestion control compiled for the host, and one connection of it."""

    def __init__(self, library, **parameters):
        self.library = ctypes.CDLL(str(library))
        kind = library.stem
        spec = algorithms.spec("congestion", kind).parameters
        for key, value in bundled_modules.values(kind, bpf.complete(kind, parameters)).items():
            of = ctypes.c_bool if key in spec and spec[key].kind == "boolean" else ctypes.c_uint
            of.in_dll(self.library, key).value = value

    def start(self, window):
        self.library.start(window)
        return self

    def lose(self):
        return self.library.lose()

    def acknowledge(self, now_s, acked=1, rtt_s=0.1, full=True):
        now_us = ctypes.c_uint64(round(now_s * 1e6))
        return self.library.acknowledge(now_us, acked, round(rtt_s * 1e6), full)

    def rounds(self, count, rtt_s, start_s=10.0):
        """Windows at the end of each round trip; the ACKs of a window are spread evenly over it."""
        windows = []
        for turn in range(count):
            flight = self.library.window()
            for ack in range(flight):
                self.acknowledge(start_s + rtt_s * (turn + ack / flight), rtt_s=rtt_s)
            windows.append(self.library.window())
        return windows

    def reached_s(self, windows):
        """Seconds of an epoch after which the window first was each of these; an ACK each 10 ms of an RTT of 1 s."""
        ticks, reached = 0, []
        for window in windows:
            while self.library.window() < window:
                self.acknowledge(5 + ticks / 100, rtt_s=1.0)
                ticks += 1
            reached.append((ticks - 1) / 100)
        return reached


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    for name in bundled_modules.NAMES:
        source = f'-DMODULE="{bundled_modules.FOLDER / name}.c"'
        options = ["-O2", "-Wall", "-Werror", "-Wno-unused", "-shared", "-fPIC", source]
        subprocess.run(["cc", *options, str(HERE / "module_on_host.c"), "-o", str(folder / f"{name}.so")], check=True)
    return {name: folder / f"{name}.so" for name in bundled_modules.NAMES}


@pytest.fixture
def lincubic(libraries):
    return lambda **parameters: Module(libraries["lincubic"], **parameters)


@pytest.fixture
def accucubic(libraries):
    return lambda **parameters: Module(libraries["accucubic"], **parameters)


@requires_compiler
class TestCurve:
    """The whole numbers of the kernel beside RFC 9438's formulas in floating point."""

    @pytest.fixture
    def library(self, libraries):
        return ctypes.CDLL(str(libraries["lincubic"]))

    def test_cube_root_is_rounded_down(self, library):
        @given(st.integers(0, 2**63))
        def check(cube):
            root = library.root(ctypes.c_uint64(cube))
            assert root**3 <= cube < (root + 1) ** 3

        check()

    def test_k_is_the_cube_root_of_what_is_missing_over_c(self, library):
        @given(st.integers(0, 500_000), st.integers(100, 100_000_000))
        def check(below, c_micro):
            exact_ms = 1000 * (below * 1e6 / c_micro) ** (1 / 3)
            assert exact_ms * (1 - 1e-4) - 1 <= library.k_ms(below, c_micro) <= exact_ms + 1e-6 * exact_ms

        check()

    def test_w_cubic_is_within_a_segment(self, library):
        @given(st.integers(0, 200_000), st.integers(0, 100_000), st.integers(100, 10_000_000))
        def check(t_ms, k_ms, c_micro):
            origin = 2**31
            curve = (library.curve(ctypes.c_uint64(t_ms), k_ms, origin, c_micro, down) for down in (False, True))
            towards_flat, down = (window & 0xFFFFFFFF for window in curve)
            exact = min(origin + c_micro / 1e6 * ((t_ms - k_ms) / 1000) ** 3, 2**32 - 1)
            slack = 1 + abs(exact - origin) * 0.01  # C = 0.0001: a percent of a segment's fraction
            assert abs(towards_flat - exact) <= slack
            assert abs(down - exact) <= slack
            assert down <= towards_flat

        check()

    def test_longest_times_and_windows_do_not_overflow(self, library):
        for c_micro in (100, 400_000, 100_000_000):
            far = library.curve(ctypes.c_uint64(2**40), 0, 1000, c_micro, False) & 0xFFFFFFFF
            assert far > 900_000, "as wide as TCP can be"
            assert library.k_ms(2**31, c_micro) <= 2**21


@requires_compiler
class TestLinCubic:
    def test_within_the_distance_it_grows_by_one_each_round_trip(self, lincubic):
        for distance in (1, 2, 4):
            module = lincubic(distance=distance).start(83)
            module.lose()
            windows = [66, *module.rounds(30, 0.5)]
            near = [b - a for a, b in itertools.pairwise(windows) if -distance <= a - 83 < distance]
            assert near == [1] * (2 * distance), windows

    def test_outside_that_region_it_follows_the_cubic_curve(self, lincubic):
        # RTT 20 ms: the curve one round trip ahead is the curve itself, and Reno is left out.
        module = lincubic(distance=0, reno_friendly=False).start(1000)
        assert module.lose() == 799
        k_s = (201 / 0.4) ** (1 / 3)
        for turn, window in enumerate(module.rounds(700, 0.02)):
            t_s = 0.02 * (turn + 1)
            if abs(t_s - k_s) < 1.4:  # its own linear growth at W_max, and the plateau
                continue
            low, high = (1000 + 0.4 * (t_s + ahead - k_s) ** 3 for ahead in (-0.04, 0.03))
            assert low - 1 <= window <= high + 1, (t_s, window)

    def test_without_w_max_it_grows_by_5_percent(self, lincubic):
        module = lincubic(reno_friendly=False).start(250)
        module.library.time_out()
        assert module.acknowledge(1, acked=198) == 199, "819/1024, the threshold"
        assert module.acknowledge(1.01) == 199
        assert 9 <= module.rounds(1, 0.1, start_s=1.02)[0] - 199 <= 11, "one for 20 acknowledged segments"

    def test_with_tick_0_it_is_nowhere_behind_reno(self, lincubic):
        # RTT 2 ms, from 47 on: one segment per 23/8 windows of ACKs (β = 0.8).
        module = lincubic(tick="0ms", distance=0).start(60)
        assert module.lose() == 47
        assert abs(module.rounds(200, 0.002)[-1] - (47 + 200 / 2.875)) <= 2


@requires_compiler
class TestAccuCubic:
    def test_the_window_passes_w_max_plus_n_when_the_curve_does(self, accucubic):
        module = accucubic().start(100)
        assert module.lose() == 79, "819/1024"
        # K = ∛(21 / 0.4) = 3.744 s; then ∛(n / 0.4): 1.357, 1.710, 1.957 and 2.154 s (section 5.5.1).
        expected = [3.744 + after for after in (0, 1.357, 1.710, 1.957, 2.154)]
        for reached, exact in zip(module.reached_s([100, 101, 102, 103, 104]), expected, strict=True):
            assert -0.001 < reached - exact < 0.0111

    def test_below_w_max_it_is_on_the_curve_too(self, accucubic):
        module = accucubic().start(100)
        module.lose()
        # 100 − 0.4 (3.744 − t)³ is 90 at 3.744 − ∛25 = 0.820 s, 99 at 3.744 − 1.357 = 2.387 s.
        for reached, exact in zip(module.reached_s([90, 99]), (0.820, 2.387), strict=True):
            assert -0.001 < reached - exact < 0.0111

    def test_an_ack_raises_the_window_by_no_more_than_it_acknowledges(self, accucubic):
        module = accucubic().start(100)
        module.lose()
        module.acknowledge(1)
        assert module.acknowledge(60, acked=3) == 82

    def test_fast_convergence_puts_the_flat_point_lower(self, accucubic):
        # A second loss, at 79: from 63 to 79 · (1024 + 819) / 2048 = 71, or to 79 itself.
        for fast_convergence, window, exact in ((True, 72, 2.714 + 1.357), (False, 80, 3.420 + 1.357)):
            module = accucubic(fast_convergence=fast_convergence).start(100)
            module.lose()
            assert module.lose() == 63
            assert -0.001 < module.reached_s([window])[0] - exact < 0.0121

    def test_an_idle_application_stops_the_curve(self, accucubic):
        module = accucubic(reno_friendly=False).start(100)
        module.lose()
        before = module.acknowledge(1)
        module.library.resume(ctypes.c_uint64(61_000_000), ctypes.c_uint64(60_000_000))
        assert module.acknowledge(61, acked=30) == before


@requires_compiler
class TestBoth:
    @pytest.fixture(params=bundled_modules.NAMES)
    def module(self, request, libraries):
        own = {"tick": "0ms", "distance": 0} if request.param == "lincubic" else {}
        return lambda **parameters: Module(libraries[request.param], **own, **parameters)

    @pytest.mark.parametrize(("beta", "kept"), [(0.8, 79), (0.7, 70), (0.5, 50)])
    def test_beta_is_what_a_loss_leaves(self, module, beta, kept):
        # In 1/1024: 0.8 is 819, 0.7 is 717.
        assert module(beta=beta).start(100).lose() == kept

    def test_the_window_never_falls_below_two(self, module):
        assert module().start(2).lose() == 2

    def test_a_larger_c_is_steeper(self, module):
        def grown(c):
            started = module(c=c, reno_friendly=False).start(200)
            started.lose()
            return started.rounds(30, 0.2)[-1]

        assert grown(0.04) < grown(0.4) < grown(4)

    @pytest.mark.parametrize(("catch_up", "expected"), [(False, 40 / 1.875), (True, 40)])
    def test_renos_window_is_a_lower_bound(self, module, catch_up, expected):
        # β = 0.7, RTT 10 ms: 1/1.875 of a segment per RTT, or a whole one where W_est caught up with the old window.
        started = module(beta=0.7, c=0.0001, reno_catch_up=catch_up).start(60)
        started.lose()
        windows = started.rounds(100, 0.01)
        first = next(turn for turn, window in enumerate(windows) if window >= 61)
        assert abs(windows[first + 40] - windows[first] - expected) <= 2

    def test_slow_start_ends_at_the_threshold(self, module):
        started = module().start(100)
        started.lose()
        started.library.time_out()
        assert started.library.window() == 1
        threshold = started.library.threshold()
        started.acknowledge(1, acked=threshold - 1)
        assert started.library.window() == threshold

    def test_a_window_that_is_not_used_does_not_grow(self, module):
        started = module().start(100)
        started.lose()
        kept = started.library.window()
        assert [started.acknowledge(now, acked=10, full=False) for now in range(2, 60)] == [kept] * 58

    def test_without_the_correction_acks_count_and_not_segments(self, module):
        started = module(delayed_ack_correction=False).start(100)
        assert started.acknowledge(1, acked=2) == 101

    def test_it_has_the_cards_defaults(self, libraries):
        for name, library in libraries.items():
            spec = bundled_modules.values(name, bpf.complete(name, {}))
            code = (bundled_modules.FOLDER / "cubic.h").read_text() + (bundled_modules.FOLDER / f"{name}.c").read_text()
            defaults = {
                key.lower(): int(value) for key, value in re.findall(r"^#define (\w+) (\d+)$", code, re.MULTILINE)
            }
            assert {key: defaults[key] for key in spec} == spec, name
            assert ctypes.CDLL(str(library)).sensible()


class TestParameters:
    def test_values_are_counted_as_in_the_code(self):
        complete = bpf.complete("lincubic", {"c": 0.2, "beta": 0.7, "tick": "1ms", "distance": 3})
        values = bundled_modules.values("lincubic", complete)
        assert values["c_micro"] == 200_000
        assert values["beta_1024"] == 717
        assert values["tick_us"] == 1000
        assert values["distance"] == 3
        assert (
            values.keys() - {"tick_us", "distance"}
            == bundled_modules.values("accucubic", bpf.complete("accucubic", {})).keys()
        )

    def test_every_parameter_of_the_specs_is_supported(self):
        for name in bundled_modules.NAMES:
            spec = algorithms.spec("congestion", name)
            assert len(bundled_modules.values(name, bpf.complete(name, {}))) == len(spec.parameters) - 1, (
                "all but slow_start"
            )

    @pytest.mark.parametrize(
        ("name", "parameters", "message"),
        [
            ("cubik", {}, 'found "cubik"; expected'),
            ("lincubic", {"beta": 2.0}, "lincubic: beta: found 2.0; expected at most 0.99"),
            ("lincubic", {"bta": 0.7}, 'lincubic: bta: found an unknown key of lincubic; expected "beta"'),
            ("accucubic", {"distance": 2}, "accucubic: distance: found an unknown key"),
            ("lincubic", {"slow_start": "hystart"}, 'lincubic: slow_start: found "hystart"; expected "standard"'),
        ],
    )
    def test_a_module_that_cannot_be_loaded_is_reported_in_one_line(self, name, parameters, message):
        with pytest.raises(InputError, match=re.escape(message)) as raised:
            bpf.load(name, parameters)
        assert "\n" not in str(raised.value)

    def test_settings_are_a_scenarios_values(self):
        assert kernels.parameters(["beta=0.7", "reno_catch_up=true", "tick=1ms", "distance=3"]) == {
            "beta": 0.7,
            "reno_catch_up": True,
            "tick": "1ms",
            "distance": 3,
        }
        with pytest.raises(InputError, match="expected KEY=VALUE"):
            kernels.parameters(["beta"])


class TestWhatIsMissing:
    """Before anything is compiled or loaded."""

    @pytest.fixture(autouse=True)
    def nothing_loaded(self, monkeypatch, tmp_path):
        available = tmp_path / "available"
        available.write_text("reno cubic\n")
        monkeypatch.setattr(bpf, "AVAILABLE", available)
        monkeypatch.setattr(bpf, "BTF", available)
        self.may(monkeypatch, tmp_path, "000001ffffffffff")
        return available

    def may(self, monkeypatch, tmp_path, rights):
        status = tmp_path / "status"
        status.write_text(f"Name:\tackclock\nCapEff:\t{rights}\n")
        monkeypatch.setattr(bpf, "STATUS", status)

    def rejection(self, *words):
        result = CliRunner().invoke(application, ["kernel", *words])
        assert result.exit_code == 2, result.output
        assert result.stderr.count("\n") == 1
        return result.stderr

    def test_no_types(self, monkeypatch, tmp_path):
        monkeypatch.setattr(bpf, "BTF", tmp_path / "vmlinux")
        assert "CONFIG_DEBUG_INFO_BTF" in self.rejection("load", "lincubic")

    @pytest.mark.parametrize("rights", ["0000000000000000", "0000008000000000", "0000000000001000"])
    def test_no_rights(self, monkeypatch, tmp_path, rights):
        self.may(monkeypatch, tmp_path, rights)
        assert "CAP_BPF and CAP_NET_ADMIN" in self.rejection("load", "lincubic")

    def test_no_tool(self, monkeypatch):
        monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
        assert self.rejection("load", "lincubic") == "found no bpftool; apt install bpftool\n"

    def test_no_struct_ops(self, monkeypatch):
        monkeypatch.setattr(bpf, "_bpftool", lambda *_: "struct sock {};")
        assert "no BPF congestion controls" in self.rejection("load", "lincubic")

    def test_loaded_already(self, nothing_loaded):
        nothing_loaded.write_text("reno cubic lincubic\n")
        assert bpf.loaded() == ("lincubic",)
        assert "is loaded already" in self.rejection("load", "lincubic")

    def test_not_loaded(self):
        assert "is not loaded" in self.rejection("unload", "lincubic")

    def test_in_use_as_the_default(self, monkeypatch, nothing_loaded):
        nothing_loaded.write_text("lincubic\n")
        monkeypatch.setattr(bpf, "DEFAULT", nothing_loaded)
        assert "is the default" in self.rejection("unload", "lincubic")


def missing_for_live():
    """Return the requirements of a live test that this machine does not meet; empty if it can run."""
    lacks = [tool for tool in ("bpftool", "clang", "ip", "tc", "unshare") if shutil.which(tool) is None]
    try:
        bpf._require_kernel()
    except (InputError, OSError) as error:
        lacks.append(str(error))
    if not Path("/usr/include/bpf/bpf_helpers.h").exists():
        lacks.append("libbpf-dev")
    if bpf.loaded():
        lacks.append("a kernel without what is to be loaded")
    return ", ".join(lacks)


@pytest.mark.skipif(bool(missing_for_live()), reason=f"live: needs {missing_for_live()}")
@pytest.mark.parametrize("name", bundled_modules.NAMES)
def test_live_it_is_loaded_carries_a_transfer_and_is_unloaded(name):
    runner = CliRunner()
    loaded = runner.invoke(application, ["kernel", "load", name, "--set", "beta=0.5"])
    assert loaded.exit_code == 0, loaded.output
    try:
        assert name in bpf.AVAILABLE.read_text().split()
        command = ["unshare", "--mount", "--net", sys.executable, str(HERE / "transfer.py"), name, "20000000"]
        result = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    finally:
        unloaded = runner.invoke(application, ["kernel", "unload", name])
    assert unloaded.exit_code == 0, unloaded.output
    assert name not in bpf.AVAILABLE.read_text().split()
    assert result["congestion"] == name
    assert result["received_bytes"] == 20_000_000
    assert result["retransmissions"] > 0, "the queue overflowed"
    largest = max(cwnd for cwnd, _ in result["samples"])
    assert min(ssthresh for _, ssthresh in result["samples"]) <= 0.5 * largest, "β = 0.5"
