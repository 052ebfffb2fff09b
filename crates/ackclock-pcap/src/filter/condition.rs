//! Conditions on the bytes of a frame, and their evaluation.
//!
//! `None` is a load behind the captured bytes, or a division by zero: the frame matches no expression, as a BPF program
//! returns 0 there.

use super::frame::{Base, Frame, Nesting};

/// A condition on a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// True or false for every frame.
    Constant(bool),
    /// The link layer is Ethernet.
    Ethernet,
    /// The header at a nesting is that of an `EtherType`, or of an LLC service access point (up to 1500).
    Protocol(Nesting, u16),
    /// A relation of two values.
    Compare(Value, Comparison, Value),
    /// The opposite.
    Not(Box<Self>),
    /// All of them, from left to right.
    All(Vec<Self>),
    /// Any of them, from left to right.
    Any(Vec<Self>),
}

/// A relation; the others are opposites of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Greater,
    AtLeast,
}

/// A value of 32 bits, without sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A constant.
    Constant(u32),
    /// The length of the frame on the link.
    Length,
    /// One, two or four bytes at an index behind a base.
    Load(Base, Box<Self>, u8),
    /// The result of an operation.
    Binary(Box<[Self; 2]>, Operator),
}

/// An operator of arithmetic modulo 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

impl Condition {
    /// Return true if the frame meets it; none if that cannot be decided from the captured bytes.
    pub fn holds(&self, frame: &Frame) -> Option<bool> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Ethernet => Some(frame.is_ethernet()),
            Self::Protocol(nesting, number) => frame.has_protocol(*nesting, *number),
            Self::Compare(left, comparison, right) => {
                let (left, right) = (left.of(frame)?, right.of(frame)?);
                Some(match comparison {
                    Comparison::Equal => left == right,
                    Comparison::Greater => left > right,
                    Comparison::AtLeast => left >= right,
                })
            }
            Self::Not(inner) => inner.holds(frame).map(|holds| !holds),
            Self::All(parts) => Self::fold(parts, frame, true),
            Self::Any(parts) => Self::fold(parts, frame, false),
        }
    }

    /// Evaluate parts for as long as they have a value.
    fn fold(parts: &[Self], frame: &Frame, value: bool) -> Option<bool> {
        for part in parts {
            if part.holds(frame)? != value {
                return Some(!value);
            }
        }
        Some(value)
    }

    /// The opposite of it.
    pub fn negated(self) -> Self {
        match self {
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// It, and then `next`.
    pub fn and(self, next: Self) -> Self {
        match self {
            Self::All(mut parts) => {
                parts.push(next);
                Self::All(parts)
            }
            first => Self::All(vec![first, next]),
        }
    }

    /// It, or else `next`.
    pub fn or(self, next: Self) -> Self {
        match self {
            Self::Any(mut parts) => {
                parts.push(next);
                Self::Any(parts)
            }
            first => Self::Any(vec![first, next]),
        }
    }
}

impl Value {
    /// The bytes at a fixed place behind a base.
    pub fn field(base: Base, at: u32, size: u8) -> Self {
        Self::Load(base, Box::new(Self::Constant(at)), size)
    }

    /// An operation on two values; one on constants is a constant.
    pub fn binary(self, operator: Operator, right: Self) -> Option<Self> {
        if let (Self::Constant(left), Self::Constant(right)) = (&self, &right) {
            return operator.apply(*left, *right).map(Self::Constant);
        }
        Some(Self::Binary(Box::new([self, right]), operator))
    }

    /// The difference of two values.
    pub fn minus(self, right: Self) -> Self {
        Self::Binary(Box::new([self, right]), Operator::Subtract)
    }

    /// The value with all bits outside a mask cleared.
    pub fn masked(self, mask: u32) -> Self {
        if mask == u32::MAX {
            return self;
        }
        Self::Binary(Box::new([self, Self::Constant(mask)]), Operator::And)
    }

    /// The condition that it is equal to a constant.
    pub fn is(self, value: u32) -> Condition {
        Condition::Compare(self, Comparison::Equal, Self::Constant(value))
    }

    fn of(&self, frame: &Frame) -> Option<u32> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Length => Some(frame.length),
            Self::Load(base, index, size) => frame.load(*base, index.of(frame)?, *size),
            Self::Binary(operands, operator) => {
                operator.apply(operands[0].of(frame)?, operands[1].of(frame)?)
            }
        }
    }
}

impl Operator {
    /// Apply the operator; a shift by all bits gives 0.
    fn apply(self, left: u32, right: u32) -> Option<u32> {
        Some(match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide => left.checked_div(right)?,
            Self::Modulo => left.checked_rem(right)?,
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
            Self::ShiftLeft => left.checked_shl(right).unwrap_or(0),
            Self::ShiftRight => left.checked_shr(right).unwrap_or(0),
        })
    }
}
