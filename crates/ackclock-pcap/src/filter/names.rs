//! Names in filter expressions: protocols, constants, services, and what is not supported.
//!
//! Numbers: IANA, *Protocol Numbers*, *IEEE 802 Numbers*, *Service Name and Transport Protocol Port Number Registry*,
//! *ICMP Parameters*; the names are those of pcap-filter(7).

use super::frame::{ARP, IPV4, IPV6, RARP};

/// A protocol that qualifies a primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The link layer.
    Link,
    /// A protocol above the link layer, by `EtherType` or LLC service access point.
    Network(u16),
    /// A protocol above these versions of IP, by its number.
    Transport(u8, Versions),
}

/// Versions of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    Four,
    Six,
    Both,
}

pub const IP: Protocol = Protocol::Network(IPV4);
pub const IP6: Protocol = Protocol::Network(IPV6);
/// Protocols with ports.
pub const WITH_PORTS: [u8; 3] = [132, 6, 17];

const PROTOCOLS: [(&str, Protocol); 34] = [
    ("ether", Protocol::Link),
    ("link", Protocol::Link),
    ("ppp", Protocol::Link),
    ("slip", Protocol::Link),
    ("fddi", Protocol::Link),
    ("tr", Protocol::Link),
    ("wlan", Protocol::Link),
    ("ip", IP),
    ("ip6", IP6),
    ("arp", Protocol::Network(ARP)),
    ("rarp", Protocol::Network(RARP)),
    ("atalk", Protocol::Network(0x809b)),
    ("aarp", Protocol::Network(0x80f3)),
    ("decnet", Protocol::Network(0x6003)),
    ("lat", Protocol::Network(0x6004)),
    ("sca", Protocol::Network(0x6007)),
    ("mopdl", Protocol::Network(0x6001)),
    ("moprc", Protocol::Network(0x6002)),
    ("iso", Protocol::Network(0xfe)),
    ("stp", Protocol::Network(0x42)),
    ("ipx", Protocol::Network(0xe0)),
    ("netbeui", Protocol::Network(0xf0)),
    ("tcp", Protocol::Transport(6, Versions::Both)),
    ("udp", Protocol::Transport(17, Versions::Both)),
    ("sctp", Protocol::Transport(132, Versions::Both)),
    ("pim", Protocol::Transport(103, Versions::Both)),
    ("ah", Protocol::Transport(51, Versions::Both)),
    ("esp", Protocol::Transport(50, Versions::Both)),
    ("icmp", Protocol::Transport(1, Versions::Four)),
    ("igmp", Protocol::Transport(2, Versions::Four)),
    ("igrp", Protocol::Transport(9, Versions::Four)),
    ("vrrp", Protocol::Transport(112, Versions::Four)),
    ("carp", Protocol::Transport(112, Versions::Four)),
    ("icmp6", Protocol::Transport(58, Versions::Six)),
];

/// Names of values that are compared with fields: RFC 792, RFC 4443, RFC 4861, RFC 9293.
const CONSTANTS: [(&str, u32); 50] = [
    ("icmptype", 0),
    ("icmpcode", 1),
    ("icmp-echoreply", 0),
    ("icmp-unreach", 3),
    ("icmp-sourcequench", 4),
    ("icmp-redirect", 5),
    ("icmp-echo", 8),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11),
    ("icmp-paramprob", 12),
    ("icmp-tstamp", 13),
    ("icmp-tstampreply", 14),
    ("icmp-ireq", 15),
    ("icmp-ireqreply", 16),
    ("icmp-maskreq", 17),
    ("icmp-maskreply", 18),
    ("icmp6type", 0),
    ("icmp6code", 1),
    ("icmp6-destinationunreach", 1),
    ("icmp6-packettoobig", 2),
    ("icmp6-timeexceeded", 3),
    ("icmp6-parameterproblem", 4),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-multicastlistenerquery", 130),
    ("icmp6-multicastlistenerreportv1", 131),
    ("icmp6-multicastlistenerdone", 132),
    ("icmp6-routersolicit", 133),
    ("icmp6-routeradvert", 134),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-neighboradvert", 136),
    ("icmp6-redirect", 137),
    ("icmp6-routerrenum", 138),
    ("icmp6-nodeinformationquery", 139),
    ("icmp6-nodeinformationresponse", 140),
    ("icmp6-ineighbordiscoverysolicit", 141),
    ("icmp6-ineighbordiscoveryadvert", 142),
    ("icmp6-multicastlistenerreportv2", 143),
    ("icmp6-homeagentdiscoveryrequest", 144),
    ("icmp6-homeagentdiscoveryreply", 145),
    ("tcpflags", 13),
    ("tcp-fin", 0x01),
    ("tcp-syn", 0x02),
    ("tcp-rst", 0x04),
    ("tcp-push", 0x08),
    ("tcp-ack", 0x10),
    ("tcp-urg", 0x20),
    ("tcp-ece", 0x40),
    ("tcp-cwr", 0x80),
];

