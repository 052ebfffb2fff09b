//! The result: tables of columns, in one file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use ackclock_core::tables::{Column, Columns};

use crate::error::Tried;
use crate::Error;

/// Table name → column name → values, as they are read.
pub type Tables = Vec<(String, Vec<(String, Column)>)>;

/// Write the tables as a file, whole or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn write(tables: &[(&str, Columns)], path: &Path) -> Result<(), Error> {
    let what = || path.display().to_string();
    let unfinished = path.with_extension("unfinished");
    let file = BufWriter::new(File::create(&unfinished).tried(what)?);
    let mut file = postcard::to_io(tables, file)?;
    file.flush().tried(what)?;
    file.into_inner()
        .map_err(io::IntoInnerError::into_error)
        .tried(what)?;
    fs::rename(&unfinished, path).tried(what)
}

/// Read what [`write()`] has written.
///
/// # Errors
/// The bytes are something else.
pub fn read(bytes: &[u8]) -> Result<Tables, Error> {
    Ok(postcard::from_bytes(bytes)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn column() -> impl Strategy<Value = Column> {
        prop_oneof![
            prop::collection::vec(-1e300..1e300, 0..9).prop_map(Column::Float),
            prop::collection::vec(any::<u64>(), 0..9).prop_map(Column::Long),
            prop::collection::vec(any::<u32>(), 0..9).prop_map(Column::Word),
            prop::collection::vec(any::<u8>(), 0..9).prop_map(Column::Byte),
            prop::collection::vec(any::<bool>(), 0..9).prop_map(Column::Flag),
            prop::collection::vec("[a-z]{0,5}", 0..9).prop_map(Column::Text),
        ]
    }

    proptest! {
        #[test]
        fn written_tables_are_read_back(columns in prop::collection::vec(("[a-z_]{1,9}", column()), 0..5)) {
            let tables = Tables::from([("table".to_owned(), columns)]);
            let bytes = postcard::to_stdvec(&tables).expect("tables have bytes");
            prop_assert_eq!(read(&bytes).expect("they are read"), tables);
        }

        #[test]
        fn any_bytes_are_tables_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn a_result_file_is_complete_and_has_one_name() {
        let folder = std::env::temp_dir().join(format!("ackclock-linux-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("result.bin");
        write(
            &[("flows", vec![("flow", Column::Word(vec![1, 2]))])],
            &path,
        )
        .expect("written");
        let columns = vec![("flow".to_owned(), Column::Word(vec![1, 2]))];
        assert_eq!(
            read(&fs::read(&path).expect("read")).expect("tables"),
            [("flows".to_owned(), columns)]
        );
        assert_eq!(fs::read_dir(&folder).expect("listed").count(), 1);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
