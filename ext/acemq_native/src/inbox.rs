//! `AceMQ::Native::Inbox`: single gets whose messages go back together.

use crate::gvl;
use crate::parcel::{Desk, unpack};
use acemq_core::inbox::Inbox as CoreInbox;
use magnus::{Class, Error, Module, RArray, RModule, Ruby, TypedData, method};
use std::mem;
use std::process;
use std::sync::Arc;

#[magnus::wrap(class = "AceMQ::Native::Inbox", free_immediately, size)]
pub(crate) struct Inbox {
    pid: u32,
    core: Arc<CoreInbox>,
}

/// The connection is the parent's: its child leaves it lying.
impl Drop for Inbox {
    fn drop(&mut self) {
        if !self.ours() {
            mem::forget(Arc::clone(&self.core));
        }
    }
}

impl Inbox {
    pub(crate) fn new(core: CoreInbox) -> Self {
        Self { pid: process::id(), core: Arc::new(core) }
    }

    fn ours(&self) -> bool {
        self.pid == process::id()
    }

    /// `pull(queue) -> Array or nil`, see `parcel::unpack`
    fn pull(ruby: &Ruby, rb_self: &Self, queue: String) -> Result<Option<RArray>, Error> {
        if !rb_self.ours() {
            return Err(Error::new(
                ruby.exception_arg_error(),
                "this was opened before the process forked; open another",
            ));
        }
        pull(ruby, Arc::clone(&rb_self.core), queue)
    }

    /// `close`
    fn close(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        if !rb_self.ours() {
            return Ok(());
        }
        let core = Arc::clone(&rb_self.core);
        gvl::run(ruby, async move { core.close().await })
    }
}

/// The next message of a queue as an Array, see `parcel::unpack`, or nothing.
pub(crate) fn pull(ruby: &Ruby, inbox: Arc<CoreInbox>, queue: String) -> Result<Option<RArray>, Error> {
    let pulling = Arc::clone(&inbox);
    let got = gvl::run(ruby, async move { pulling.pull(&queue).await })?;
    got.take().map(|got| unpack(ruby, got, Desk::Inbox(inbox))).transpose()
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Inbox", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("pull", method!(Inbox::pull, 1))?;
    class.define_method("close", method!(Inbox::close, 0))?;
    <Inbox as TypedData>::class(ruby);
    Ok(())
}