/// Protocols above IP that have no primitive of their own.
const IP_PROTOCOLS: [(&str, u32); 22] = [
    ("ggp", 3),
    ("ipencap", 4),
    ("st", 5),
    ("egp", 8),
    ("igp", 9),
    ("dccp", 33),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("rsvp", 46),
    ("gre", 47),
    ("ipv6-icmp", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("eigrp", 88),
    ("ospf", 89),
    ("ipip", 94),
    ("etherip", 97),
    ("l2tp", 115),
    ("isis", 124),
    ("udplite", 136),
    ("mpls-in-ip", 137),
];

/// Services that captures of TCP meet, with the port of each.
const SERVICES: [(&str, u32); 68] = [
    ("echo", 7),
    ("discard", 9),
    ("daytime", 13),
    ("chargen", 19),
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("time", 37),
    ("whois", 43),
    ("tacacs", 49),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("gopher", 70),
    ("finger", 79),
    ("http", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("nntp", 119),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("imap2", 143),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("bgp", 179),
    ("irc", 194),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("isakmp", 500),
    ("exec", 512),
    ("login", 513),
    ("shell", 514),
    ("syslog", 514),
    ("printer", 515),
    ("submissions", 465),
    ("submission", 587),
    ("ipp", 631),
    ("ldaps", 636),
    ("rsync", 873),
    ("domain-s", 853),
    ("ftps-data", 989),
    ("ftps", 990),
    ("imaps", 993),
    ("pop3s", 995),
    ("socks", 1080),
    ("openvpn", 1194),
    ("ms-sql-s", 1433),
    ("radius", 1812),
    ("mqtt", 1883),
    ("nfs", 2049),
    ("iscsi-target", 3260),
    ("mysql", 3306),
    ("ms-wbt-server", 3389),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("xmpp-client", 5222),
    ("postgresql", 5432),
    ("amqp", 5672),
    ("x11", 6000),
    ("redis", 6379),
    ("http-alt", 8080),
];

/// Primitives of pcap-filter(7) for other captures, and those that need tables of the machine.
const UNSUPPORTED: [&str; 62] = [
    "inbound",
    "outbound",
    "ifname",
    "on",
    "rnr",
    "rulenum",
    "reason",
    "rset",
    "ruleset",
    "srnr",
    "subrulenum",
    "action",
    "ifindex",
    "type",
    "subtype",
    "dir",
    "direction",
    "addr1",
    "addr2",
    "addr3",
    "addr4",
    "ra",
    "ta",
    "address1",
    "address2",
    "address3",
    "address4",
    "pppoed",
    "pppoes",
    "geneve",
    "vxlan",
    "gateway",
    "protochain",
    "clnp",
    "esis",
    "es-is",
    "isis",
    "is-is",
    "l1",
    "l2",
    "iih",
    "lsp",
    "snp",
    "csnp",
    "psnp",
    "vpi",
    "vci",
    "lane",
    "oamf4s",
    "oamf4e",
    "oamf4",
    "oam",
    "metac",
    "bcc",
    "sc",
    "ilmic",
    "connectmsg",
    "metaconnect",
    "radio",
    "llc",
    "byte",
    "netmask",
];

/// The protocol of this name.
pub fn protocol(name: &str) -> Option<Protocol> {
    find(&PROTOCOLS, name)
}

/// The constant of this name.
pub fn constant(name: &str) -> Option<u32> {
    find(&CONSTANTS, name)
}

/// The port of a service.
pub fn port(name: &str) -> Option<u32> {
    find(&SERVICES, name)
}

/// The number of a protocol above IP.
pub fn ip_protocol(name: &str) -> Option<u32> {
    match protocol(name) {
        Some(Protocol::Transport(number, _)) => Some(number.into()),
        _ => find(&IP_PROTOCOLS, name),
    }
}

/// The number of a protocol above the link layer.
pub fn link_protocol(name: &str) -> Option<u32> {
    match protocol(name) {
        Some(Protocol::Network(number)) => Some(number.into()),
        _ => None,
    }
}

/// Return true for primitives of pcap-filter(7) that are rejected.
pub fn is_unsupported(name: &str) -> bool {
    UNSUPPORTED.contains(&name)
}

fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}
