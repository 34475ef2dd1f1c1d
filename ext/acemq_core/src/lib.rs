//! The AMQP core of `acemq_native`: no Ruby in here.
//!
//! | module | what it is |
//! |---|---|
//! | [`address`] | a broker URL, taken apart |
//! | [`tls`] | what a TLS dial verifies and shows |
//! | [`message`], [`headers`], [`body`] | what goes on the wire, and into the table |
//! | [`runtime`] | the one tokio runtime of this process |
//! | [`link`], [`gate`], [`line`] | one live connection; until when it may be written to; what dials a new one |
//! | [`publisher`], [`batch`], [`verdict`] | confirmed publishing and what became of each record |
//! | [`topology`], [`inbox`] | declarations and single gets |
//! | [`subscription`], [`feed`], [`letter`], `unsettled` | consuming: what holds the consumer, where deliveries wait, one delivery, its acks |
//! | [`ticket`] | what a plain thread waits on |
//! | `failpoint` | where tests make the process die |
//! | [`window`] | the in-memory idempotency window |
#![forbid(unsafe_code)]

pub mod address;
pub mod batch;
pub mod body;
pub mod error;
mod failpoint;
pub mod feed;
pub mod gate;
pub mod headers;
pub mod inbox;
mod legible;
pub mod letter;
pub mod line;
pub mod link;
pub mod message;
pub mod publisher;
pub mod runtime;
pub mod subscription;
pub mod ticket;
pub mod tls;
pub mod topology;
mod unsettled;
pub mod verdict;
pub mod window;

pub use error::{Error, Kind, Result, Scope};
