//! The grammar of filter expressions, by recursive descent.
//!
//! ```text
//! expression = factor { ("and" | "or") factor }
//! factor     = { "not" } ( primitive | value relation value | "(" expression ")" )
//! primitive  = [ protocol ] [ "src" | "dst" | … ] [ "host" | "net" | "port" | "portrange" | "proto" ] operand
//! value      = number | "len" | protocol "[" value [ ":" size ] "]" | value operator value | "-" value | "(" value ")"
//! ```
//!
//! What an opening parenthesis begins, a condition or a value, shows behind it, so one function parses both ([`Item`]).

use super::condition::{Comparison, Condition, Operator, Value};
use super::names::{self, Protocol};
use super::primitives::{End, Headers};
use super::tokens::{self, Token};
use super::FilterError;

mod operands;

/// The deepest nesting of parentheses, and the most tokens: both bound the recursion.
const MAX_NESTING: usize = 50;
const MAX_TOKENS: usize = 4000;

const PRIMITIVE: &str = "a primitive such as tcp, ip6, host, net, port, src, dst or vlan, a value such as len or tcp[13], not or (";
const JOIN: &str = "and, or, or the end";
const RELATION: &str = "a comparison such as = or >";

/// The qualifiers of an operand, as in `tcp src port`.
#[derive(Clone, Copy)]
struct Qualifiers {
    protocol: Option<Protocol>,
    end: Option<End>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    Portrange,
    Proto,
}

/// A condition, or a value that is compared later.
enum Item {
    Test(Condition),
    Value(Arithmetic),
}

/// A value, and the conditions under which a frame has it.
struct Arithmetic {
    value: Value,
    requires: Vec<Condition>,
    /// The place of the token, if it is only a number: that may be an operand too.
    number: Option<usize>,
}

impl Arithmetic {
    fn constant(value: u32) -> Self {
        Self {
            value: Value::Constant(value),
            requires: Vec::new(),
            number: None,
        }
    }

    fn negated(self) -> Self {
        let zero = Value::Constant(0);
        Self {
            value: zero.minus(self.value),
            requires: self.requires,
            number: None,
        }
    }
}

