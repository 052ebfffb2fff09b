//! Columns of the engine's tables as Python objects.
//!
//! A number column becomes a `NumPy` array that owns the engine's memory: nothing is copied.

use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// A column that Python can own.
pub trait IntoColumn {
    /// Hands the column over.
    ///
    /// # Errors
    /// The interpreter is out of memory.
    fn into_column(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
}

/// An element whose column is a plain array.
pub trait Number: Element {}
impl Number for f64 {}
impl Number for u64 {}
impl Number for u32 {}
impl Number for u8 {}
impl Number for bool {}

impl<T: Number> IntoColumn for Vec<T> {
    fn into_column(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(self.into_pyarray(py).into_any())
    }
}

impl IntoColumn for Vec<String> {
    fn into_column(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(PyList::new(py, self)?.into_any())
    }
}

impl<T: Number> IntoColumn for Vec<Vec<T>> {
    fn into_column(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let cells = self.into_iter().map(|cell| cell.into_pyarray(py));
        Ok(PyList::new(py, cells.collect::<Vec<_>>())?.into_any())
    }
}

/// Defines the function that turns a table into a dictionary of its columns. The table is taken
/// apart by pattern: a field that the list lacks is an error of the compiler's.
macro_rules! columns {
    ($function:ident, $Table:ident { $($name:ident),+ $(,)? }) => {
        fn $function(py: Python<'_>, table: $Table) -> PyResult<Bound<'_, PyDict>> {
            let $Table { $($name),+ } = table;
            let columns = PyDict::new(py);
            $(columns.set_item(
                stringify!($name),
                $crate::columns::IntoColumn::into_column($name, py)?,
            )?;)+
            Ok(columns)
        }
    };
}
pub(crate) use columns;
