//! The controllers of many connections from one reading of their parameters.

use serde_json::Value;

use super::{make, Controller, Error};

/// A copy in a box of its own; every controller that is [`Clone`] has it.
pub trait Copied {
    /// The controller as it is now.
    fn copied(&self) -> Box<dyn Controller>;
}

impl<T: Controller + Clone + 'static> Copied for T {
    fn copied(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// What each connection of a group begins with.
pub struct Prototype {
    controller: Box<dyn Controller>,
    after_lost_syns: Box<dyn Controller>,
}

impl Prototype {
    /// Looks a controller up by name and reads its card's complete parameters.
    ///
    /// # Errors
    /// An unknown name, or parameters that are not those of the card.
    pub fn new(kind: &str, parameters: &Value, initial_window: u32) -> Result<Prototype, Error> {
        Ok(Prototype {
            controller: make(kind, parameters, initial_window)?,
            after_lost_syns: make(kind, parameters, 1)?,
        })
    }

    /// A controller with the initial window.
    pub fn controller(&self) -> Box<dyn Controller> {
        self.controller.copied()
    }

    /// A controller with a window of one segment, for a connection that lost SYNs.
    pub fn after_lost_syns(&self) -> Box<dyn Controller> {
        self.after_lost_syns.copied()
    }
}
