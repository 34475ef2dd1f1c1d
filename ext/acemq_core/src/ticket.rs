//! What a plain thread waits on while the runtime works.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A place for one answer. The runtime fills it; a thread waits for it, in slices if it likes.
pub struct Ticket<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    cancelled: AtomicBool,
    cancel: Notify,
}

struct State<T> {
    answer: Option<T>,
    interrupted: bool,
}

/// Why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Wait<T> {
    Answer(T),
    /// The time was up.
    Pending,
    /// [`Ticket::interrupt`] was called.
    Interrupted,
}

impl<T> Ticket<T> {
    #[allow(clippy::new_without_default, reason = "a ticket is always shared")]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { answer: None, interrupted: false }),
            changed: Condvar::new(),
            cancelled: AtomicBool::new(false),
            cancel: Notify::new(),
        })
    }

    /// Gives the answer. Only the first one counts.
    pub fn answer(&self, answer: T) {
        let mut state = self.state.lock();
        if state.answer.is_none() {
            state.answer = Some(answer);
        }
        self.changed.notify_all();
    }

    /// Waits for the answer and takes it. `None` waits for ever.
    pub fn wait(&self, limit: Option<Duration>) -> Wait<T> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = self.state.lock();
        loop {
            if let Some(answer) = state.answer.take() {
                return Wait::Answer(answer);
            }
            if std::mem::take(&mut state.interrupted) {
                return Wait::Interrupted;
            }
            match end {
                None => self.changed.wait(&mut state),
                Some(end) => {
                    if self.changed.wait_until(&mut state, end).timed_out()
                        && state.answer.is_none()
                        && !state.interrupted
                    {
                        return Wait::Pending;
                    }
                }
            }
        }
    }

    /// Wakes a waiting thread, from any other.
    pub fn interrupt(&self) {
        self.state.lock().interrupted = true;
        self.changed.notify_all();
    }

    /// Says that nobody needs the work done any more. An answer still comes.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.cancel.notify_waiters();
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Resolves when [`cancel`](Self::cancel) has been called.
    pub async fn cancelled(&self) {
        let notified = self.cancel.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn an_answer_is_taken_once() {
        let ticket = Ticket::new();
        ticket.answer(1);
        assert_eq!(ticket.wait(None), Wait::Answer(1));
        assert_eq!(ticket.wait(Some(Duration::ZERO)), Wait::Pending);
    }

    #[test]
    fn an_interrupt_wakes_a_waiting_thread_once() {
        let ticket = Ticket::<()>::new();
        let waiting = Arc::clone(&ticket);
        let thread = thread::spawn(move || waiting.wait(None));
        ticket.interrupt();
        assert_eq!(thread.join().unwrap(), Wait::Interrupted);
        assert_eq!(ticket.wait(Some(Duration::ZERO)), Wait::Pending);
    }

    #[test]
    fn an_answer_from_another_thread_arrives() {
        let ticket = Ticket::new();
        let answering = Arc::clone(&ticket);
        let thread = thread::spawn(move || answering.answer("done"));
        assert_eq!(ticket.wait(Some(Duration::from_secs(10))), Wait::Answer("done"));
        thread.join().unwrap();
    }
}
