//! `AceMQ::Native::Parcel`: a delivery that can be settled once, and copied until then.

use crate::convert::hash_of;
use crate::gvl;
use acemq_core::inbox::Inbox;
use acemq_core::letter::Letter;
use acemq_core::subscription::Subscription;
use magnus::{Class, Error, IntoValue, Module, RArray, RModule, Ruby, TypedData, method};
use std::cell::RefCell;
use std::mem;
use std::process;
use std::sync::Arc;

/// Where a delivery came from, and is settled.
#[derive(Clone)]
pub(crate) enum Desk {
    Inbox(Arc<Inbox>),
    Subscription(Arc<Subscription>),
}

/// Body and properties are let go of when it is settled, not when Ruby collects it.
#[magnus::wrap(class = "AceMQ::Native::Parcel", free_immediately, size)]
pub(crate) struct Parcel(RefCell<Option<Held>>);

struct Held {
    pid: u32,
    desk: Desk,
    letter: Arc<Letter>,
}

/// Locks inside were perhaps taken when the child was forked off: what a parent received is left lying.
impl Drop for Held {
    fn drop(&mut self) {
        if self.pid != process::id() {
            mem::forget(self.desk.clone());
        }
    }
}

impl Parcel {
    /// The letter, unless it is settled or another process's.
    pub(crate) fn letter(&self) -> Option<Arc<Letter>> {
        self.0.borrow().as_ref().filter(|held| held.pid == process::id()).map(|held| Arc::clone(&held.letter))
    }

    /// `alive? -> bool`: whether settling it means something to the broker.
    fn is_alive(&self) -> bool {
        match &*self.0.borrow() {
            Some(held) if held.pid == process::id() => match &held.desk {
                Desk::Inbox(inbox) => inbox.alive(held.letter.generation),
                Desk::Subscription(subscription) => subscription.feed().alive(held.letter.generation),
            },
            _ => false,
        }
    }

    /// `settle(accept, requeue) -> bool`: false when its channel is gone, or when it was settled before.
    fn settle(ruby: &Ruby, rb_self: &Self, accept: bool, requeue: bool) -> Result<bool, Error> {
        let Some(held) = rb_self.0.take() else { return Ok(false) };
        if held.pid != process::id() {
            return Ok(false);
        }
        let letter = Arc::clone(&held.letter);
        match held.desk.clone() {
            Desk::Subscription(subscription) => Ok(subscription.settle(&letter, accept, requeue)),
            Desk::Inbox(inbox) => {
                gvl::run(ruby, async move { inbox.settle(letter.tag, letter.generation, accept, requeue).await })
            }
        }
    }
}

/// A letter as `[body, content_type, routing_key, exchange, message_id, headers, redelivered, reply_to, parcel]`.
pub(crate) fn unpack(ruby: &Ruby, letter: Letter, desk: Desk) -> Result<RArray, Error> {
    let array = ruby.ary_new_capa(9);
    array.push(ruby.str_from_slice(&letter.body))?;
    array.push(letter.content_type())?;
    array.push(letter.routing_key.as_str())?;
    array.push(letter.exchange.as_str())?;
    array.push(letter.message_id())?;
    array.push(hash_of(ruby, letter.headers())?)?;
    array.push(letter.redelivered)?;
    array.push(letter.reply_to())?;
    let held = Held { pid: process::id(), desk, letter: Arc::new(letter) };
    array.push(Parcel(RefCell::new(Some(held))).into_value_with(ruby))?;
    Ok(array)
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Parcel", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("alive?", method!(Parcel::is_alive, 0))?;
    class.define_method("settle", method!(Parcel::settle, 2))?;
    <Parcel as TypedData>::class(ruby);
    Ok(())
}
