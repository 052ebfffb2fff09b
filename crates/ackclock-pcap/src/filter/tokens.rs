//! Tokens of a filter expression.

use std::net::Ipv6Addr;

/// Operators of two characters, before their first characters alone.
const LONG_OPERATORS: [&str; 8] = ["&&", "||", "<<", ">>", "<=", ">=", "==", "!="];

/// A token and where it begins.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// The text, without the backslash of an escaped name.
    pub text: &'a str,
    /// The offset in bytes.
    pub start: usize,
    /// The name was written with a backslash.
    pub escaped: bool,
}

/// Split an expression into names, numbers, addresses and operators.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let escaped = first == '\\';
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else {
            let token = &rest[usize::from(escaped)..];
            let length = length(token);
            found.push(Token {
                text: &token[..length],
                start,
                escaped,
            });
            length + usize::from(escaped)
        };
        start += length;
    }
    found
}

/// The length of the token at the start of a text, in bytes.
fn length(text: &str) -> usize {
    if let Some(operator) = LONG_OPERATORS
        .iter()
        .find(|operator| text.starts_with(**operator))
    {
        return operator.len();
    }
    let first = text.chars().next();
    if !first.is_some_and(|first| first.is_alphanumeric() || text.starts_with("::")) {
        return first.map_or(0, char::len_utf8);
    }
    let address = run(text, |letter| {
        letter.is_ascii_hexdigit() || letter == ':' || letter == '.'
    });
    let is_address = text[..address].parse::<Ipv6Addr>().is_ok() || mac(&text[..address]).is_some();
    if is_address && !text[address..].starts_with(is_inner) {
        return address;
    }
    let name = run(text, is_inner);
    text[..name].trim_end_matches(['-', '_']).len().max(1)
}

/// A letter that a name may have between its first and its last.
fn is_inner(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

/// The length of the run of such letters at the start of a text, in bytes.
fn run(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_part(letter)).unwrap_or(text.len())
}

/// A number: decimal, hexadecimal with `0x`, or octal with `0`.
pub fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let are_digits = digits.chars().all(|digit| digit.is_digit(radix));
    u32::from_str_radix(digits, radix)
        .ok()
        .filter(|_| are_digits)
}

/// A MAC address: `1:2:3:4:5:6`, with `-` or `.` instead, `1122.3344.5566` or `112233445566`.
pub fn mac(text: &str) -> Option<[u8; 6]> {
    if text.len() == 12 {
        return all_digits(text);
    }
    let groups: Vec<&str> = text.split('.').collect();
    if groups.len() == 3 && groups.iter().all(|group| group.len() == 4) {
        return all_digits(&groups.concat());
    }
    let separator = [':', '-', '.']
        .into_iter()
        .find(|one| text.contains(*one))?;
    let mut address = [0; 6];
    let mut parts = text.split(separator);
    for byte in &mut address {
        *byte = hexadecimal(parts.next().filter(|part| part.len() <= 2)?)?;
    }
    parts.next().is_none().then_some(address)
}

fn all_digits(digits: &str) -> Option<[u8; 6]> {
    let mut address = [0; 6];
    for (place, byte) in address.iter_mut().enumerate() {
        *byte = hexadecimal(digits.get(2 * place..2 * place + 2)?)?;
    }
    Some(address)
}

fn hexadecimal(digits: &str) -> Option<u8> {
    let are_digits = digits.chars().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| are_digits)
}
