//! `AceMQ::Native::Ticket`: a batch that is under way.

use crate::errors::facts;
use crate::gvl;
use acemq_core::Error as CoreError;
use acemq_core::gate::SendBy;
use acemq_core::publisher::Outcomes;
use acemq_core::ticket::Ticket as CoreTicket;
use magnus::{Class, Error, Module, RArray, RModule, Ruby, TypedData, method};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The core's ticket, and the messages that were refused before they came so far.
#[magnus::wrap(class = "AceMQ::Native::Ticket", free_immediately, size)]
pub(crate) struct Ticket {
    ticket: Arc<CoreTicket<Outcomes>>,
    send_by: Arc<SendBy>,
    refused: RefCell<Vec<(usize, CoreError)>>,
}

impl Ticket {
    pub(crate) fn new(
        ticket: Arc<CoreTicket<Outcomes>>,
        send_by: Arc<SendBy>,
        refused: Vec<(usize, CoreError)>,
    ) -> Self {
        Self { ticket, send_by, refused: RefCell::new(refused) }
    }

    /// `wait(seconds) -> nil` while it is under way, else one entry per message: nil or the facts of a failure.
    fn wait(ruby: &Ruby, rb_self: &Self, seconds: f64) -> Result<Option<RArray>, Error> {
        let limit = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        match gvl::wait(ruby, &rb_self.ticket, Some(limit))? {
            None => Ok(None),
            Some(outcomes) => rb_self.report(ruby, outcomes).map(Some),
        }
    }

    fn report(&self, ruby: &Ruby, outcomes: Outcomes) -> Result<RArray, Error> {
        let mut refused = self.refused.take().into_iter().peekable();
        let mut outcomes = outcomes.into_iter();
        let array = ruby.ary_new();
        loop {
            if let Some((_, error)) = refused.next_if(|(at, _)| *at == array.len()) {
                array.push(facts(ruby, &error))?;
                continue;
            }
            match outcomes.next() {
                Some(Ok(())) => array.push(ruby.qnil())?,
                Some(Err(error)) => array.push(facts(ruby, &error))?,
                None => return Ok(array),
            }
        }
    }

    /// `send_by(seconds) -> nil`: its leases were renewed; what is still to be written may be, for so long from now.
    fn send_by(&self, seconds: f64) {
        let limit = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        self.send_by.set(Instant::now().checked_add(limit));
    }

    /// `cancel -> nil`: nothing more is written; the answer comes promptly.
    fn cancel(&self) {
        self.ticket.cancel();
    }
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Ticket", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("wait", method!(Ticket::wait, 1))?;
    class.define_method("send_by", method!(Ticket::send_by, 1))?;
    class.define_method("cancel", method!(Ticket::cancel, 0))?;
    <Ticket as TypedData>::class(ruby);
    Ok(())
}
