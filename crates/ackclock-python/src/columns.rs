//! Columns of the engines' tables as Python objects.
//!
//! A number column becomes a `NumPy` array that owns the engine's memory: nothing is copied.

use ackclock_record::Column;
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A record as Python has it: table name → column name → values.
///
/// # Errors
/// The interpreter is out of memory.
pub fn tables<T: AsRef<str>, C: AsRef<str>>(
    py: Python<'_>,
    tables: Vec<(T, Vec<(C, Column)>)>,
) -> PyResult<Bound<'_, PyDict>> {
    let named = PyDict::new(py);
    for (table, columns) in tables {
        let values = PyDict::new(py);
        for (name, column) in columns {
            values.set_item(name.as_ref(), into_python(py, column)?)?;
        }
        named.set_item(table.as_ref(), values)?;
    }
    Ok(named)
}

fn into_python(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyAny>> {
    Ok(match column {
        Column::Float(values) => values.into_pyarray(py).into_any(),
        Column::Long(values) => values.into_pyarray(py).into_any(),
        Column::Word(values) => values.into_pyarray(py).into_any(),
        Column::Byte(values) => values.into_pyarray(py).into_any(),
        Column::Flag(values) => values.into_pyarray(py).into_any(),
        Column::Text(values) => PyList::new(py, values)?.into_any(),
        Column::Floats(cells) => arrays(py, cells)?,
        Column::Longs(cells) => arrays(py, cells)?,
    })
}

fn arrays<T: Element>(py: Python<'_>, cells: Vec<Vec<T>>) -> PyResult<Bound<'_, PyAny>> {
    let arrays = cells.into_iter().map(|cell| cell.into_pyarray(py));
    Ok(PyList::new(py, arrays.collect::<Vec<_>>())?.into_any())
}
