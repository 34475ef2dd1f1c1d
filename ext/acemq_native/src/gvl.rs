//! Waiting without the GVL. All the unsafe of this crate's waits lives here.

use crate::errors::raise;
use acemq_core::feed::{Feed, Taken};
use acemq_core::ticket::{Ticket, Wait};
use acemq_core::{Kind, runtime};
use magnus::{Error, Ruby};
use rb_sys::rb_thread_call_without_gvl2;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long a wait goes without a look at what Ruby has for this thread. Ruby calls no unblock function for a signal
/// when no thread of its own is left to watch for signals: when all are in waits like this one, or when this thread
/// began its wait beside another that has ended since.
const LOOK: Duration = Duration::from_millis(100);

/// Waits for a ticket with the GVL released, at most `limit`; `None` when the time was up.
///
/// Other Ruby threads run meanwhile, and `Timeout`, `Thread#kill` and signals end the wait: Ruby calls the unblock
/// function, the wait returns, and what was to happen to this thread happens.
pub(crate) fn wait<T>(ruby: &Ruby, ticket: &Arc<Ticket<T>>, limit: Option<Duration>) -> Result<Option<T>, Error> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
        match wait_once(&**ticket, left.min(LOOK)) {
            Wait::Answer(answer) => return Ok(Some(answer)),
            Wait::Pending if left <= LOOK && end.is_some() => return Ok(None),
            Wait::Pending => ruby.thread_check_ints()?,
            Wait::Interrupted => {
                ruby.thread_check_ints()?;
                // Where each interrupt leaves another one due, under a collector that never rests, Ruby never lets us wait.
                match ticket.wait(Some(Duration::ZERO)) {
                    Wait::Answer(answer) => return Ok(Some(answer)),
                    _ if end.is_some_and(|end| Instant::now() >= end) => return Ok(None),
                    Wait::Pending | Wait::Interrupted => {}
                }
            }
        }
    }
}

/// Takes the next delivery, waiting at most `limit` with the GVL released. A delivery that an interrupted thread was
/// just given goes back to the others.
pub(crate) fn take(ruby: &Ruby, feed: &Feed, limit: Duration) -> Result<Option<Taken>, Error> {
    let turn = Turn { feed, interrupted: AtomicBool::new(false) };
    let ended = wait_once(&turn, limit);
    if let Err(interrupt) = ruby.thread_check_ints() {
        if let Wait::Answer(Taken::Letter(letter)) = ended {
            feed.put_back(*letter);
        }
        return Err(interrupt);
    }
    Ok(match ended {
        Wait::Answer(taken) => Some(taken),
        Wait::Pending | Wait::Interrupted => None,
    })
}

/// Runs a future on the runtime and waits for it. A panic in it ends as an ordinary error.
pub(crate) fn run<T: Send + 'static>(
    ruby: &Ruby,
    work: impl Future<Output = acemq_core::Result<T>> + Send + 'static,
) -> Result<T, Error> {
    let ticket = Ticket::new();
    let answering = Arc::clone(&ticket);
    let runtime = runtime::handle();
    let done = runtime.spawn(work);
    runtime.spawn(async move {
        answering.answer(done.await.unwrap_or_else(|e| {
            Err(acemq_core::Error::new(Kind::Internal, format!("a defect in acemq_native: {e}; please report it")))
        }));
    });
    match wait(ruby, &ticket, None)? {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(e)) => Err(raise(ruby, &e)),
        None => unreachable!("a wait without a limit ends with an answer"),
    }
}

/// What a thread can wait for, and be woken from by any other.
trait Waitable {
    type Answer;
    fn wait(&self, limit: Duration) -> Wait<Self::Answer>;
    fn interrupt(&self);
}

impl<T> Waitable for Ticket<T> {
    type Answer = T;

    fn wait(&self, limit: Duration) -> Wait<T> {
        Ticket::wait(self, Some(limit))
    }

    fn interrupt(&self) {
        Ticket::interrupt(self);
    }
}

/// One thread's wait for a delivery.
struct Turn<'a> {
    feed: &'a Feed,
    interrupted: AtomicBool,
}

impl Waitable for Turn<'_> {
    type Answer = Taken;

    fn wait(&self, limit: Duration) -> Wait<Taken> {
        self.feed.take(limit, &self.interrupted)
    }

    fn interrupt(&self) {
        self.feed.interrupt(&self.interrupted);
    }
}

struct Call<'a, W: Waitable> {
    subject: &'a W,
    limit: Duration,
    ended: Wait<W::Answer>,
}

/// Raises nothing: an exception would jump over this frame and leave what it holds undropped. Whoever calls it looks
/// at the interrupts afterwards.
fn wait_once<W: Waitable>(subject: &W, limit: Duration) -> Wait<W::Answer> {
    // Ruby does not call `blocking` at all while an interrupt is due.
    let mut call = Call { subject, limit, ended: Wait::Interrupted };
    // SAFETY: `call` lives on this stack frame until rb_thread_call_without_gvl2 returns, which raises nothing, and so
    // does the subject it borrows; `blocking` and `unblock` are given pointers of the types they cast to, touch no Ruby
    // value, and `unblock` is never called after the call has returned.
    unsafe {
        rb_thread_call_without_gvl2(
            Some(blocking::<W>),
            (&raw mut call).cast(),
            Some(unblock::<W>),
            std::ptr::from_ref(subject).cast_mut().cast(),
        );
    }
    call.ended
}

unsafe extern "C" fn blocking<W: Waitable>(call: *mut c_void) -> *mut c_void {
    // SAFETY: `wait_once` passes its own Call<W>, which nobody else touches until we return.
    let call = unsafe { &mut *call.cast::<Call<'_, W>>() };
    call.ended = call.subject.wait(call.limit);
    std::ptr::null_mut()
}

unsafe extern "C" fn unblock<W: Waitable>(subject: *mut c_void) {
    // SAFETY: `wait_once` passes the subject it borrows; a shared reference is all that `interrupt` needs.
    unsafe { &*subject.cast::<W>() }.interrupt();
}
