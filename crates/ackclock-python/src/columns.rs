//! Columns of the engines' tables as Python objects.
//!
//! A number column becomes a `NumPy` array by the buffer protocol: one copy, and no crate that knows `NumPy`'s memory.

use ackclock_record::Column;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A record as Python has it: table name → column name → values.
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
