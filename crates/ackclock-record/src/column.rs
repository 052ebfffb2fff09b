//! Columns without their table: names, and values of one type.

use serde::{Deserialize, Serialize};

/// Column name → values, in the table's order.
pub type Columns = Vec<(&'static str, Column)>;

/// Table name → columns, in the record's order.
pub type NamedTables = Vec<(&'static str, Columns)>;

/// The values of a column.
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

/// A value of a column.
pub trait Cell: Sized {
    /// The type's name in Rust.
    const TYPE: &'static str;

    /// Such values as a column.
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

/// The columns that an engine has filled: of a table with rows, those with values.
pub fn filled(mut columns: Columns) -> Columns {
    if columns.iter().any(|(_, column)| !column.is_empty()) {
        columns.retain(|(_, column)| !column.is_empty());
    }
    columns
}

/// Puts a value in a place of a column, or behind its last; of a column that is not filled there is none.
#[inline]
pub fn put<T: Clone>(values: &mut Vec<T>, row: usize, value: Option<&T>) {
    match (values.get_mut(row), value) {
        (Some(place), Some(value)) => place.clone_from(value),
        (None, Some(value)) => values.push(value.clone()),
        (_, None) => {}
    }
}

/// Defines a table: a struct with a vector for each column.
#[macro_export]
macro_rules! table {
    ($(#[$about:meta])* $Table:ident { $($(#[$what:meta])* $name:ident: $Cell:ty),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[allow(missing_docs)]
        pub struct $Table { $($(#[$what])* pub $name: Vec<$Cell>),+ }

        impl $Table {
            /// Names and types of the columns.
            pub const COLUMNS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), <$Cell as $crate::Cell>::TYPE)),+];

            /// Takes the rows of another table behind its own.
            pub fn append(&mut self, other: &mut $Table) {
                $(self.$name.append(&mut other.$name);)+
            }

            /// Takes a copy of another table's row: in place of its own, or behind its last.
            pub fn put(&mut self, row: usize, other: &$Table, from: usize) {
                $($crate::put(&mut self.$name, row, other.$name.get(from));)+
            }

            /// Whether there are no rows.
            pub fn is_empty(&self) -> bool {
                true $(&& self.$name.is_empty())+
            }

            /// The columns that are filled, by name.
            pub fn columns(self) -> $crate::Columns {
                let $Table { $($name),+ } = self;
                $crate::filled(vec![$((stringify!($name), <$Cell as $crate::Cell>::column($name))),+])
            }
        }
    };
}

/// Defines a record: a struct of tables.
#[macro_export]
macro_rules! record {
    ($(#[$about:meta])* $Record:ident { $($name:ident: $Table:ty),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[allow(missing_docs)]
        pub struct $Record { $(pub $name: $Table),+ }

        impl $Record {
            /// Names of the tables, and their columns' names and types.
            pub const TABLES: &'static [(&'static str, &'static [(&'static str, &'static str)])] =
                &[$((stringify!($name), <$Table>::COLUMNS)),+];

            /// The tables by name.
            pub fn tables(self) -> $crate::NamedTables {
                vec![$((stringify!($name), self.$name.columns())),+]
            }
        }
    };
}

#[cfg(test)]
mod tests {

    table!(
        /// Words and their length.
        Words { word: String, letters: u32, syllables: Vec<u64> }
    );
    record!(
        /// A book.
        Book { words: Words }
    );

    #[test]
    fn columns_have_their_names_and_types_in_the_table_s_order() {
        let expected = [
            ("word", "String"),
            ("letters", "u32"),
            ("syllables", "Vec<u64>"),
        ];
        assert_eq!(Words::COLUMNS, expected);
        assert_eq!(Book::TABLES, [("words", Words::COLUMNS)]);
    }

    #[test]
    fn rows_are_taken_from_one_table_behind_those_of_another() {
        let row = |word: &str| Words {
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
    fn a_row_is_put_in_place_of_another_or_behind_the_last() {
        let words = Words {
            word: ["syn", "ack", "fin"].map(str::to_owned).to_vec(),
            letters: vec![1, 2, 3],
            ..Words::default()
        };
        let mut taken = Words::default();
        for (row, from) in [(0, 0), (1, 1), (0, 2)] {
            taken.put(row, &words, from);
        }
        assert_eq!(taken.word, ["fin", "ack"]);
        assert_eq!(taken.letters, [3, 2]);
        assert!(taken.syllables.is_empty());
    }

    #[test]
    fn a_column_that_is_not_filled_is_not_handed_over() {
        let words = Words {
            word: vec!["ack".to_owned()],
            letters: vec![3],
            ..Words::default()
        };
        let names: Vec<_> = words.columns().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["word", "letters"]);
    }

    #[test]
    fn a_table_without_rows_has_all_its_columns() {
        let tables = Book::default().tables();
        assert_eq!(tables[0].1.len(), Words::COLUMNS.len());
    }
}
