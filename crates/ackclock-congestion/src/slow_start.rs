//! Slow start as a choice of its own: how fast it grows, and what ends it before a loss does.
//!
//! A loss-based controller reads the parameter `slow_start` and hands itself to [`SlowStart::control`]. The standard one
//! (RFC 5681 section 3.1) needs nothing else; any other is a [`super::detector`] around the controller.

use serde::Deserialize;

use super::detector::Detecting;
use super::hystart::HyStart;
use super::hystart_plus_plus::HyStartPlusPlus;
use super::search::Search;
use super::Controller;

/// The parameter `slow_start` of an algorithm spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SlowStart {
    /// RFC 5681 section 3.1: until a loss.
    #[serde(rename = "standard")]
    Standard,
    /// Linux's `HyStart`: [`super::hystart`].
    #[serde(rename = "hystart")]
    HyStart,
    /// RFC 9406: [`super::hystart_plus_plus`].
    #[serde(rename = "hystart++")]
    HyStartPlusPlus,
    /// draft-chung-ccwg-search: [`super::search`].
    #[serde(rename = "search")]
    Search,
}

impl SlowStart {
    /// Return the controller with this slow start.
    pub fn control<C: Controller + Clone + 'static>(self, controller: C) -> Box<dyn Controller> {
        match self {
            SlowStart::Standard => Box::new(controller),
            SlowStart::HyStart => Box::new(Detecting::new(controller, HyStart::from_start())),
            SlowStart::HyStartPlusPlus => {
                Box::new(Detecting::new(controller, HyStartPlusPlus::default()))
            }
            SlowStart::Search => Box::new(Detecting::new(controller, Search::default())),
        }
    }
}

#[cfg(test)]
mod tests;
