//! Columns of the engines' tables as Python objects.
//!
//! A number column becomes a `NumPy` array by the buffer protocol: one copy, and no dependency on a `NumPy` crate.

use ackclock_core::tables::{Column, NONE, UNKNOWN};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::IntoPyObjectExt;

/// Convert a record to Python: table name → column name → values.
///
/// # Errors
/// The interpreter is out of memory, or has no `NumPy`.
pub fn tables<T: AsRef<str>, C: AsRef<str>>(
    py: Python<'_>,
    tables: Vec<(T, Vec<(C, Column)>)>,
) -> PyResult<Bound<'_, PyDict>> {
    let arrays = Arrays::new(py)?;
    let named = PyDict::new(py);
    for (table, columns) in tables {
        let values = PyDict::new(py);
        for (name, column) in columns {
            values.set_item(name.as_ref(), arrays.of(column)?)?;
        }
        named.set_item(table.as_ref(), values)?;
    }
    Ok(named)
}

/// Return the number of values of a column.
pub fn length(column: &Column) -> usize {
    match column {
        Column::Float(values) => values.len(),
        Column::Long(values) => values.len(),
        Column::Word(values) => values.len(),
        Column::Byte(values) => values.len(),
        Column::Flag(values) => values.len(),
        Column::Text(values) => values.len(),
        Column::Floats(values) => values.len(),
        Column::Longs(values) => values.len(),
    }
}

/// Convert a value of a column to Python; None if it is missing.
///
/// # Errors
/// The interpreter is out of memory.
pub fn cell<'py>(py: Python<'py>, column: &Column, row: usize) -> PyResult<Bound<'py, PyAny>> {
    match column {
        Column::Float(values) => object(py, Some(values[row]).filter(|value| value.is_finite())),
        Column::Long(values) => object(py, Some(values[row]).filter(|&value| value != UNKNOWN)),
        Column::Word(values) => object(py, Some(values[row]).filter(|&value| value != NONE)),
        Column::Byte(values) => object(py, values[row]),
        Column::Flag(values) => object(py, values[row]),
        Column::Text(values) => object(py, values[row].as_str()),
        Column::Floats(cells) => object(py, cells[row].clone()),
        Column::Longs(cells) => object(py, cells[row].clone()),
    }
}

fn object<'py>(py: Python<'py>, value: impl IntoPyObject<'py>) -> PyResult<Bound<'py, PyAny>> {
    value.into_bound_py_any(py)
}

/// Makes `NumPy` arrays.
struct Arrays<'py> {
    /// `numpy.empty`.
    empty: Bound<'py, PyAny>,
}

impl<'py> Arrays<'py> {
    fn new(py: Python<'py>) -> PyResult<Arrays<'py>> {
        let empty = py.import("numpy")?.getattr("empty")?;
        Ok(Arrays { empty })
    }

    fn of(&self, column: Column) -> PyResult<Bound<'py, PyAny>> {
        match column {
            Column::Float(values) => self.array("f8", &values),
            Column::Long(values) => self.array("u8", &values),
            Column::Word(values) => self.array("u4", &values),
            Column::Byte(values) => self.array("u1", &values),
            Column::Flag(values) => self.flags(&values),
            Column::Text(values) => Ok(PyList::new(self.empty.py(), values)?.into_any()),
            Column::Floats(cells) => self.list("f8", &cells),
            Column::Longs(cells) => self.list("u8", &cells),
        }
    }

    /// An array of the type that is `code` to `NumPy`.
    fn array<T: Element>(&self, code: &str, values: &[T]) -> PyResult<Bound<'py, PyAny>> {
        let array = self.empty.call1((values.len(), code))?;
        PyBuffer::get(&array)?.copy_from_slice(array.py(), values)?;
        Ok(array)
    }

    fn flags(&self, values: &[bool]) -> PyResult<Bound<'py, PyAny>> {
        let bytes: Vec<u8> = values.iter().copied().map(u8::from).collect();
        self.array("u1", &bytes)?.call_method1("view", ("?",))
    }

    fn list<T: Element>(&self, code: &str, cells: &[Vec<T>]) -> PyResult<Bound<'py, PyAny>> {
        let arrays = cells.iter().map(|cell| self.array(code, cell));
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(self.empty.py(), arrays)?.into_any())
    }
}