pub struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    place: usize,
    /// The qualifiers of the previous operand, which a bare operand inherits.
    qualifiers: Option<Qualifiers>,
    /// The headers that primitives refer to.
    headers: Headers,
    depth: usize,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            tokens: tokens::tokens(text),
            place: 0,
            qualifiers: None,
            headers: Headers::default(),
            depth: 0,
        }
    }

    /// Parse the whole expression.
    pub fn filter(mut self) -> Result<Condition, FilterError> {
        if self.tokens.is_empty() {
            return Ok(Condition::Constant(true));
        }
        if self.tokens.len() > MAX_TOKENS {
            self.place = MAX_TOKENS;
            return Err(self.error_at_token("a shorter expression"));
        }
        let item = self.expression()?;
        let condition = self.condition(item)?;
        match self.peek() {
            None => Ok(condition),
            Some(_) => Err(self.error_at_token(JOIN)),
        }
    }

    fn peek(&self) -> Option<&'a str> {
        let token = self.tokens.get(self.place);
        token.filter(|token| !token.escaped).map(|token| token.text)
    }

    /// Consume the next token if it is one of `any`; return true if it was.
    fn accept(&mut self, any: &[&str]) -> bool {
        let is_next = self.peek().is_some_and(|token| any.contains(&token));
        self.place += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), FilterError> {
        if self.accept(&[token]) {
            return Ok(());
        }
        Err(self.error_at_token(expected))
    }

    fn error_at_token(&self, expected: &'static str) -> FilterError {
        self.error_at(self.place, self.place + 1, expected)
    }

    /// An error at the tokens from one place to another.
    fn error_at(&self, from: usize, to: usize, expected: &'static str) -> FilterError {
        let start = self.tokens.get(from).map(|token| token.start);
        let last = self.tokens[..to.min(self.tokens.len())].last();
        let (start, actual) = match (start, last) {
            (Some(start), Some(last)) => {
                let end = last.start + usize::from(last.escaped) + last.text.len();
                let is_unsupported = names::is_unsupported(&self.text[start..end]);
                let note = if is_unsupported {
                    ", which is not supported"
                } else {
                    ""
                };
                (start, format!("{:?}{note}", &self.text[start..end]))
            }
            _ => (self.text.len(), "the end".into()),
        };
        FilterError {
            column: self.text[..start].chars().count() + 1,
            actual,
            expected,
        }
    }

    /// Parse one level deeper.
    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, FilterError>,
    ) -> Result<T, FilterError> {
        if self.depth == MAX_NESTING {
            return Err(self.error_at_token("fewer parentheses"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn expression(&mut self) -> Result<Item, FilterError> {
        let first = self.factor()?;
        if matches!(first, Item::Value(_))
            && !matches!(self.peek(), Some("and" | "&&" | "or" | "||"))
        {
            return Ok(first);
        }
        let mut condition = self.condition(first)?;
        loop {
            let is_and = self.accept(&["and", "&&"]);
            if !is_and && !self.accept(&["or", "||"]) {
                return Ok(Item::Test(condition));
            }
            let next = self.factor()?;
            let next = self.condition(next)?;
            condition = if is_and {
                condition.and(next)
            } else {
                condition.or(next)
            };
        }
    }

    fn factor(&mut self) -> Result<Item, FilterError> {
        let mut negations = 0;
        while self.accept(&["not", "!"]) {
            negations += 1;
        }
        let item = self.relation()?;
        if negations == 0 {
            return Ok(item);
        }
        let condition = self.condition(item)?;
        Ok(Item::Test(match negations % 2 {
            0 => condition,
            _ => condition.negated(),
        }))
    }

    /// A number where a condition belongs is an operand with inherited qualifiers.
    fn condition(&mut self, item: Item) -> Result<Condition, FilterError> {
        let number = match item {
            Item::Test(condition) => return Ok(condition),
            Item::Value(value) => value.number,
        };
        let Some(number) = number else {
            return Err(self.error_at_token(RELATION));
        };
        let Some(qualifiers) = self.qualifiers else {
            return Err(self.error_at(number, number + 1, PRIMITIVE));
        };
        let behind = std::mem::replace(&mut self.place, number);
        let condition = self.operand(qualifiers)?;
        self.place = behind.max(self.place);
        Ok(condition)
    }

    fn relation(&mut self) -> Result<Item, FilterError> {
        let left = match self.arithmetic(0)? {
            Item::Value(left) => left,
            test @ Item::Test(_) => return Ok(test),
        };
        let (comparison, is_opposite) = match self.peek() {
            Some(">") => (Comparison::Greater, false),
            Some("<=") => (Comparison::Greater, true),
            Some(">=") => (Comparison::AtLeast, false),
            Some("<") => (Comparison::AtLeast, true),
            Some("=" | "==") => (Comparison::Equal, false),
            Some("!=") => (Comparison::Equal, true),
            _ => return Ok(Item::Value(left)),
        };
        self.place += 1;
        let right = self.value(0)?;
        self.qualifiers = None;
        let compared = Condition::Compare(left.value, comparison, right.value);
        let compared = if is_opposite {
            compared.negated()
        } else {
            compared
        };
        let requires = left.requires.into_iter().chain(right.requires);
        Ok(Item::Test(
            requires
                .chain([compared])
                .reduce(Condition::and)
                .unwrap_or(Condition::Constant(true)),
        ))
    }

    /// A value, where nothing else may be.
    fn value(&mut self, precedence: u8) -> Result<Arithmetic, FilterError> {
        let place = self.place;
        match self.arithmetic(precedence)? {
            Item::Value(value) => Ok(value),
            Item::Test(_) => {
                Err(self.error_at(place, place + 1, "a value such as 80, 0x1f, len or tcp[13]"))
            }
        }
    }

    /// Operators of at least a precedence, which bind from left to right.
    fn arithmetic(&mut self, precedence: u8) -> Result<Item, FilterError> {
        let mut left = match self.term()? {
            Item::Value(left) => left,
            test @ Item::Test(_) => return Ok(test),
        };
        while let Some((operator, own)) = self.peek().and_then(operator) {
            if own < precedence {
                break;
            }
            self.place += 1;
            let right = self.value(own + 1)?;
            left = self.binary(left, operator, right)?;
        }
        Ok(Item::Value(left))
    }

    /// The operand of an operator. `%` and `^` have no precedence in libpcap's grammar: each takes all to its right.
    fn term(&mut self) -> Result<Item, FilterError> {
        let left = match self.atom()? {
            Item::Value(left) => left,
            test @ Item::Test(_) => return Ok(test),
        };
        let operator = match self.peek() {
            Some("%") => Operator::Modulo,
            Some("^") => Operator::Xor,
            _ => return Ok(Item::Value(left)),
        };
        self.place += 1;
        let right = self.nested(|parser| parser.value(0))?;
        self.binary(left, operator, right).map(Item::Value)
    }

    /// Apply an operator. As in libpcap, only the left operand's protocol is required of the frame.
    fn binary(
        &self,
        left: Arithmetic,
        operator: Operator,
        right: Arithmetic,
    ) -> Result<Arithmetic, FilterError> {
        let is_shift = matches!(operator, Operator::ShiftLeft | Operator::ShiftRight);
        let is_too_far = is_shift && matches!(right.value, Value::Constant(32..));
        let is_by_zero = matches!(operator, Operator::Divide | Operator::Modulo)
            && right.value == Value::Constant(0);
        let value = left.value.binary(operator, right.value);
        let before = self.place - 1;
        let Some(value) = value.filter(|_| !is_too_far && !is_by_zero) else {
            let expected = if is_shift {
                "a shift of at most 31 bits"
            } else {
                "a divisor that is not 0"
            };
            return Err(self.error_at(before, before + 1, expected));
        };
        Ok(Arithmetic {
            value,
            requires: left.requires,
            number: None,
        })
    }

    /// Parse a parenthesis, a number, a field, or a primitive.
    fn atom(&mut self) -> Result<Item, FilterError> {
        let place = self.place;
        if self.accept(&["("]) {
            let item = self.nested(Self::expression)?;
            self.expect(")", "and, or, or )")?;
            if matches!(item, Item::Test(_)) {
                self.qualifiers = None;
            }
            return Ok(item);
        }
        if self.accept(&["-"]) {
            return match self.nested(Self::term)? {
                Item::Value(positive) => Ok(Item::Value(positive.negated())),
                Item::Test(_) => Err(self.error_at(place, place + 1, PRIMITIVE)),
            };
        }
        let Some(token) = self.peek() else {
            return self.primitive().map(Item::Test);
        };
        if let Some(number) = tokens::number(token).or_else(|| names::constant(token)) {
            self.place += 1;
            return Ok(Item::Value(Arithmetic {
                number: Some(place),
                ..Arithmetic::constant(number)
            }));
        }
        if self.accept(&["len", "length"]) {
            return Ok(Item::Value(Arithmetic {
                value: Value::Length,
                ..Arithmetic::constant(0)
            }));
        }
        let is_accessor = self
            .tokens
            .get(place + 1)
            .is_some_and(|next| next.text == "[");
        match names::protocol(token).filter(|_| is_accessor) {
            Some(protocol) => self.accessor(protocol).map(Item::Value),
            None => self.primitive().map(Item::Test),
        }
    }

    /// `tcp[13]` or `ip[2:2]`.
    fn accessor(&mut self, protocol: Protocol) -> Result<Arithmetic, FilterError> {
        let Some((base, offset, holds)) = self.headers.accessor(protocol) else {
            return Err(
                self.error_at_token("a protocol with fields, such as ether, ip, ip6, tcp or udp")
            );
        };
        self.place += 2;
        let index = self.nested(|parser| parser.value(0))?;
        let size = if self.accept(&[":"]) {
            let sizes = [("1", 1), ("2", 2), ("4", 4)];
            let known = sizes.iter().find(|(text, _)| self.accept(&[text]));
            let Some((_, size)) = known else {
                return Err(self.error_at_token("a size of 1, 2 or 4 bytes"));
            };
            *size
        } else {
            1
        };
        self.expect("]", "an operator, : with a size, or ]")?;
        let constant = Value::Constant(offset);
        let index_value = match offset {
            0 => index.value,
            _ => index
                .value
                .binary(Operator::Add, constant)
                .unwrap_or(Value::Constant(offset)),
        };
        let mut requires = index.requires;
        requires.push(holds);
        Ok(Arithmetic {
            value: Value::Load(base, Box::new(index_value), size),
            requires,
            number: None,
        })
    }
}

/// An operator and its precedence.
fn operator(token: &str) -> Option<(Operator, u8)> {
    Some(match token {
        "|" => (Operator::Or, 1),
        "&" => (Operator::And, 2),
        "<<" => (Operator::ShiftLeft, 3),
        ">>" => (Operator::ShiftRight, 3),
        "+" => (Operator::Add, 4),
        "-" => (Operator::Subtract, 4),
        "*" => (Operator::Multiply, 5),
        "/" => (Operator::Divide, 5),
        _ => return None,
    })
}
