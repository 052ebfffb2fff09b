"""The engine of the real Linux: its TCP and its queue disciplines, in a guest in virtual time or on this machine.

The plan becomes namespaces, cables and routes (`network`), ordinary commands (`script`) and a run spec (`process`)
that the process inside carries out: `crates/ackclock-linux`.
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ackclock import _core, algorithms
from ackclock.dataset import Dataset, folders
from ackclock.engines import features
from ackclock.engines.engine import Engine, PreflightReport, RunOptions, unsupported_features
from ackclock.engines.linux import disciplines, guest, live, network, process, routed, stack, traces
from ackclock.engines.linux.kernel import cache, user_module
from ackclock.engines.linux.network import Network
from ackclock.engines.linux.process import Order, order
from ackclock.engines.linux.testbed.layout import HOSTS, TESTBED
from ackclock.engines.linux.testbed.settings import unsupported as unsupported_on_testbed
from ackclock.engines.linux.traces import stepped
from ackclock.errors import InputError, Unsupported, UnsupportedError
from ackclock.input.fields import shown
from ackclock.plan import Plan

#: Packets up to this length are taken for ACKs where packets are lost at random.
ACK_BYTES = 255

UNSUPPORTED = {
    features.PACKET_LOG,
    features.LINK_CAPTURES,
    features.DELAYS,
    features.INSIDE,
    features.PATHS,
    features.ACK_THINNING,
    features.ECN_REWRITING,
    features.TUNNELS,
    features.MISBEHAVIOUR,
    features.ACK_COUNTING,
    features.MEDIA,
    features.QUIC,
}

#: Supported features besides congestion controls.
HAS = (features.ALL - UNSUPPORTED) | {features.queue(name) for name in disciplines.NAMES} | features.OF_TESTBEDS


class LinuxEngine(Engine):
    """Linux itself."""

    name = "linux"

    @property
    def supported_features(self) -> frozenset[str]:
        """Supported features, with the algorithms of user-supplied modules."""
        controls = {features.congestion(name) for name in algorithms.in_linux("congestion")}
        return frozenset({*HAS, *controls})

    def unavailable(self) -> str | None:
        """A guest's kernel, if none was made here; a plan may still ask for the kernel of this machine."""
        return None if cache.taken(cache.every()) else "there is no guest kernel; `ackclock kernel build` makes one"

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """List what the kernel lacks or has no setting for; of a live kernel also what it was built without."""
        lacking = unsupported_features(plan, self)
        lacking += [
            Unsupported(f"{features.congestion(kind)} without --module FILE", self.name)
            for kind in user_module.missing_modules(plan)
        ]
        lacking += [Unsupported(what, self.name) for what in dict.fromkeys(_finer(plan))]
        if _on_hosts(plan):
            return lacking + [Unsupported(what, self.name) for what in unsupported_on_testbed(plan)]
        asked = [what for what in features.features(plan) if what in features.OF_TESTBEDS]
        lacking += [Unsupported(f'{what}, with kernel = "guest" or "live"', self.name) for what in asked]
        if lacking or plan.options["linux"]["kernel"] != "live":
            return lacking
        setup = order(plan, 0, _laid(plan)).setup
        return [Unsupported(what, self.name) for what in live.missing(plan, setup)]

    def is_stochastic(self, plan: Plan) -> bool:
        """Starts, hashes and sizes draw from the seed, and so does a guest's kernel."""
        return True

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`, and `InputError` for what this machine lacks.

        Whatever `options.progress` raises ends the run, and nothing of it remains.
        """
        around = options or RunOptions()
        if reasons := self.unsupported(plan):
            raise UnsupportedError(reasons)
        if _on_hosts(plan):
            from ackclock.engines.linux import testbed

            return testbed.run(plan, seed, around)
        return _carried_out(plan, seed, around)

    def with_measurements(self, plan: Plan) -> Plan:
        """With what its testbed is to find out. Raises `HostError`, and `InputError` for what a host lacks."""
        if not _on_hosts(plan) or not plan.options[TESTBED]["measure"]:
            return plan
        from ackclock.engines.linux import testbed

        return testbed.measured(plan)

    def exclusive(self, plan: Plan) -> bool:
        """The hosts of a testbed have one network."""
        return _on_hosts(plan)

    def preflight(self, plan: Plan) -> PreflightReport | None:
        """Examine the hosts of a testbed; None if the plan has none."""
        if not _on_hosts(plan):
            return None
        from ackclock.engines.linux import testbed

        found = testbed.probe(plan)
        lines = {name: facts.line() for name, facts in found.facts.items()}
        return PreflightReport(lines, found.missing, found.doubts)


def _on_hosts(plan: Plan) -> bool:
    """Return True if the kernels are those of a testbed. Raises `InputError` if the plan has no testbed."""
    if plan.options["linux"]["kernel"] != HOSTS:
        return False
    if TESTBED not in plan.options:
        raise InputError('linux.kernel: found "hosts" without a testbed; expected network.topology = "testbed"')
    return True


def _finer(plan: Plan) -> Iterator[str]:
    """Yield unsupported parameters and combinations, beyond whole features."""
    yield from stack.unsupported(plan)
    for link in plan.links:
        if link.queue.discipline in disciplines.NAMES:
            yield from disciplines.unsupported(link.queue)
    if any(link.queue.discipline == "prio" for link in plan.links) and any(group.dscp for group in plan.groups):
        yield f'{features.CODEPOINTS} with queue discipline "prio"'
    losses = features.losses(plan)
    if any(loss["kind"] == "every" for loss in losses):
        yield "loss of every n-th packet"
    if traces.links_with_opportunities(plan) and plan.options["linux"]["kernel"] in ("live", HOSTS):
        yield features.OPPORTUNITIES
    if losses and any(group.tcp and group.tcp.packet_bytes <= ACK_BYTES for group in plan.groups):
        yield f"random loss of packets of {ACK_BYTES} B and less"
    yield from routed.unsupported(plan) if plan.nodes else network.unsupported(plan)


def _laid(plan: Plan) -> Network:
    """The hosts of the kernel that is there take time as it is: by default nothing is added."""
    steps = stepped(stack.as_it_is(plan) if plan.options["linux"]["kernel"] == "live" else plan)
    return routed.lay(steps) if plan.nodes else network.lay(steps)


def _carried_out(plan: Plan, seed: int, around: RunOptions) -> Dataset:
    """Everything that can be missing is looked for before anything is done."""
    options = plan.options["linux"]
    kernel = None if options["kernel"] == "live" else _kernel(options["kernel"])
    before = () if kernel is None else tuple(_loaded(plan, kernel))
    given = order(plan, seed, _laid(plan), before)
    with folders.temporary_folder() as folder:
        path, file = folder / "order.json", folder / "result.bin"
        with folders.write_errors(path):
            path.write_text(json.dumps(given.to_dict(file, around.capture_files(plan, seed))), encoding="utf-8")
        if kernel is None:
            live.run(guest.inside(path), around.progress)
        else:
            machine = guest.Guest(kernel, options["memory_bytes"], seed, stack.modules(plan))
            guest.run(machine, path, around.progress)
        return _read(given, file, around)


def _loaded(plan: Plan, kernel: Path) -> Iterator[str]:
    """The commands that load modules into a guest: ours, and the user's."""
    yield from stack.loaded(plan, kernel.parent / "modules")
    yield from traces.load_module(plan, kernel)
    if module := user_module.of(plan):
        yield stack.insmod(user_module.compiled(module, kernel), user_module.values(plan, module))


def ready(plan: Plan) -> None:
    """Compiles the module that a plan brings, if it does. Raises `InputError` with its mistakes."""
    if module := user_module.of(plan):
        kernel = plan.options["linux"]["kernel"]
        user_module.check(module, kernel)
        if kernel != "live":
            user_module.compiled(module, _kernel(kernel))


def _kernel(name: str) -> Path:
    """The file of a guest's kernel: "guest", a path, or a version or series in the cache. Raises `InputError`."""
    if name == "guest":
        return cache.chosen().kernel
    if "/" in name:
        return Path(name)
    if kept := cache.of_version(name):
        return kept.kernel
    known = ", ".join(f'"{kept.version}"' for kept in cache.every() if kept.current)
    raise InputError(f'linux.kernel: found {shown(name)}; expected "guest", "live", a path{known and f", or {known}"}')


def _about(given: Order, release: str) -> dict[str, Any]:
    """Return the manifest's entries on the kernel; `release` is the kernel's version."""
    live = given.plan.options["linux"]["kernel"] == "live"
    return {
        "release": release,
        **({"version": platform.version()} if live else {}),
        "mode": "live" if live else "guest",
        "setup": list(given.setup),
        "sysctls": dict(given.plan.options["linux"]["sysctls"]),
        "parameters": stack.modules(given.plan),
        **(
            {"module": {"name": module.name, "sha256": module.sha256}} if (module := user_module.of(given.plan)) else {}
        ),
    }


def _read(given: Order, file: Path, around: RunOptions) -> Dataset:
    found = _core.linux_result(file.read_bytes())
    about = _about(given, str(found["kernel"]["release"][0]))
    of_run: dict[str, Any] = {"memory_pressures": int(found["kernel"]["memory_pressures"][0])}
    doubts = [
        *process.squeezed(of_run["memory_pressures"]),
        *process.uncaptured(int(found["kernel"]["capture_lost_p"][0])),
    ]
    if about["mode"] == "live":
        of_run["held"] = process.timing_quality(given.plan, found)
        doubts += process.doubts(given.plan, of_run["held"])
    for doubt in doubts:
        warnings.warn(doubt, stacklevel=2)
    return process.dataset(given.plan, given.seed, found, around, about, of_run)
