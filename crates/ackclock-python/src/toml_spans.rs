//! Locations of the keys of a TOML text, so that an error can name the line.
//!
//! Python's `tomllib` gives values without positions; `toml_edit` knows the byte range of every key
//! and value. This module joins a path of keys and array indexes to a 1-based line.

use std::ops::Range;

use toml_edit::{Array, ArrayOfTables, Document, InlineTable, Item, Key, Table, TomlError, Value};

/// One step of a path: a table's key, or an array's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A key of a table.
    Key(String),
    /// An index of an array, from 0.
    Index(usize),
}

/// A path from the document's root and its 1-based line.
pub type PathLine = (Vec<Step>, usize);

/// List every key and array item of `text` with its line, in the document's order of tables.
///
/// A key's line is that of the key itself, not of its value; a table's line is that of its header
/// (or of its first mention, if it has no header of its own).
///
/// # Errors
/// The text is not TOML; the message names line and column.
pub fn toml_spans(text: &str) -> Result<Vec<PathLine>, TomlError> {
    let document = Document::parse(text)?;
    let mut walk = Walk::new(text);
    walk.table(document.as_table());
    Ok(walk.lines)
}

/// The state of a walk through a document.
struct Walk {
    line_starts: Vec<usize>,
    path: Vec<Step>,
    lines: Vec<PathLine>,
}

impl Walk {
    fn new(text: &str) -> Walk {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Walk {
            line_starts: std::iter::once(0).chain(after_newlines).collect(),
            path: Vec::new(),
            lines: Vec::new(),
        }
    }

    fn table(&mut self, table: &Table) {
        for (name, _) in table {
            let entry = table.get_key_value(name);
            self.entry(name, entry);
        }
    }

    fn inline_table(&mut self, table: &InlineTable) {
        for (name, _) in table {
            let entry = table.get_key_value(name);
            self.entry(name, entry);
        }
    }

    fn array(&mut self, array: &Array) {
        for (index, value) in array.iter().enumerate() {
            self.step(Step::Index(index), value.span(), |walk| walk.value(value));
        }
    }

    fn array_of_tables(&mut self, tables: &ArrayOfTables) {
        for (index, table) in tables.iter().enumerate() {
            self.step(Step::Index(index), table.span(), |walk| walk.table(table));
        }
    }

    fn entry(&mut self, name: &str, entry: Option<(&Key, &Item)>) {
        let Some((key, item)) = entry else { return };
        self.step(Step::Key(name.to_owned()), place(key, item), |walk| {
            walk.item(item);
        });
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::None => {}
            Item::Value(value) => self.value(value),
            Item::Table(table) => self.table(table),
            Item::ArrayOfTables(tables) => self.array_of_tables(tables),
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Array(array) => self.array(array),
            Value::InlineTable(table) => self.inline_table(table),
            _ => {}
        }
    }

    /// Record the path one step deeper, and visits what is inside.
    fn step(
        &mut self,
        step: Step,
        span: Option<Range<usize>>,
        cubic_state: impl FnOnce(&mut Walk),
    ) {
        self.path.push(step);
        if let Some(span) = span {
            self.lines.push((self.path.clone(), self.line(span.start)));
        }
        cubic_state(self);
        self.path.pop();
    }

    /// The 1-based line of a byte offset.
    fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }
}

