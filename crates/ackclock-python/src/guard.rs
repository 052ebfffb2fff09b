//! Conversion of panics to errors at the boundary to Python.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Run `call`. After an error the state that it modified may be inconsistent.
///
/// # Errors
/// `call` panicked; the error has its message.
pub fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the engine failed: {}", text.unwrap_or("no message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_passes() {
        assert_eq!(guarded(|| 7), Ok(7));
    }

    #[test]
    fn a_panic_becomes_its_message() {
        let index = 3;
        let formatted = guarded(|| -> () { panic!("no link {index}") });
        assert_eq!(formatted, Err("the engine failed: no link 3".to_owned()));
        let plain = guarded(|| -> () { panic!("plain") });
        assert_eq!(plain, Err("the engine failed: plain".to_owned()));
    }

    #[test]
    fn a_panic_without_a_message_is_an_error() {
        let silent = guarded(|| -> () { std::panic::panic_any(7_u8) });
        assert_eq!(silent, Err("the engine failed: no message".to_owned()));
    }
}
