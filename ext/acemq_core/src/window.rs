//! The in-memory idempotency window: which keys were claimed, by whom, and which were confirmed.
//!
//! A key is remembered for a fixed time from its claim; neither a repeat nor a confirm extends it. All keys
//! therefore expire in the order of their claims, so one queue in claim order makes every call O(1) amortised.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a claim answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The key is yours; the token proves it later.
    Claimed(u64),
    /// Somebody has done the work.
    Duplicate,
    /// Somebody is at it.
    InProgress,
}

struct Entry {
    token: u64,
    confirmed: bool,
}

/// Keys and their claims. Not synchronised: its owner is.
pub struct Window {
    length: Duration,
    entries: HashMap<Arc<[u8]>, Entry>,
    by_age: VecDeque<(Instant, u64, Arc<[u8]>)>,
    next_token: u64,
}

impl Window {
    pub fn new(length: Duration) -> Self {
        Self { length, entries: HashMap::new(), by_age: VecDeque::new(), next_token: 1 }
    }

    /// Claims `key` at `now`.
    pub fn claim(&mut self, key: &[u8], now: Instant) -> Claim {
        self.expire(now);
        match self.entries.get(key) {
            Some(entry) if entry.confirmed => Claim::Duplicate,
            Some(_) => Claim::InProgress,
            None => Claim::Claimed(self.insert(key, now)),
        }
    }

    /// Makes a claim a fact. False when the claim is no longer this token's.
    pub fn confirm(&mut self, key: &[u8], token: u64, now: Instant) -> bool {
        self.expire(now);
        match self.entries.get_mut(key) {
            Some(entry) if entry.token == token => {
                entry.confirmed = true;
                true
            }
            _ => false,
        }
    }

    /// Gives an unconfirmed claim back. False when there is no such claim of this token.
    pub fn forget(&mut self, key: &[u8], token: u64, now: Instant) -> bool {
        self.expire(now);
        match self.entries.get(key) {
            Some(entry) if entry.token == token && !entry.confirmed => self.entries.remove(key).is_some(),
            _ => false,
        }
    }

    /// How many keys are remembered at `now`.
    pub fn len(&mut self, now: Instant) -> usize {
        self.expire(now);
        self.entries.len()
    }

    fn insert(&mut self, key: &[u8], now: Instant) -> u64 {
        let token = self.next_token;
        let key: Arc<[u8]> = key.into();
        self.next_token += 1;
        self.entries.insert(Arc::clone(&key), Entry { token, confirmed: false });
        self.by_age.push_back((now, token, key));
        token
    }

    /// Drops what is older than the window. Every entry of the queue is looked at once in its life.
    fn expire(&mut self, now: Instant) {
        while let Some((at, token, key)) = self.by_age.front() {
            if now.saturating_duration_since(*at) <= self.length {
                break;
            }
            // A key forgotten and claimed again has a younger entry further back, with another token.
            if self.entries.get(key).is_some_and(|entry| entry.token == *token) {
                self.entries.remove(key);
            }
            self.by_age.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTH: Duration = Duration::from_secs(10);

    /// The same rules over a plain list, looked through from end to end.
    #[derive(Default)]
    struct Naive {
        rows: Vec<(Vec<u8>, Instant, u64, bool)>,
        tokens: u64,
    }

    impl Naive {
        fn live(&mut self, now: Instant) {
            self.rows.retain(|row| now - row.1 <= LENGTH);
        }

        fn claim(&mut self, key: &[u8], now: Instant) -> Claim {
            self.live(now);
            match self.rows.iter().find(|row| row.0 == key) {
                Some(row) if row.3 => Claim::Duplicate,
                Some(_) => Claim::InProgress,
                None => {
                    self.tokens += 1;
                    self.rows.push((key.to_vec(), now, self.tokens, false));
                    Claim::Claimed(self.tokens)
                }
            }
        }

        fn confirm(&mut self, key: &[u8], token: u64, now: Instant) -> bool {
            self.live(now);
            let row = self.rows.iter_mut().find(|row| row.0 == key && row.2 == token);
            row.map(|row| row.3 = true).is_some()
        }

        fn forget(&mut self, key: &[u8], token: u64, now: Instant) -> bool {
            self.live(now);
            let before = self.rows.len();
            self.rows.retain(|row| !(row.0 == key && row.2 == token && !row.3));
            self.rows.len() < before
        }
    }

    #[test]
    fn exactly_at_the_window_it_is_still_held() {
        let start = Instant::now();
        let mut window = Window::new(LENGTH);
        assert_eq!(window.claim(b"k", start), Claim::Claimed(1));
        assert_eq!(window.claim(b"k", start + LENGTH), Claim::InProgress);
        assert_eq!(window.claim(b"k", start + LENGTH + Duration::from_nanos(1)), Claim::Claimed(2));
    }

    #[test]
    fn a_confirm_does_not_extend_the_window() {
        let start = Instant::now();
        let mut window = Window::new(LENGTH);
        window.claim(b"k", start);
        assert!(window.confirm(b"k", 1, start + Duration::from_secs(9)));
        assert_eq!(window.claim(b"k", start + Duration::from_secs(10)), Claim::Duplicate);
        assert_eq!(window.claim(b"k", start + Duration::from_secs(11)), Claim::Claimed(2));
    }

    #[test]
    fn a_lost_claim_can_neither_confirm_nor_forget() {
        let start = Instant::now();
        let mut window = Window::new(LENGTH);
        window.claim(b"k", start);
        let later = start + Duration::from_secs(11);
        assert_eq!(window.claim(b"k", later), Claim::Claimed(2));
        assert!(!window.confirm(b"k", 1, later));
        assert!(!window.forget(b"k", 1, later));
        assert!(window.confirm(b"k", 2, later));
        assert!(!window.forget(b"k", 2, later), "a confirmed key is a fact");
    }

    proptest! {
        #[test]
        fn it_answers_like_a_list_looked_through_from_end_to_end(
            steps in proptest::collection::vec((0..3u8, 0..6u8, 1..12u64, 0..4000u64), 1..200)
        ) {
            let mut now = Instant::now();
            let mut window = Window::new(LENGTH);
            let mut naive = Naive::default();
            for (verb, key, token, millis) in steps {
                now += Duration::from_millis(millis);
                let key = [key];
                match verb {
                    0 => prop_assert_eq!(window.claim(&key, now), naive.claim(&key, now)),
                    1 => prop_assert_eq!(window.confirm(&key, token, now), naive.confirm(&key, token, now)),
                    _ => prop_assert_eq!(window.forget(&key, token, now), naive.forget(&key, token, now)),
                }
                naive.live(now);
                prop_assert_eq!(window.len(now), naive.rows.len());
            }
        }
    }
}