/// The key's own place, or that of what it names.
fn place(key: &Key, item: &Item) -> Option<Range<usize>> {
    key.span().or_else(|| item.span())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines as `path:line`, for example `flows.0.count:3`.
    fn lines(text: &str) -> Vec<String> {
        let lines = toml_spans(text).expect("valid TOML");
        lines.iter().map(show).collect()
    }

    fn show((path, line): &PathLine) -> String {
        let steps: Vec<String> = path.iter().map(step_text).collect();
        format!("{}:{line}", steps.join("."))
    }

    fn step_text(step: &Step) -> String {
        match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => index.to_string(),
        }
    }

    #[test]
    fn keys_of_the_root_and_of_tables() {
        let text = "name = 'a'\n\n[network]\n# a remark\nrate = '1Gbit'\n";
        assert_eq!(lines(text), ["name:1", "network:3", "network.rate:5"]);
    }

    #[test]
    fn arrays_of_tables_count_from_zero() {
        let text = "[[flows]]\ncount = 1\n\n[[flows]]\ncount = 2\n";
        let expected = [
            "flows:1",
            "flows.0:1",
            "flows.0.count:2",
            "flows.1:4",
            "flows.1.count:5",
        ];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn inline_tables_are_entered() {
        let text = "[network]\nqueue = { discipline = 'pfifo', limit = '1bdp' }\n";
        let expected = [
            "network:1",
            "network.queue:2",
            "network.queue.discipline:2",
            "network.queue.limit:2",
        ];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn items_of_an_array_have_their_own_lines() {
        let text = "rtt = [\n  '10ms',\n  '20ms',\n]\n";
        assert_eq!(lines(text), ["rtt:1", "rtt.0:2", "rtt.1:3"]);
    }

    #[test]
    fn inline_tables_within_arrays_are_entered() {
        let text = "flows = [\n  { count = 1 },\n  { count = 2 },\n]\n";
        let expected = [
            "flows:1",
            "flows.0:2",
            "flows.0.count:2",
            "flows.1:3",
            "flows.1.count:3",
        ];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn dotted_keys_and_headers_name_each_step() {
        let text = "network.queue.limit = '5p'\n[tcp.more]\nsack = true\n";
        let expected = [
            "network:1",
            "network.queue:1",
            "network.queue.limit:1",
            "tcp:2",
            "tcp.more:2",
            "tcp.more.sack:3",
        ];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn dotted_keys_on_several_lines_keep_their_own_line() {
        let text = "[a]\nq.one = 1\nq.two = 2\n";
        assert_eq!(lines(text), ["a:1", "a.q:2", "a.q.one:2", "a.q.two:3"]);
    }

    #[test]
    fn sub_tables_of_an_array_of_tables_belong_to_its_last_item() {
        let text = "[[flows]]\ncount = 1\n[flows.tcp]\nsack = false\n[[flows]]\n[flows.tcp]\nsack = true\n";
        let lines = lines(text);
        assert!(lines.contains(&"flows.0.tcp:3".to_owned()), "{lines:?}");
        assert!(
            lines.contains(&"flows.0.tcp.sack:4".to_owned()),
            "{lines:?}"
        );
        assert!(
            lines.contains(&"flows.1.tcp.sack:7".to_owned()),
            "{lines:?}"
        );
    }

    #[test]
    fn quoted_keys_are_unquoted() {
        assert_eq!(
            lines("[sweep]\n\"network.queue.limit\" = [1]\n")[1],
            "sweep.network.queue.limit:2"
        );
        let lines = toml_spans("\"a.b\" = 1").expect("valid TOML");
        assert_eq!(lines, [(vec![Step::Key("a.b".to_owned())], 1)]);
    }

    #[test]
    fn windows_line_ends_and_multi_line_strings_count_as_lines() {
        let text = "a = '''\r\nx\r\ny'''\r\nb = 1\r\n";
        assert_eq!(lines(text), ["a:1", "b:4"]);
    }

    #[test]
    fn text_before_the_key_does_not_move_it() {
        assert_eq!(
            lines(
                "\u{feff}# Überschrift\n  é = 1 # …\n"
                    .replace('é', "'é'")
                    .as_str()
            ),
            ["é:2"]
        );
    }

    #[test]
    fn an_empty_text_has_no_lines() {
        assert!(lines("").is_empty());
        assert!(lines("# only a remark\n").is_empty());
    }

    #[test]
    fn invalid_toml_is_rejected_with_its_location() {
        let error = toml_spans("a = 1\nb = \n").expect_err("no value");
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
