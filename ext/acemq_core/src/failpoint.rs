//! A place at which tests can make this process die. Off unless `ACEMQ_FAILPOINTS` names it; how that is written is
//! told where the Ruby side reads it (`lib/acemq/amqp/patterns/failpoint.rb`), which also refuses mistakes.

use std::env;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Everything of a chunk is written, and no confirm of it is awaited yet.
pub(crate) const AFTER_PUBLISH: &str = "after_publish";

static ARMED: LazyLock<Option<Failpoint>> =
    LazyLock::new(|| env::var("ACEMQ_FAILPOINTS").ok().and_then(|text| Failpoint::parse(&text, AFTER_PUBLISH)));

/// Does what the environment asks for at [`AFTER_PUBLISH`], which is nothing as a rule.
pub(crate) fn after_publish() {
    if let Some(point) = ARMED.as_ref().filter(|point| point.meant()) {
        point.action.run();
    }
}

#[derive(Debug, PartialEq)]
enum Action {
    /// To this process, with nothing left to do for whoever would run at its end.
    Signal(&'static str),
    Panic,
    Sleep(Duration),
}

#[derive(Debug)]
struct Failpoint {
    action: Action,
    probability: f64,
    passage: Option<u64>,
    passages: AtomicU64,
    random: AtomicU64,
}

impl Failpoint {
    fn parse(text: &str, name: &str) -> Option<Self> {
        let entries = || text.split(',').filter_map(|entry| entry.trim().split_once('='));
        let seed = entries().find(|(key, _)| *key == "seed").and_then(|(_, seed)| seed.parse().ok());
        let what = entries().find(|(key, _)| *key == name)?.1;
        let (what, passage) = split(what, '#');
        let (what, probability) = split(what, '@');
        let (what, seconds) = split(what, ':');
        let action = match what {
            "kill" => Action::Signal("KILL"),
            "stop" => Action::Signal("STOP"),
            "raise" => Action::Panic,
            "sleep" => Action::Sleep(Duration::from_secs_f64(seconds.unwrap_or(1.0))),
            _ => return None,
        };
        Some(Self {
            action,
            probability: probability.unwrap_or(1.0),
            passage,
            passages: AtomicU64::new(0),
            random: AtomicU64::new(seed.unwrap_or_else(|| uuid::Uuid::now_v7().as_u64_pair().1)),
        })
    }

    fn meant(&self) -> bool {
        let passage = self.passages.fetch_add(1, Ordering::Relaxed) + 1;
        match self.passage {
            Some(only) => passage == only,
            None => self.random() < self.probability,
        }
    }

    /// From 0 to 1; splitmix64, which is enough to spread a seed.
    fn random(&self) -> f64 {
        let step = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.random.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn split<T: std::str::FromStr>(text: &str, mark: char) -> (&str, Option<T>) {
    match text.split_once(mark) {
        Some((before, behind)) => (before, behind.parse().ok()),
        None => (text, None),
    }
}

impl Action {
    fn run(&self) {
        match self {
            // The shell is our child and signals its parent: the standard library cannot, without unsafe code.
            Self::Signal(name) => {
                let _ = Command::new("/bin/sh").args(["-c", "kill -s \"$0\" \"$PPID\"", name]).status();
            }
            Self::Panic => panic!("failpoint {AFTER_PUBLISH}"),
            Self::Sleep(time) => sleep(*time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Failpoint> {
        Failpoint::parse(text, AFTER_PUBLISH)
    }

    #[test]
    fn is_off_unless_named() {
        assert!(parsed("").is_none());
        assert!(parsed("after_claim=kill,seed=3").is_none());
        assert!(parsed("after_publish=dance").is_none());
    }

    #[test]
    fn reads_what_is_to_happen() {
        assert_eq!(parsed("after_claim=stop, after_publish=kill").unwrap().action, Action::Signal("KILL"));
        assert_eq!(parsed("after_publish=sleep:0.5").unwrap().action, Action::Sleep(Duration::from_millis(500)));
        assert_eq!(parsed("after_publish=raise@0.1").unwrap().probability, 0.1);
    }

    #[test]
    fn is_meant_once_where_a_passage_is_given() {
        let point = parsed("after_publish=stop#3").unwrap();
        assert_eq!((0..5).map(|_| point.meant()).collect::<Vec<_>>(), [false, false, true, false, false]);
    }

    #[test]
    fn keeps_to_its_probability_and_its_seed() {
        let times = |text| {
            let point = parsed(text).unwrap();
            (0..1000).filter(|_| point.meant()).count()
        };
        assert!((50..150).contains(&times("after_publish=raise@0.1,seed=7")));
        assert_eq!(times("after_publish=raise@0.1,seed=7"), times("after_publish=raise@0.1,seed=7"));
        assert_eq!(times("after_publish=raise@0"), 0);
    }
}
