//! Errors of a run, one line each.

use std::io;

use ackclock_traffic::WorkloadError;

/// Why a run inside a kernel failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run spec is no JSON, or not of the form.
    #[error("order: {0}")]
    Json(#[from] serde_json::Error),
    /// The run spec contradicts itself or the plan.
    #[error("order: {0}")]
    RunSpec(String),
    /// No engine could carry the plan out.
    #[error("plan: {0}")]
    Plan(#[from] ackclock_plan::Error),
    /// A command of the setup failed.
    #[error("{command}: {output}")]
    Command {
        /// The line of the script.
        command: String,
        /// The tool's error output.
        output: String,
    },
    /// A workload cannot be generated.
    #[error("traffic {index}: {source}")]
    Traffic {
        /// Its index in the plan.
        index: usize,
        /// Why.
        source: WorkloadError,
    },
    /// A system call failed.
    #[error("{operation}: {source}")]
    System {
        /// The operation that failed.
        operation: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The bytes are not a result.
    #[error("result: {0}")]
    Result(#[from] postcard::Error),
}

/// Says what was tried when the kernel rejects it.
pub(crate) trait Tried<T> {
    /// The value, or the error with what was tried.
    fn tried(self, operation: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, operation: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::System {
            operation: operation(),
            source: error.into(),
        })
    }
}
