//! Columns of one type, their names, and the macros that declare tables of them.

use serde::{Deserialize, Serialize};

/// Column name → values, in the table's order.
pub type Columns = Vec<(&'static str, Column)>;

/// Table name → columns, in the record's order.
pub type NamedTables = Vec<(&'static str, Columns)>;

/// Values of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Column {
    Float(Vec<f64>),
    Long(Vec<u64>),
    Word(Vec<u32>),
    Byte(Vec<u8>),
    Flag(Vec<bool>),
    Text(Vec<String>),
    Floats(Vec<Vec<f64>>),
    Longs(Vec<Vec<u64>>),
}

/// Type of a column's values.
pub trait Cell: Sized {
    /// Name of the type in Rust.
    const TYPE: &'static str;

    /// Make a column of such values.
    fn column(values: Vec<Self>) -> Column;
}

macro_rules! cells {
    ($($Cell:ty => $Variant:ident),+) => {
        $(impl Cell for $Cell {
            const TYPE: &'static str = stringify!($Cell);

            fn column(values: Vec<Self>) -> Column {
                Column::$Variant(values)
            }
        })+

        impl Column {
            fn is_empty(&self) -> bool {
                match self {
                    $(Column::$Variant(values) => values.is_empty()),+
                }
            }
        }
    };
}
cells!(
    f64 => Float, u64 => Long, u32 => Word, u8 => Byte, bool => Flag, String => Text,
    Vec<f64> => Floats, Vec<u64> => Longs
);

/// Drop the empty columns of a table that has rows; a table without rows keeps all its columns.
pub fn non_empty_or_all(mut columns: Columns) -> Columns {
    if columns.iter().any(|(_, column)| !column.is_empty()) {
        columns.retain(|(_, column)| !column.is_empty());
    }
    columns
}

/// Replace the value at `row`, or append it if the column is shorter. An absent value, from a column that is not
/// filled, changes nothing.
#[inline]
pub fn put<T: Clone>(values: &mut Vec<T>, row: usize, value: Option<&T>) {
    match (values.get_mut(row), value) {
        (Some(present), Some(value)) => present.clone_from(value),
        (None, Some(value)) => values.push(value.clone()),
        (_, None) => {}
    }
}

/// Define a table: a struct with a vector for each column.
#[macro_export]
macro_rules! table {
    ($(#[$doc:meta])* $Table:ident { $($(#[$column_doc:meta])* $name:ident: $Cell:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[allow(missing_docs)]
        pub struct $Table { $($(#[$column_doc])* pub $name: Vec<$Cell>),+ }

        impl $Table {
            /// Names and types of the columns.
            pub const COLUMNS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), <$Cell as $crate::tables::Cell>::TYPE)),+];

            /// Append the rows of another table, which is left empty.
            pub fn append(&mut self, other: &mut $Table) {
                $(self.$name.append(&mut other.$name);)+
            }

            /// Copy row `from` of another table over `row`, or append it if there is no such row.
            pub fn put(&mut self, row: usize, other: &$Table, from: usize) {
                $($crate::tables::put(&mut self.$name, row, other.$name.get(from));)+
            }

            /// Put the rows into another order: row `i` is the present row `order[i]`.
            pub fn reorder(&mut self, order: &[usize]) {
                $(self.$name = order.iter().map(|&row| self.$name[row].clone()).collect();)+
            }

            /// True if there are no rows.
            pub fn is_empty(&self) -> bool {
                true $(&& self.$name.is_empty())+
            }

            /// Columns with values by name; all columns if there are no rows.
            pub fn columns(self) -> $crate::tables::Columns {
                let $Table { $($name),+ } = self;
                $crate::tables::non_empty_or_all(vec![$((stringify!($name), <$Cell as $crate::tables::Cell>::column($name))),+])
            }
        }
    };
}

/// Define a record: a struct of tables.
#[macro_export]
macro_rules! record {
    ($(#[$doc:meta])* $Record:ident { $($name:ident: $Table:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[allow(missing_docs)]
        pub struct $Record { $(pub $name: $Table),+ }

        impl $Record {
            /// Names of the tables, and their columns' names and types.
            pub const TABLES: &'static [(&'static str, &'static [(&'static str, &'static str)])] =
                &[$((stringify!($name), <$Table>::COLUMNS)),+];

            /// Tables by name.
            pub fn tables(self) -> $crate::tables::NamedTables {
                vec![$((stringify!($name), self.$name.columns())),+]
            }
        }
    };
}

#[cfg(test)]
mod tests {

    table!(
        /// Words and their lengths.
        Terms { word: String, letters: u32, syllables: Vec<u64> }
    );
    record!(
        /// A book.
        Book { terms: Terms }
    );

    #[test]
    fn columns_have_names_and_types_in_declaration_order() {
        let expected = [
            ("word", "String"),
            ("letters", "u32"),
            ("syllables", "Vec<u64>"),
        ];
        assert_eq!(Terms::COLUMNS, expected);
        assert_eq!(Book::TABLES, [("terms", Terms::COLUMNS)]);
    }

    #[test]
    fn append_moves_the_rows_of_another_table() {
        let row = |word: &str| Terms {
            word: vec![word.to_owned()],
            letters: vec![3],
            syllables: vec![vec![1]],
        };
        let (mut one, mut other) = (row("ack"), row("syn"));
        one.append(&mut other);
        assert_eq!(one.word, ["ack", "syn"]);
        assert_eq!(one.letters, [3, 3]);
        assert!(other.is_empty() && !one.is_empty());
    }

    #[test]
    fn put_replaces_a_row_or_appends_it() {
        let terms = Terms {
            word: ["syn", "ack", "fin"].map(str::to_owned).to_vec(),
            letters: vec![1, 2, 3],
            ..Terms::default()
        };
        let mut taken = Terms::default();
        for (row, from) in [(0, 0), (1, 1), (0, 2)] {
            taken.put(row, &terms, from);
        }
        assert_eq!(taken.word, ["fin", "ack"]);
        assert_eq!(taken.letters, [3, 2]);
        assert!(taken.syllables.is_empty());
    }

    #[test]
    fn reorder_keeps_the_cells_of_a_row_in_one_row() {
        let mut terms = Terms {
            word: ["syn", "ack", "fin"].map(str::to_owned).to_vec(),
            letters: vec![1, 2, 3],
            syllables: vec![vec![4], vec![5], vec![6]],
        };
        terms.reorder(&[2, 0, 1]);
        assert_eq!(terms.word, ["fin", "syn", "ack"]);
        assert_eq!(terms.letters, [3, 1, 2]);
        assert_eq!(terms.syllables, [[6], [4], [5]]);
    }

    #[test]
    fn columns_without_values_are_left_out() {
        let terms = Terms {
            word: vec!["ack".to_owned()],
            letters: vec![3],
            ..Terms::default()
        };
        let names: Vec<_> = terms.columns().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["word", "letters"]);
    }

    #[test]
    fn a_table_without_rows_keeps_all_its_columns() {
        let tables = Book::default().tables();
        assert_eq!(tables[0].1.len(), Terms::COLUMNS.len());
    }
}
