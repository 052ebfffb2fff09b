//! Checks that types read from JSON have no defaults and reject unknown fields. For the tests of all crates that read
//! JSON.

use serde_json::Value;

/// Pointers to parameters of algorithms, which may hold anything.
const FREE: &str = "parameters";

/// Every object of `complete` without each of its fields in turn, and with one more: those that `parses` all the same.
pub fn faults(complete: &Value, parses: impl Fn(&Value) -> bool) -> Vec<String> {
    assert!(parses(complete), "the example itself is not read");
    let mut found = Vec::new();
    for place in objects(complete, "") {
        let fields = complete.pointer(&place).and_then(Value::as_object);
        let fields = fields.expect("an object");
        for left_out in fields.keys() {
            let mut fewer = complete.clone();
            let kept = fields.iter().filter(|(name, _)| *name != left_out);
            *fewer.pointer_mut(&place).expect("the place") = kept
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            if parses(&fewer) {
                found.push(format!("{place}/{left_out} may be left out"));
            }
        }
        let mut more = complete.clone();
        more.pointer_mut(&place).expect("the place")["surprise"] = Value::Null;
        if parses(&more) {
            found.push(format!("{place} may have an unknown field"));
        }
    }
    found
}

/// JSON pointers of all objects.
fn objects(value: &Value, place: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let inner = fields.iter().filter(|(name, _)| *name != FREE);
            let inner = inner.flat_map(|(name, value)| objects(value, &format!("{place}/{name}")));
            std::iter::once(place.to_owned()).chain(inner).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .flat_map(|(index, value)| objects(value, &format!("{place}/{index}")))
                .collect()
        }
        _ => Vec::new(),
    }
}
