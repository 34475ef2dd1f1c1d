//! `AceMQ::Native::Subscription`: a consumer from which Ruby threads take deliveries.

use crate::client::seconds;
use crate::gvl;
use crate::parcel::{Desk, unpack};
use acemq_core::feed::{Standing, Taken};
use acemq_core::subscription::Subscription as CoreSubscription;
use magnus::{Class, Error, IntoValue, Module, RArray, RModule, Ruby, TypedData, Value, method, prelude::*};
use std::cell::RefCell;
use std::mem;
use std::process;
use std::sync::Arc;
use tokio::time::Instant;

/// A subscription is its process's own: in a child it has ended.
#[magnus::wrap(class = "AceMQ::Native::Subscription", free_immediately, size)]
pub(crate) struct Subscription {
    pid: u32,
    subscription: RefCell<Option<Arc<CoreSubscription>>>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.pid != process::id() {
            mem::forget(self.subscription.take());
        }
    }
}

impl Subscription {
    pub(crate) fn new(subscription: CoreSubscription) -> Self {
        Self { pid: process::id(), subscription: RefCell::new(Some(Arc::new(subscription))) }
    }

    fn ours(&self) -> Option<Arc<CoreSubscription>> {
        if self.pid == process::id() { self.subscription.borrow().clone() } else { None }
    }

    /// `pop(seconds) -> Array`, see `parcel::unpack`; nil when there was none in time; false when none will come.
    fn pop(ruby: &Ruby, rb_self: &Self, limit: f64) -> Result<Value, Error> {
        let Some(subscription) = rb_self.ours() else { return Ok(false.into_value_with(ruby)) };
        let taken = match subscription.feed().try_take() {
            Some(letter) => Some(Taken::Letter(Box::new(letter))),
            None => gvl::take(ruby, subscription.feed(), seconds(limit))?,
        };
        Ok(match taken {
            Some(Taken::Letter(letter)) => unpack(ruby, *letter, Desk::Subscription(subscription))?.as_value(),
            Some(Taken::End) => false.into_value_with(ruby),
            None => ruby.qnil().as_value(),
        })
    }

    /// `standing -> [:consuming, :waiting or :stopped, String or nil]`
    fn standing(ruby: &Ruby, rb_self: &Self) -> Result<RArray, Error> {
        let standing = match rb_self.ours() {
            Some(subscription) => subscription.feed().standing(),
            None => Standing::Stopped("it belongs to the parent process".to_owned()),
        };
        let (name, reason) = match standing {
            Standing::Consuming => ("consuming", None),
            Standing::Waiting(reason) => ("waiting", Some(reason)),
            Standing::Stopped(reason) => ("stopped", Some(reason)),
        };
        let array = ruby.ary_new_capa(2);
        array.push(ruby.to_symbol(name))?;
        array.push(reason)?;
        Ok(array)
    }

    /// `stop(seconds) -> nil`: nothing more is begun; what was begun can still be settled.
    fn stop(ruby: &Ruby, rb_self: &Self, limit: f64) -> Result<(), Error> {
        let Some(subscription) = rb_self.ours() else { return Ok(()) };
        let end = Instant::now() + seconds(limit);
        gvl::run(ruby, async move {
            subscription.stop(end).await;
            Ok(())
        })
    }

    /// `close(seconds) -> nil`
    fn close(ruby: &Ruby, rb_self: &Self, limit: f64) -> Result<(), Error> {
        let Some(subscription) = rb_self.ours() else { return Ok(()) };
        let end = Instant::now() + seconds(limit);
        gvl::run(ruby, async move {
            subscription.close(end).await;
            Ok(())
        })
    }
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Subscription", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("pop", method!(Subscription::pop, 1))?;
    class.define_method("standing", method!(Subscription::standing, 0))?;
    class.define_method("stop", method!(Subscription::stop, 1))?;
    class.define_method("close", method!(Subscription::close, 1))?;
    <Subscription as TypedData>::class(ruby);
    Ok(())
}
