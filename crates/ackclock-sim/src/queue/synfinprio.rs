//! `synfinprio`: SYNs and FINs before everything else.
//!
//! T. Braud's thesis of 2016, section 7.4 ("SYN/FIN Prio"). As `synprio`, with the packets that end a connection
//! also in the FIFO that is served first: a lost FIN too is recovered only by a timeout.
//!
//! Deviations: those of `synprio`. A FIN overtakes the data before it, with the data that it carries if it carries
//! some; the receiver keeps it until they have come.

use serde_json::Value;

use crate::queue::synprio::with_urgent;
use crate::queue::{Queue, QueueContext};

/// Make the discipline; an error for parameters other than `limit_packets`, or a limit below 1.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    with_urgent(parameters, |kind| kind.opens() || kind.closes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;
    use crate::queue::synprio::testing::{offer, order, KINDS};
    use crate::queue::testing::CONTEXT;
    use serde_json::json;

    fn synfinprio(limit: u32) -> Queue {
        make(&json!({ "limit_packets": limit }), &CONTEXT).expect("valid parameters")
    }

    #[test]
    fn only_syns_and_fins_go_first() {
        let mut queue = synfinprio(10);
        assert!(offer(&mut queue, &KINDS).is_empty());
        let expected = [
            Kind::Fin,
            Kind::FinAck,
            Kind::Syn,
            Kind::SynAck,
            Kind::Data,
            Kind::Ack,
            Kind::LastAck,
        ];
        assert_eq!(order(&mut queue), expected);
    }

    #[test]
    fn neither_a_syn_nor_a_fin_is_dropped_while_data_are() {
        let mut queue = synfinprio(4);
        assert_eq!(offer(&mut queue, &[Kind::Data; 10]), [Kind::Data; 6]);
        let urgent = [Kind::Syn, Kind::SynAck, Kind::Fin, Kind::FinAck];
        assert!(offer(&mut queue, &urgent).is_empty());
    }

    #[test]
    fn wrong_parameters_are_rejected() {
        assert!(make(&json!({ "limit_packets": 0 }), &CONTEXT).is_err());
        assert!(make(&json!({}), &CONTEXT).is_err());
    }
}
