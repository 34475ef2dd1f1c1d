//! From what the broker said of a chunk of records to what became of each.
//!
//! lapin hands each returned message to whichever confirm completes next, not to its own, so a chunk is judged
//! as a whole and returns are matched by message id. Every completed confirm takes one waiting return along and
//! the broker sends a return before that message's ack. So as long as every record whose return we saw has its own
//! confirm, no return can still be waiting inside lapin, and an ack without a return is the truth. If one of them
//! has none (the connection died in between), a return may be missing and no ack of the chunk counts.

use crate::error::{Error, Kind, Scope};
use crate::message::Message;
use std::collections::HashMap;

/// What became of one record: confirmed, or why not.
pub type Outcome = Result<(), Error>;

/// What the broker said of one record.
#[derive(Clone, Debug)]
pub enum Answer {
    Ack,
    Nack,
    /// It ended in an error before an answer came.
    Failed(Error),
    /// No answer in time.
    Silence,
}

/// A return the broker sent: which message, and why.
#[derive(Clone, Debug)]
pub struct Return {
    pub id: String,
    pub code: u16,
    pub text: String,
}

/// Judges a chunk. Ids are unique within it. `timeout` is for the texts: seconds waited for a confirm. `mute`: the
/// broker answered nothing any more on this connection, not even something else.
pub fn judge(messages: &[&Message], answers: &[Answer], returns: &[Return], timeout: f64, mute: bool) -> Vec<Outcome> {
    let returned: HashMap<&str, &Return> = returns.iter().map(|r| (r.id.as_str(), r)).collect();
    let complete =
        messages.iter().zip(answers).all(|(message, answer)| answered(answer) || !returned.contains_key(message.id()));
    let any_confirmed = complete && !mute && answers.iter().any(|answer| matches!(answer, Answer::Ack));
    messages
        .iter()
        .zip(answers)
        .map(|(message, answer)| match (returned.get(message.id()), answer) {
            (Some(r), _) => Err(unroutable(message, r)),
            (None, Answer::Ack) if complete || !message.mandatory => Ok(()),
            (None, Answer::Ack) => Err(lost("the connection was lost before its return could be ruled out")),
            (None, Answer::Nack) => Err(nacked(message)),
            (None, Answer::Failed(e)) => Err(e.clone()),
            (None, Answer::Silence) => Err(silent(message, any_confirmed, timeout)),
        })
        .collect()
}

fn answered(answer: &Answer) -> bool {
    matches!(answer, Answer::Ack | Answer::Nack)
}

fn place(message: &Message) -> String {
    format!("exchange {:?}, routing key {:?}", message.exchange.as_str(), message.routing_key.as_str())
}

fn unroutable(message: &Message, r: &Return) -> Error {
    Error::new(
        Kind::Returned,
        format!("no queue is bound for it ({}): {}; bind one and send it again", place(message), r.text),
    )
    .with_code(r.code)
}

fn nacked(message: &Message) -> Error {
    Error::new(Kind::Nacked, format!("the broker nacked it ({}): a queue there would not take it", place(message)))
}

/// A confirm that never comes while others do is the fault of where it goes; if none comes, or nothing else does any
/// more, of the connection.
fn silent(message: &Message, others_confirmed: bool, timeout: f64) -> Error {
    let error = Error::new(
        Kind::Unconfirmed,
        format!("no confirm came within {timeout} s ({}); it may have arrived", place(message)),
    );
    if others_confirmed { error.with_scope(Scope::Destination) } else { error }
}

pub(crate) fn lost(why: &str) -> Error {
    Error::new(Kind::Lost, format!("{why}; it may have arrived"))
}

pub(crate) fn unsent(why: &str) -> Error {
    Error::new(Kind::Unsent, format!("not sent: {why}"))
}

pub(crate) fn no_exchange(message: &Message) -> Error {
    Error::new(
        Kind::NoExchange,
        format!("the exchange does not exist ({}); declare it and send it again", place(message)),
    )
    .with_code(404)
}

