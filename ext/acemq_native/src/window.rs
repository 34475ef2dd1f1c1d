//! `AceMQ::Native::Window`: the in-memory idempotency window. Called under the GVL; the lock is never waited for.

use acemq_core::window::{Claim, Window as CoreWindow};
use magnus::{Error, IntoValue, Module, Object, RModule, RString, Ruby, TypedData, Value, function, method};
use std::cell::RefCell;
use std::time::{Duration, Instant};

#[magnus::wrap(class = "AceMQ::Native::Window", free_immediately, size)]
pub(crate) struct Window(RefCell<CoreWindow>);

impl Window {
    /// `new(seconds)`
    fn new(seconds: f64) -> Self {
        let length = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        Self(RefCell::new(CoreWindow::new(length)))
    }

    /// `claim(key) -> Integer token, :duplicate or :in_progress`
    fn claim(ruby: &Ruby, rb_self: &Self, key: RString) -> Value {
        // SAFETY: the window copies what it keeps, and nothing of Ruby runs before it returns.
        let claim = rb_self.0.borrow_mut().claim(unsafe { key.as_slice() }, Instant::now());
        match claim {
            Claim::Claimed(token) => token.into_value_with(ruby),
            Claim::Duplicate => ruby.to_symbol("duplicate").into_value_with(ruby),
            Claim::InProgress => ruby.to_symbol("in_progress").into_value_with(ruby),
        }
    }

    /// `confirm(key, token) -> bool`
    fn confirm(&self, key: RString, token: u64) -> bool {
        // SAFETY: as in `claim`.
        self.0.borrow_mut().confirm(unsafe { key.as_slice() }, token, Instant::now())
    }

    /// `forget(key, token) -> bool`
    fn forget(&self, key: RString, token: u64) -> bool {
        // SAFETY: as in `claim`.
        self.0.borrow_mut().forget(unsafe { key.as_slice() }, token, Instant::now())
    }

    /// `size -> Integer`
    fn size(&self) -> usize {
        self.0.borrow_mut().len(Instant::now())
    }
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Window", ruby.class_object())?;
    class.define_singleton_method("new", function!(Window::new, 1))?;
    class.define_method("claim", method!(Window::claim, 1))?;
    class.define_method("confirm", method!(Window::confirm, 2))?;
    class.define_method("forget", method!(Window::forget, 2))?;
    class.define_method("size", method!(Window::size, 0))?;
    <Window as TypedData>::class(ruby);
    Ok(())
}
