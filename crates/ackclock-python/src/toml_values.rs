//! The values of a TOML text, parsed faster than by Python's `tomllib`, which would slow the start of each command, and
//! takes gigabytes for a key of thousands of names.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use toml_edit::{Document, Item, Table, Value};

/// Return the tables of a text, as `tomllib` does. Raises `ValueError` for invalid TOML.
pub fn values<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let document =
        Document::parse(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    table(py, document.as_table())
}

fn table<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, item) in table {
        found.set_item(name, of_item(py, item)?)?;
    }
    Ok(found)
}

fn of_item<'py>(py: Python<'py>, item: &Item) -> PyResult<Bound<'py, PyAny>> {
    match item {
        Item::None => Ok(py.None().into_bound(py)),
        Item::Value(value) => of_value(py, value),
        Item::Table(one) => Ok(table(py, one)?.into_any()),
        Item::ArrayOfTables(tables) => {
            let found = tables.iter().map(|one| table(py, one));
            Ok(PyList::new(py, found.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
    }
}

fn of_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::String(text) => text.value().into_pyobject(py)?.into_any(),
        Value::Integer(number) => number.value().into_pyobject(py)?.into_any(),
        Value::Float(number) => number.value().into_pyobject(py)?.into_any(),
        Value::Boolean(flag) => flag.value().into_pyobject(py)?.to_owned().into_any(),
        Value::Datetime(time) => {
            let kind = match (time.value().date, time.value().time) {
                (Some(_), Some(_)) => "datetime",
                (Some(_), None) => "date",
                _ => "time",
            };
            let text = time.value().to_string();
            py.import("datetime")?
                .getattr(kind)?
                .call_method1("fromisoformat", (text,))?
        }
        Value::Array(values) => {
            let found = values.iter().map(|one| of_value(py, one));
            PyList::new(py, found.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::InlineTable(entries) => {
            let found = PyDict::new(py);
            for (name, one) in entries {
                found.set_item(name, of_value(py, one)?)?;
            }
            found.into_any()
        }
    })
}
