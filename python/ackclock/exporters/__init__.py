"""Export scenarios as scripts for other programs, commented as a person would write them.

A file a program, each with `write(plan) -> Script`. What a program cannot say is named in the script's comments and in
`Script.notes`; where it would be another scenario, `ExportError` is raised. To add one, write such a file and add it to
`TARGETS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from ackclock.exporters.script import ExportError, Script
from ackclock.input import arguments
from ackclock.input.arguments import checked, one_of, optional
from ackclock.plan import Plan

__all__ = ["TARGETS", "ExportError", "Script", "export"]

#: Target of `--to` → description of the export. Each is a module here.
TARGETS: Mapping[str, str] = {
    "tc": "a shell script for network namespaces, or with a device for that alone",
    "flent": "a shell script that runs flent from one host to another",
    "mermaid": "the network as a diagram for Markdown",
    "ns2": "a simulation in Tcl for ns-2.35",
    "ns3": "a simulation in C++ for ns-3.37",
}


@checked(
    plan=arguments.a(Plan, 'a plan, as ackclock.load("…").plan() gives'),
    target=one_of(*TARGETS),
    device=optional(arguments.WORD),
    link=optional(arguments.WORD),
)
def export(plan: Plan, target: str, device: str | None = None, link: str | None = None) -> Script:
    """Return the script of a plan for another program.

    Args:
        plan: what to write.
        target: one of `TARGETS`.
        device: only with "tc": the script shapes this device as the bottleneck, and does nothing else.
        link: only with a device: the link that it is, such as "up"; None: the plan's bottleneck.

    Raises:
        InputError: an unknown target or link, or a device for another one than tc.
        ExportError: something without which the scenario would be another one.
    """
    if device is not None and target != "tc":
        arguments.wrong_value("device", device, 'a device with the target "tc" only')
    if link is not None:
        names = [each.name for each in plan.links]
        if device is None or link not in names:
            arguments.wrong_value("link", link, f"with a device, one of {', '.join(names)}")
        plan = replace(plan, bottleneck=names.index(link))
    module = import_module(f"ackclock.exporters.{target}")
    result: Script = module.write(plan) if device is None else module.of_device(plan, device)
    return result
