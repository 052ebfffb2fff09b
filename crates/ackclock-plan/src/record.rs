//! Records of a run.

use ackclock_core::Time;
use serde::Deserialize;

/// Records to write.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of its own
pub struct RecordPlan {
    /// Period of the flow and queue samples.
    #[serde(rename = "interval_s")]
    pub interval: Time,
    /// Log every packet.
    pub packets: bool,
    /// Vantage points of packet captures.
    pub pcap: PcapPlan,
    /// Sample the flows of generated traffic too.
    pub traffic: bool,
    /// Sample every link's queue, not only the bottlenecks'.
    pub all_links: bool,
    /// Measure how long data packets take from end to end.
    pub delays: bool,
    /// Sample what CUBIC looks at inside.
    pub cubic_state: bool,
    /// Write down the links of each routed flow's path.
    pub paths: bool,
}

/// Packet captures: whether there is one, which is the senders', or from where each is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum PcapPlan {
    /// One at the senders, or none.
    Senders(bool),
    /// A file for each.
    Each(Vec<Vantage>),
}

impl PcapPlan {
    /// From where captures are written, one each.
    pub fn vantages(&self) -> &[Vantage] {
        match self {
            PcapPlan::Senders(false) => &[],
            PcapPlan::Senders(true) => &[Vantage::Senders],
            PcapPlan::Each(vantages) => vantages,
        }
    }
}

/// A point from which packets are seen.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Vantage {
    /// The hosts that send data.
    Senders,
    /// The hosts that receive them.
    Receivers,
    /// A link, by its name.
    Link(String),
}

impl TryFrom<String> for Vantage {
    type Error = String;

    fn try_from(text: String) -> Result<Vantage, String> {
        match text.as_str() {
            "senders" => Ok(Vantage::Senders),
            "receivers" => Ok(Vantage::Receivers),
            _ => match text.strip_prefix("link:") {
                Some(name) => Ok(Vantage::Link(name.to_owned())),
                None => Err(format!("no vantage is called {text:?}")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vantages(json: &str) -> Option<Vec<Vantage>> {
        let plan: Option<PcapPlan> = serde_json::from_str(json).ok();
        plan.map(|plan| plan.vantages().to_vec())
    }

    #[test]
    fn captures_are_none_the_senders_or_a_list() {
        assert_eq!(vantages("false"), Some(vec![]));
        assert_eq!(vantages("true"), Some(vec![Vantage::Senders]));
        let link = Vantage::Link("a>b".to_owned());
        assert_eq!(
            vantages(r#"["receivers", "link:a>b"]"#),
            Some(vec![Vantage::Receivers, link])
        );
        assert_eq!(vantages(r#"["sender"]"#), None);
    }
}
