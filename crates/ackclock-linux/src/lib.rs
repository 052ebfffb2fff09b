//! What runs inside the namespaces of a real Linux kernel: sockets, traffic, `TCP_INFO` and queue samples.
//!
//! One process sets the network up by ordinary `ip`, `tc` and `sysctl` commands, serves all sockets of all namespaces, and
//! writes what it saw as the tables of the dataset.
