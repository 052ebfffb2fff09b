//! Controllers whose code is outside this crate, such as prototypes in Python.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use super::{compiled, Error, Made};

/// Creates a controller from its complete parameters and the initial window in segments.
pub type Factory = Arc<dyn Fn(&Value, f64) -> Made + Send + Sync>;

static REGISTERED: RwLock<BTreeMap<String, Factory>> = RwLock::new(BTreeMap::new());

/// Register a controller for as long as this process lasts, in place of one that was registered by the same name.
///
/// # Errors
/// The name of a CCA of this crate.
pub fn register(kind: &str, factory: Factory) -> Result<(), Error> {
    if compiled(kind).is_some() {
        return Err(Error::Taken(kind.to_owned()));
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.insert(kind.to_owned(), factory);
    Ok(())
}

/// Return the factory that was registered by this name.
pub(crate) fn registered(kind: &str) -> Option<Factory> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.get(kind).cloned()
}

#[cfg(test)]
mod tests {
    use super::super::{make, reno};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_registered_controller_is_made_by_its_name() {
        let factory: Factory = Arc::new(|given, window| reno::make(given, window + 1.0));
        register("registry_test", factory).unwrap();
        let parameters = json!({ "slow_start": "standard" });
        let made = make("registry_test", &parameters, 10).unwrap();
        assert!((made.cwnd() - 11.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_names_of_this_crate_are_taken() {
        let factory: Factory = Arc::new(reno::make);
        let error = register("cubic", factory).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"cubic\" is the name of an algorithm of this engine"
        );
    }
}
