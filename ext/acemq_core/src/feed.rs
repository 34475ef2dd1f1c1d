//! Deliveries that wait for a thread to take them.

use crate::letter::Letter;
use crate::ticket::Wait;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How a subscription stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The broker has the consumer.
    Consuming,
    /// It does not, and we are about to subscribe again.
    Waiting(String),
    /// For good.
    Stopped(String),
}

/// Filled by the task of a subscription, emptied by any number of threads.
pub struct Feed {
    state: Mutex<State>,
    changed: Condvar,
    /// As few deliveries as this, or fewer, are soon gone.
    few: usize,
    running_low: Notify,
}

struct State {
    letters: VecDeque<Letter>,
    /// Of the channel that is open; 0 while none is.
    generation: u64,
    standing: Standing,
}

/// What a thread that takes from the feed gets.
#[derive(Debug)]
pub enum Taken {
    Letter(Box<Letter>),
    /// No more will come.
    End,
}

impl Feed {
    pub(crate) fn new(few: usize) -> Self {
        let standing = Standing::Waiting("not subscribed yet".to_owned());
        let state = Mutex::new(State { letters: VecDeque::new(), generation: 0, standing });
        Self { state, changed: Condvar::new(), few, running_low: Notify::new() }
    }

    /// Whether threads have something to do for a while.
    pub(crate) fn plenty(&self) -> bool {
        self.state.lock().letters.len() > self.few
    }

    /// Until they have not.
    pub(crate) async fn running_low(&self) {
        self.running_low.notified().await;
    }

    fn next(&self, state: &mut State) -> Option<Letter> {
        let letter = state.letters.pop_front();
        if letter.is_some() && state.letters.len() == self.few {
            self.running_low.notify_one();
        }
        letter
    }

    /// The next delivery, if there is one and nobody is just looking.
    pub fn try_take(&self) -> Option<Letter> {
        self.next(&mut *self.state.try_lock()?)
    }

    /// Waits for the next delivery, at most `limit`.
    pub fn take(&self, limit: Duration, interrupted: &AtomicBool) -> Wait<Taken> {
        let end = Instant::now().checked_add(limit);
        let mut state = self.state.lock();
        loop {
            if let Some(letter) = self.next(&mut state) {
                return Wait::Answer(Taken::Letter(Box::new(letter)));
            }
            if matches!(state.standing, Standing::Stopped(_)) {
                return Wait::Answer(Taken::End);
            }
            if interrupted.swap(false, Ordering::SeqCst) {
                return Wait::Interrupted;
            }
            match end {
                None => self.changed.wait(&mut state),
                Some(end) if Instant::now() >= end => return Wait::Pending,
                Some(end) => _ = self.changed.wait_until(&mut state, end),
            }
        }
    }

