//! What can go wrong, and whose fault it is.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A setting is wrong: a URL, a certificate file, a keyword.
    Config,
    /// No connection could be made, or the broker would not have us.
    Connect,
    /// The connection was lost with this record on it: it may have arrived.
    Lost,
    /// Nothing of this record was written: it is safe to send again.
    Unsent,
    /// The broker has blocked the connection (a memory or disk alarm).
    Blocked,
    /// No confirm came in time: it may have arrived.
    Unconfirmed,
    /// The wire cannot carry this record, or the broker will never take it.
    Refused,
    /// No queue is bound for it: the broker returned it.
    Returned,
    /// The broker answered with a nack: a queue would not take it.
    Nacked,
    /// The exchange does not exist.
    NoExchange,
    /// The broker does not let this user do it.
    AccessRefused,
    /// The broker refused an operation on its topology.
    Broker,
    /// The connection was closed by its owner.
    Closed,
    /// A defect in this library, caught before it could do harm.
    Internal,
}

/// Whose turn, life or time a failure costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The record itself cannot be sent.
    Record,
    /// Its destination (exchange and routing key) cannot be reached.
    Destination,
    /// The connection failed; the record is innocent.
    Connection,
}

/// One failure: what, in words for a person, and the broker's code where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: Kind,
    scope: Scope,
    code: Option<u16>,
    message: String,
}

impl Error {
    /// A failure of the given kind, with the scope that kind usually has.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, scope: kind.usual_scope(), code: None, message: message.into() }
    }

    pub fn config(message: impl Into<String>) -> Self {
        Self::new(Kind::Config, message)
    }

    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    #[must_use]
    pub fn with_code(mut self, code: u16) -> Self {
        self.code = Some(code);
        self
    }

    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// The same, and what else is known.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(note);
        self
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The AMQP reply code, when the broker gave one.
    pub fn code(&self) -> Option<u16> {
        self.code
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the record may be in a queue all the same.
    pub fn unknown(&self) -> bool {
        matches!(self.kind, Kind::Lost | Kind::Unconfirmed | Kind::Internal)
    }
}

impl Kind {
    fn usual_scope(self) -> Scope {
        match self {
            Kind::Refused => Scope::Record,
            Kind::Returned | Kind::Nacked | Kind::NoExchange | Kind::AccessRefused => Scope::Destination,
            _ => Scope::Connection,
        }
    }
}