/// The broker closed the channel over this record alone.
pub(crate) fn channel_refusal(message: &Message, code: u16, text: &str) -> Error {
    let kind = match code {
        404 => Kind::NoExchange,
        403 => Kind::AccessRefused,
        406 => Kind::Refused,
        _ => Kind::Nacked,
    };
    Error::new(kind, format!("the broker refused it ({}): {text}", place(message))).with_code(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Draft;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn message(id: usize) -> Message {
        Message::build(Draft {
            message_id: Some(id.to_string()),
            routing_key: "k".into(),
            mandatory: true,
            ..Draft::default()
        })
        .unwrap()
    }

    fn judged(answers: &[Answer], returns: &[usize]) -> Vec<Outcome> {
        heard(answers, returns, false)
    }

    fn heard(answers: &[Answer], returns: &[usize], mute: bool) -> Vec<Outcome> {
        let messages: Vec<Message> = (0..answers.len()).map(message).collect();
        let returns: Vec<Return> =
            returns.iter().map(|i| Return { id: i.to_string(), code: 312, text: "NO_ROUTE".into() }).collect();
        judge(&messages.iter().collect::<Vec<_>>(), answers, &returns, 10.0, mute)
    }

    fn kinds(outcomes: &[Outcome]) -> Vec<Option<Kind>> {
        outcomes.iter().map(|o| o.as_ref().err().map(Error::kind)).collect()
    }

    #[test]
    fn an_ack_that_was_returned_is_not_confirmed() {
        let outcomes = judged(&[Answer::Ack, Answer::Ack], &[1]);
        assert_eq!(kinds(&outcomes), [None, Some(Kind::Returned)]);
        assert_eq!(outcomes[1].as_ref().unwrap_err().code(), Some(312));
    }

    #[test]
    fn silence_beside_confirms_is_the_destinations_fault_and_alone_the_connections() {
        let beside = judged(&[Answer::Ack, Answer::Silence], &[]);
        assert_eq!(beside[1].as_ref().unwrap_err().scope(), Scope::Destination);
        let alone = judged(&[Answer::Silence, Answer::Silence], &[]);
        assert_eq!(alone[1].as_ref().unwrap_err().scope(), Scope::Connection);
        assert!(alone[1].as_ref().unwrap_err().unknown());
    }

    #[test]
    fn silence_of_a_connection_that_answers_nothing_at_all_is_the_connections_fault() {
        let outcomes = heard(&[Answer::Ack, Answer::Silence], &[], true);
        assert_eq!(kinds(&outcomes), [None, Some(Kind::Unconfirmed)]);
        assert_eq!(outcomes[1].as_ref().unwrap_err().scope(), Scope::Connection);
    }

    #[test]
    fn with_a_return_outstanding_no_ack_counts() {
        let outcomes = judged(&[Answer::Ack, Answer::Failed(lost("reset"))], &[1]);
        assert_eq!(kinds(&outcomes), [Some(Kind::Lost), Some(Kind::Returned)]);
    }

    /// What the broker does with a record.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fate {
        Queued,
        Unroutable,
        Nacked,
        /// A queue that never confirms.
        Stuck,
    }

    /// The broker and lapin's queue of returns, cut off after any number of frames. A return comes some time before
    /// its own ack, with other records' acks in between; acks come in any order, several at once too.
    fn play(records: &[(Fate, u32, u32)], cut: usize, ending: &Answer) -> (Vec<Answer>, Vec<usize>) {
        let mut frames: Vec<(u32, usize, bool)> = Vec::new();
        for (i, &(fate, answer, before)) in records.iter().enumerate() {
            if fate != Fate::Stuck {
                frames.push((answer + 1, i, false));
            }
            if fate == Fate::Unroutable {
                frames.push((before % (answer + 1), i, true));
            }
        }
        frames.sort_unstable();
        let mut waiting = VecDeque::new();
        let mut answers = vec![ending.clone(); records.len()];
        let mut returned = Vec::new();
        for &(_, i, is_return) in frames.iter().take(cut) {
            if is_return {
                waiting.push_back(i);
            } else {
                answers[i] = if records[i].0 == Fate::Nacked { Answer::Nack } else { Answer::Ack };
                returned.extend(waiting.pop_front());
            }
        }
        (answers, returned)
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop_oneof![4 => Just(Fate::Queued), 3 => Just(Fate::Unroutable), 1 => Just(Fate::Nacked), 1 => Just(Fate::Stuck)]
    }

    proptest! {
        #[test]
        fn whatever_is_cut_off_only_what_is_in_a_queue_is_called_confirmed(
            records in proptest::collection::vec((fate(), 0..40u32, any::<u32>()), 1..30),
            cut in 0..70usize,
            closed in any::<bool>(),
        ) {
            let ending = if closed { Answer::Failed(lost("cut")) } else { Answer::Silence };
            let (answers, returned) = play(&records, cut, &ending);
            let everything_came = cut >= 2 * records.len();
            for ((i, outcome), &(fate, ..)) in judged(&answers, &returned).iter().enumerate().zip(&records) {
                match (fate, outcome) {
                    (Fate::Queued, Err(e)) => {
                        prop_assert!(!everything_came, "{i} arrived and was not confirmed");
                        prop_assert!(e.unknown() , "{i} may have arrived, and its error denies it");
                    }
                    (Fate::Queued, Ok(())) => {}
                    (_, Ok(())) => prop_assert!(false, "{i} is {fate:?} and was called confirmed"),
                    (Fate::Unroutable, Err(e)) => prop_assert!(!everything_came || e.kind() == Kind::Returned),
                    (Fate::Nacked, Err(e)) => prop_assert!(!everything_came || e.kind() == Kind::Nacked),
                    (Fate::Stuck, Err(e)) => prop_assert!(e.unknown()),
                }
            }
        }
    }
}
