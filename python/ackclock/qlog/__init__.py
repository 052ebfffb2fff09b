"""Read qlog, the event logs that QUIC implementations write.

draft-ietf-quic-qlog-main-schema (the file and its traces) and draft-ietf-quic-qlog-quic-events (the events). Logs in
use are of many of its versions: draft-00 and draft-01 (events as arrays, whose columns `event_fields` names), draft-02
and 0.3 (events as objects, `transport:packet_sent`, JSON or JSON-SEQ), 0.4 and the present drafts
(`quic:packet_sent`). This reader is of all of them at once: it takes a value from wherever a version has it, ignores
what it does not know, and rejects a file only if it has no trace. Its deviations from the drafts:

- Every field may be absent or of another type; it is unknown then.
- A file that ends early (a process that was killed) is read as far as it goes, with a note.
- Records of JSON-SEQ may lack their separator (newline-delimited JSON, as older quic-go and mvfst write it).
- Times and round-trip times are in milliseconds, or in microseconds where the trace says so (picoquic, old mvfst).
"""

from ackclock.qlog.connection import Acked, Connection, Lost, Metrics, Packet, ProbeTimeout, Sent, State, connections
from ackclock.qlog.records import Log, Record, Trace, is_qlog, parse, read

__all__ = [
    "Acked",
    "Connection",
    "Log",
    "Lost",
    "Metrics",
    "Packet",
    "ProbeTimeout",
    "Record",
    "Sent",
    "State",
    "Trace",
    "connections",
    "is_qlog",
    "parse",
    "read",
]