    /// Ends the wait of the one thread that looks at `interrupted`.
    pub fn interrupt(&self, interrupted: &AtomicBool) {
        let _state = self.state.lock();
        interrupted.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Puts back what a thread took and could not keep.
    pub fn put_back(&self, letter: Letter) {
        let mut state = self.state.lock();
        if letter.generation == state.generation {
            state.letters.push_front(letter);
            self.changed.notify_one();
        }
    }

    /// Whether what came with this generation can still be settled.
    pub fn alive(&self, generation: u64) -> bool {
        self.state.lock().generation == generation
    }

    pub fn standing(&self) -> Standing {
        self.state.lock().standing.clone()
    }

    pub(crate) fn open(&self, generation: u64) {
        let mut state = self.state.lock();
        state.generation = generation;
        state.standing = Standing::Consuming;
    }

    pub(crate) fn push(&self, letters: impl IntoIterator<Item = Letter>) {
        let mut state = self.state.lock();
        let before = state.letters.len();
        state.letters.extend(letters);
        match state.letters.len() - before {
            1 => _ = self.changed.notify_one(),
            _ => _ = self.changed.notify_all(),
        }
    }

    /// The channel is gone, and all that came by it: the broker hands it out again.
    pub(crate) fn lost(&self, reason: String) {
        self.end_of_channel(Standing::Waiting(reason));
    }

    /// Nothing will come any more.
    pub(crate) fn end(&self, reason: String) {
        self.end_of_channel(Standing::Stopped(reason));
    }

    fn end_of_channel(&self, standing: Standing) {
        let mut state = self.state.lock();
        state.generation = 0;
        let dead = mem::take(&mut state.letters);
        self.stand(state, standing);
        drop(dead);
    }

    /// Takes back what nobody has begun, and lets nobody begin any more; what was begun can still be settled.
    pub(crate) fn stop(&self) -> Vec<Letter> {
        let mut state = self.state.lock();
        let unstarted = mem::take(&mut state.letters).into();
        self.stand(state, Standing::Stopped("it was stopped".to_owned()));
        unstarted
    }

    fn stand(&self, mut state: MutexGuard<'_, State>, standing: Standing) {
        state.standing = standing;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::sync::Arc;
    use std::thread;

    const SOON: Duration = Duration::from_secs(10);

    fn letter(tag: u64, generation: u64) -> Letter {
        Letter::sample(tag, generation)
    }

    fn taken(feed: &Feed) -> Option<u64> {
        match feed.take(Duration::ZERO, &AtomicBool::new(false)) {
            Wait::Answer(Taken::Letter(letter)) => Some(letter.tag),
            _ => None,
        }
    }

    #[test]
    fn deliveries_come_out_in_order_and_one_that_is_put_back_comes_first() {
        let feed = Feed::new(0);
        feed.open(1);
        feed.push([letter(1, 1), letter(2, 1)]);
        assert_eq!(taken(&feed), Some(1));
        feed.put_back(letter(1, 1));
        assert_eq!([taken(&feed), taken(&feed), taken(&feed)], [Some(1), Some(2), None]);
    }

    #[test]
    fn what_came_by_a_lost_channel_is_gone_with_it() {
        let feed = Feed::new(0);
        feed.open(1);
        feed.push([letter(1, 1)]);
        feed.lost("gone".into());
        assert_eq!(feed.standing(), Standing::Waiting("gone".into()));
        assert!(!feed.alive(1));
        feed.open(2);
        feed.put_back(letter(7, 1));
        assert_eq!(taken(&feed), None);
        assert!(feed.alive(2));
    }

    #[test]
    fn a_stop_takes_back_what_nobody_has_begun_and_lets_the_rest_be_settled() {
        let feed = Feed::new(0);
        feed.open(1);
        feed.push([letter(1, 1), letter(2, 1)]);
        assert_eq!(taken(&feed), Some(1));
        assert_eq!(feed.stop().iter().map(|letter| letter.tag).collect::<Vec<_>>(), [2]);
        assert!(feed.alive(1));
        assert!(matches!(feed.take(SOON, &AtomicBool::new(false)), Wait::Answer(Taken::End)));
        feed.end("closed".into());
        assert!(!feed.alive(1));
    }

    #[test]
    fn it_tells_when_there_is_no_plenty_any_more() {
        let feed = Feed::new(1);
        feed.open(1);
        feed.push([letter(1, 1), letter(2, 1), letter(3, 1)]);
        assert!(feed.plenty());
        assert_eq!(taken(&feed), Some(1));
        assert_eq!((feed.plenty(), feed.running_low().now_or_never()), (true, None));
        assert_eq!(feed.try_take().map(|letter| letter.tag), Some(2));
        assert_eq!((feed.plenty(), feed.running_low().now_or_never()), (false, Some(())));
    }

    #[test]
    fn an_interrupt_wakes_its_own_thread_only() {
        let feed = Arc::new(Feed::new(0));
        feed.open(1);
        let flags = [Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false))];
        let waits = flags.clone().map(|flag| {
            let feed = Arc::clone(&feed);
            thread::spawn(move || feed.take(SOON, &flag))
        });
        feed.interrupt(&flags[0]);
        let [first, second] = waits;
        assert!(matches!(first.join().unwrap(), Wait::Interrupted));
        feed.push([letter(1, 1)]);
        assert!(matches!(second.join().unwrap(), Wait::Answer(Taken::Letter(_))));
    }
}
