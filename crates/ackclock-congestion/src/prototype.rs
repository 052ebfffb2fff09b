//! Prototypes from which the controllers of many connections are cloned.

use serde_json::Value;

use super::{make, Controller, Error};

/// Cloning of a boxed controller; implemented for every controller that is [`Clone`].
pub trait CloneBox {
    /// Return a copy of the controller in its current state.
    fn clone_box(&self) -> Box<dyn Controller>;
}

impl<T: Controller + Clone + 'static> CloneBox for T {
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// The initial controllers of a group's connections.
pub struct Prototype {
    controller: Box<dyn Controller>,
    after_lost_syns: Box<dyn Controller>,
}

impl Prototype {
    /// Create a prototype from a CCA's name and its complete parameters.
    ///
    /// # Errors
    /// An unknown name, or parameters that are not those of its algorithm spec.
    pub fn new(kind: &str, parameters: &Value, initial_window: u32) -> Result<Prototype, Error> {
        Ok(Prototype {
            controller: make(kind, parameters, initial_window)?,
            after_lost_syns: make(kind, parameters, 1)?,
        })
    }

    /// Return a controller with the initial window.
    pub fn controller(&self) -> Box<dyn Controller> {
        self.controller.clone_box()
    }

    /// Return a controller with a window of one segment, for a connection that lost SYNs.
    pub fn after_lost_syns(&self) -> Box<dyn Controller> {
        self.after_lost_syns.clone_box()
    }
}
