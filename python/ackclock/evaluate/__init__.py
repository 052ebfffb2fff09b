"""Evaluation of a congestion control algorithm by RFC 9743: scenarios, verdicts with intervals, and the dossier.

    scenario files ─▶ cases ─▶ sweeps of variants ─▶ findings (a verdict each) ─▶ dossier

RFC 9743 (Specifying New Congestion Control Algorithms, 2025) names criteria and no thresholds. Its yardstick is
relative (section 5.2): does a new algorithm do more harm than the standards-track algorithms? Each scenario therefore
runs with the candidate, with the baseline (CUBIC, RFC 9438) and with Reno (RFC 5681) in the same place, and with the
same seeds.
"""

from __future__ import annotations

#: Sections of RFC 9743 with criteria that runs can judge, and their titles in short.
SECTIONS = {
    "5.1.1": "Protection against congestion collapse",
    "5.1.2": "Protection against bufferbloat",
    "5.1.3": "Protection against high packet loss",
    "5.1.4": "Fairness within the algorithm",
    "5.1.5": "Short flows",
    "5.2": "Starvation; loss of feedback",
    "5.2.1": "Existing general-purpose congestion control",
    "5.2.2": "Real-time congestion control",
    "5.2.3": "Short and long flows of other algorithms",
    "6": "Range of rates, delays and queue depths",
    "6.1": "Paths with tail-drop queues",
    "6.2": "Tunnel behaviour",
    "6.3": "Wired paths",
    "6.4": "Wireless paths",
    "7.1": "Active queue management",
    "7.2": "Network circuit breakers",
    "7.3": "Paths with varying delay",
    "7.4": "Internet of Things",
    "7.5": "Paths with high delay",
    "7.6": "Misbehaving nodes",
    "7.7": "Extreme packet reordering",
    "7.8": "Transient events",
    "7.9": "Sudden changes in the path",
    "7.10": "Multipath transport",
    "7.11": "Data centres",
}

#: Why some sections have no scenario.
NOT_COVERED = {
    "7.10": "no engine has multipath transport",
}


def in_section(section: str, wanted: str) -> bool:
    """Return True if a section is the wanted one, or lies in it: 5.2.1 in 5.2, but 7.11 not in 7.1."""
    return f"{section}.".startswith(f"{wanted}.")
