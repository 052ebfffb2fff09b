//! Changes of the ECN field by links: nodes that rewrite it, and IP-in-IP tunnels.
//!
//! RFC 6040 (tunnelling of ECN: sections 4.1 and 4.3 on the ingress, figure 4 on the egress), RFC 3168 section 9.1.1 (its
//! full-functionality option), RFC 2003 section 3.1 (tunnels of before ECN), RFC 3168 section 18 (changes on the path).
//!
//! ```text
//!   ingress ──▶ queue, which marks the outer header ──▶ transmitter ──▶ rewriting of the outer header ──▶ egress
//! ```
//!
//! Deviations: a tunnel spans one link, and its header adds no bytes.

use ackclock_plan::{EcnRewrite, Tunnel};

use crate::packet::{Ecn, Flags};

/// Flags of a packet that enters a tunnel: the outer header is visible, the inner one kept.
pub fn encapsulate(tunnel: Tunnel, flags: Flags) -> Flags {
    let inner = flags.ecn();
    let outer = match (tunnel, inner) {
        (Tunnel::Compatibility, _) => Ecn::NotEct,
        (Tunnel::Rfc3168, Ecn::Ce) => Ecn::Ect0,
        (Tunnel::Rfc6040 | Tunnel::CeLost | Tunnel::Rfc3168, _) => inner,
    };
    flags.with_ecn(outer).with_inner_ecn(inner)
}

/// Flags of a packet that leaves a tunnel; `None` if it is dropped.
pub fn decapsulate(tunnel: Tunnel, flags: Flags) -> Option<Flags> {
    let (inner, outer) = (flags.inner_ecn(), flags.ecn());
    let forwarded = match tunnel {
        Tunnel::Rfc6040 | Tunnel::Compatibility => combine(inner, outer)?,
        Tunnel::Rfc3168 if outer == Ecn::Ce && inner == Ecn::NotEct => return None,
        Tunnel::Rfc3168 if outer == Ecn::Ce => Ecn::Ce,
        Tunnel::Rfc3168 | Tunnel::CeLost => inner,
    };
    Some(flags.with_ecn(forwarded).with_inner_ecn(Ecn::NotEct))
}

/// Codepoint that a decapsulator forwards (RFC 6040 figure 4); `None`: it drops the packet.
fn combine(inner: Ecn, outer: Ecn) -> Option<Ecn> {
    match (inner, outer) {
        (Ecn::NotEct, Ecn::Ce) => None,
        (Ecn::NotEct, _) => Some(Ecn::NotEct),
        (_, Ecn::Ce) | (Ecn::Ce, _) => Some(Ecn::Ce),
        (Ecn::Ect0, Ecn::Ect1) => Some(Ecn::Ect1),
        (Ecn::Ect0 | Ecn::Ect1, _) => Some(inner),
    }
}

/// Flags of a packet behind a node that rewrites the ECN field of its outermost header.
pub fn rewrite(rewriting: EcnRewrite, flags: Flags) -> Flags {
    match (rewriting, flags.ecn()) {
        (EcnRewrite::Bleach, _) => flags.with_ecn(Ecn::NotEct),
        (EcnRewrite::Ect1ToEct0, Ecn::Ect1) | (EcnRewrite::CeToEct0, Ecn::Ce) => {
            flags.with_ecn(Ecn::Ect0)
        }
        _ => flags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ecn::{Ce, Ect0, Ect1, NotEct};

    const ALL: [Ecn; 4] = [NotEct, Ect0, Ect1, Ce];

    fn leaving(tunnel: Tunnel, inner: Ecn, outer: Ecn) -> Option<Ecn> {
        let flags = Flags::of(outer).with_inner_ecn(inner);
        decapsulate(tunnel, flags).map(Flags::ecn)
    }

    #[test]
    fn an_egress_combines_the_headers_as_figure_4_of_rfc_6040() {
        let figure = [
            (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
            (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
            (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
            (Ce, [Some(Ce); 4]),
        ];
        for (inner, row) in figure {
            let found = ALL.map(|outer| leaving(Tunnel::Rfc6040, inner, outer));
            assert_eq!(found, row, "{inner:?}");
            assert_eq!(
                ALL.map(|outer| leaving(Tunnel::Compatibility, inner, outer)),
                row
            );
        }
    }

    #[test]
    fn an_ingress_sets_the_outer_header_by_its_mode() {
        let outer = |tunnel| ALL.map(|inner| encapsulate(tunnel, Flags::of(inner)).ecn());
        assert_eq!(outer(Tunnel::Rfc6040), ALL);
        assert_eq!(outer(Tunnel::CeLost), ALL);
        assert_eq!(outer(Tunnel::Compatibility), [NotEct; 4]);
        assert_eq!(outer(Tunnel::Rfc3168), [NotEct, Ect0, Ect1, Ect0]);
    }

    #[test]
    fn an_unmarked_packet_passes_every_tunnel_unchanged() {
        for tunnel in [
            Tunnel::Rfc6040,
            Tunnel::Compatibility,
            Tunnel::Rfc3168,
            Tunnel::CeLost,
        ] {
            for ecn in ALL {
                let flags = Flags::of(ecn).with_echo(5).with_retransmitted(true);
                let left = decapsulate(tunnel, encapsulate(tunnel, flags));
                assert_eq!(left, Some(flags), "{tunnel:?}");
            }
        }
    }

    #[test]
    fn a_mark_in_a_tunnel_of_before_ecn_is_lost() {
        assert_eq!(leaving(Tunnel::CeLost, Ect0, Ce), Some(Ect0));
        assert_eq!(leaving(Tunnel::Rfc3168, Ect0, Ce), Some(Ce));
        assert_eq!(leaving(Tunnel::Rfc3168, NotEct, Ce), None);
    }

    #[test]
    fn a_node_rewrites_only_what_its_kind_names() {
        let found = |kind| ALL.map(|ecn| rewrite(kind, Flags::of(ecn)).ecn());
        assert_eq!(found(EcnRewrite::Bleach), [NotEct; 4]);
        assert_eq!(found(EcnRewrite::Ect1ToEct0), [NotEct, Ect0, Ect0, Ce]);
        assert_eq!(found(EcnRewrite::CeToEct0), [NotEct, Ect0, Ect1, Ect0]);
    }
}
