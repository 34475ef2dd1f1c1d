//! The Ruby binding of `acemq_core`: convert, wait, raise. It takes no decision about brokers, rows or retries.
//!
//! `AceMQ::Native` is private to this gem; its methods take no optional arguments, so that a forgotten one fails
//! in the first test that calls it. See `ext/README.md` for threads, the GVL, forks and panics.

mod client;
mod codec;
mod convert;
mod errors;
mod gvl;
mod inbox;
mod parcel;
mod subscription;
mod ticket;
mod window;

use magnus::{Error, Module, Ruby};

// Each class's `init` ends by looking its own class up. magnus remembers what it finds behind a lock, and the look-up
// runs Ruby, which may hand the GVL to another thread that waits for the same lock: here there is no other thread yet.
#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    // The first thread fixes the stack size of all: `lib/acemq/native.rb` says why it matters now.
    let _ = std::thread::spawn(|| ()).join();
    let native = ruby.define_module("AceMQ")?.define_module("Native")?;
    codec::init(ruby, native)?;
    ticket::init(ruby, native)?;
    parcel::init(ruby, native)?;
    inbox::init(ruby, native)?;
    subscription::init(ruby, native)?;
    client::init(ruby, native)?;
    window::init(ruby, native)
}
