//! A core error as a Ruby exception, or as the facts from which Ruby builds one.

use acemq_core::{Error as CoreError, Kind, Scope};
use magnus::{Error, ExceptionClass, IntoValue, Module, RArray, RModule, Ruby, Value};

/// The exception for an error that stands for a whole call.
pub(crate) fn raise(ruby: &Ruby, error: &CoreError) -> Error {
    let class = match error.kind() {
        Kind::Config => amqp_class(ruby, "ConfigurationError"),
        Kind::Refused => Ok(ruby.exception_arg_error()),
        Kind::Blocked | Kind::Unsent => amqp_class(ruby, "PublishingPausedError"),
        _ => amqp_class(ruby, "TransportError"),
    };
    match class {
        Ok(class) => Error::new(class, error.message().to_owned()),
        Err(e) => e,
    }
}

fn amqp_class(ruby: &Ruby, name: &str) -> Result<ExceptionClass, Error> {
    let amqp: RModule = ruby.class_object().const_get::<_, RModule>("AceMQ")?.const_get("AMQP")?;
    amqp.const_get(name)
}

/// `[kind, scope, unknown, code, message]`, of which `AceMQ::AMQP::Ticket` makes an exception.
pub(crate) fn facts(ruby: &Ruby, error: &CoreError) -> RArray {
    let array = ruby.ary_new_capa(5);
    let parts: [Value; 5] = [
        ruby.to_symbol(kind(error.kind())).into_value_with(ruby),
        ruby.to_symbol(scope(error.scope())).into_value_with(ruby),
        error.unknown().into_value_with(ruby),
        error.code().into_value_with(ruby),
        error.message().into_value_with(ruby),
    ];
    for part in parts {
        // A new array with room for five cannot refuse the fifth.
        let _ = array.push(part);
    }
    array
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Config => "config",
        Kind::Connect => "connect",
        Kind::Lost => "lost",
        Kind::Unsent => "unsent",
        Kind::Blocked => "blocked",
        Kind::Unconfirmed => "unconfirmed",
        Kind::Refused => "refused",
        Kind::Returned => "returned",
        Kind::Nacked => "nacked",
        Kind::NoExchange => "no_exchange",
        Kind::AccessRefused => "access_refused",
        Kind::Broker => "broker",
        Kind::Closed => "closed",
        Kind::Internal => "internal",
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Record => "record",
        Scope::Destination => "destination",
        Scope::Connection => "connection",
    }
}
