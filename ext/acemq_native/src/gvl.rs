//! Waiting without the GVL. All the unsafe of this crate's waits lives here.

use crate::errors::raise;
use acemq_core::ticket::{Ticket, Wait};
use acemq_core::{Kind, runtime};
use magnus::{Error, Ruby};
use rb_sys::rb_thread_call_without_gvl;
use std::ffi::c_void;
use std::sync::Arc;
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
        match wait_once(ticket, left.min(LOOK)) {
            Wait::Answer(answer) => return Ok(Some(answer)),
            Wait::Pending if left <= LOOK && end.is_some() => return Ok(None),
            Wait::Pending | Wait::Interrupted => ruby.thread_check_ints()?,
        }
    }
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

struct Call<'a, T> {
    ticket: &'a Ticket<T>,
    limit: Duration,
    ended: Wait<T>,
}

fn wait_once<T>(ticket: &Ticket<T>, limit: Duration) -> Wait<T> {
    let mut call = Call { ticket, limit, ended: Wait::Pending };
    // SAFETY: `call` lives on this stack frame until rb_thread_call_without_gvl returns, and so does the ticket it
    // borrows; `blocking` and `unblock` are given pointers of the types they cast to, touch no Ruby value, and
    // `unblock` is never called after the call has returned.
    unsafe {
        rb_thread_call_without_gvl(
            Some(blocking::<T>),
            (&raw mut call).cast(),
            Some(unblock::<T>),
            std::ptr::from_ref(ticket).cast_mut().cast(),
        );
    }
    call.ended
}

unsafe extern "C" fn blocking<T>(call: *mut c_void) -> *mut c_void {
    // SAFETY: `wait_once` passes its own Call<T>, which nobody else touches until we return.
    let call = unsafe { &mut *call.cast::<Call<'_, T>>() };
    call.ended = call.ticket.wait(Some(call.limit));
    std::ptr::null_mut()
}

unsafe extern "C" fn unblock<T>(ticket: *mut c_void) {
    // SAFETY: `wait_once` passes the ticket it borrows; a shared reference is all that `interrupt` needs.
    unsafe { &*ticket.cast::<Ticket<T>>() }.interrupt();
}
