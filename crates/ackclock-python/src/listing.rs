//! The segments of a capture for Python. The interpreter is released while a file is read.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ackclock_pcap::filter::{Filter, FilterError};
use ackclock_pcap::listing;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns;
use crate::guard::guarded;

/// A capture read segment by segment into rows.
#[pyclass(frozen, module = "ackclock._core")]
pub struct Listing {
    listing: Mutex<listing::Listing>,
}

#[pymethods]
impl Listing {
    /// Open a file, with segments cut as in the capture `other`; an invalid filter raises `ValueError`.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // what Python gives is owned
    #[pyo3(signature = (path, filter="", datagrams=false, other=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        filter: &str,
        datagrams: bool,
        other: Option<PathBuf>,
    ) -> PyResult<Self> {
        let filter: Filter = filter
            .parse()
            .map_err(|error: FilterError| PyValueError::new_err(error.to_string()))?;
        let opened = |filter: Filter| {
            let listing = listing::Listing::open(&path, filter.clone(), datagrams);
            match other {
                Some(other) => listing.cut_as(&other, filter),
                None => listing,
            }
        };
        let listing = py.detach(|| guarded(|| opened(filter)));
        let listing = listing.map_err(PyRuntimeError::new_err)?;
        Ok(Self {
            listing: Mutex::new(listing),
        })
    }

    /// Read at most `packets` packets, without holding the interpreter; return false at the end.
    fn advance(&self, py: Python<'_>, packets: u64) -> PyResult<bool> {
        self.with(py, |listing| listing.advance(packets))
    }

    /// Take the accumulated rows: table name → column name → values.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns::tables(py, self.with(py, listing::Listing::drain)?.tables())
    }
}

impl Listing {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut listing::Listing) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
            guarded(|| call(&mut listing))
        })
        .map_err(PyRuntimeError::new_err)
    }
}
