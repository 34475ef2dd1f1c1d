//! Confirms: the broker answers a chunk of records in any order it may, several at once too, and is cut off anywhere. What
//! lapin makes of that is judged, and then held against what the broker knows.
#![no_main]

use acemq_core::message::{Draft, Message};
use acemq_core::verdict::{Answer, Outcome, Return, judge};
use acemq_core::{Error, Kind, Scope};
use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;

/// What the broker does with a record.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Fate {
    Queued,
    /// No queue is bound for it.
    Unroutable,
    Nacked,
    /// A queue that never confirms.
    Stuck,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Record {
    fate: Fate,
    mandatory: bool,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// Return it if it is to be returned, and say nothing more of it yet.
    Return(u8),
    /// Ack or nack it.
    Answer(u8),
    /// Ack everything up to it at once, if that is true of everything up to it.
    AckUpTo(u8),
    /// The same for nacks.
    NackUpTo(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Ending {
    /// Nothing more comes, and the time is up.
    Silence,
    /// Not even an answer to something else.
    Mute,
    ChannelClosed,
    ConnectionLost,
}

/// The broker on one side, lapin on the other: it gives each return to whichever confirm completes next, and completes
/// the confirms of a multiple ack in no particular order.
struct Wire<'a> {
    records: &'a [Record],
    came_back: Vec<bool>,
    waiting: VecDeque<usize>,
    answers: Vec<Option<Answer>>,
    returns: Vec<Return>,
}

impl<'a> Wire<'a> {
    fn new(records: &'a [Record]) -> Self {
        Self {
            records,
            came_back: vec![false; records.len()],
            waiting: VecDeque::new(),
            answers: vec![None; records.len()],
            returns: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step, seed: usize) {
        match *step {
            Step::Return(at) => self.give_back(self.at(at)),
            Step::Answer(at) => self.answer(self.at(at)),
            Step::AckUpTo(at) => self.all_up_to(self.at(at), &Answer::Ack, seed),
            Step::NackUpTo(at) => self.all_up_to(self.at(at), &Answer::Nack, seed),
        }
    }

    fn at(&self, byte: u8) -> usize {
        usize::from(byte) % self.records.len()
    }

    fn give_back(&mut self, i: usize) {
        let record = self.records[i];
        if record.mandatory && record.fate == Fate::Unroutable && !self.came_back[i] {
            self.came_back[i] = true;
            self.waiting.push_back(i);
        }
    }

    fn answer_of(&self, i: usize) -> Option<Answer> {
        match self.records[i].fate {
            Fate::Queued | Fate::Unroutable => Some(Answer::Ack),
            Fate::Nacked => Some(Answer::Nack),
            Fate::Stuck => None,
        }
    }

    fn answer(&mut self, i: usize) {
        let Some(answer) = self.answer_of(i).filter(|_| self.answers[i].is_none()) else { return };
        self.give_back(i); // which the broker has always done before it acks
        self.complete(i, answer);
    }

    fn complete(&mut self, i: usize, answer: Answer) {
        self.answers[i] = Some(answer);
        if let Some(returned) = self.waiting.pop_front() {
            self.returns.push(Return { id: returned.to_string(), code: 312, text: "NO_ROUTE".into() });
        }
    }

    fn all_up_to(&mut self, last: usize, answer: &Answer, seed: usize) {
        let mut open: Vec<usize> = (0..=last).filter(|&i| self.answers[i].is_none()).collect();
        if open.iter().any(|&i| !self.answer_of(i).is_some_and(|a| same(&a, answer))) {
            return;
        }
        open.iter().for_each(|&i| self.give_back(i));
        if !open.is_empty() {
            let by = seed % open.len();
            open.rotate_left(by);
        }
        open.into_iter().for_each(|i| self.complete(i, answer.clone()));
    }

    fn heard(&self, ending: Ending) -> Vec<Answer> {
        let rest = match ending {
            Ending::Silence | Ending::Mute => Answer::Silence,
            Ending::ChannelClosed => Answer::Failed(Error::new(Kind::Lost, "closed").with_code(404)),
            Ending::ConnectionLost => Answer::Failed(Error::new(Kind::Lost, "reset")),
        };
        self.answers.iter().map(|answer| answer.clone().unwrap_or_else(|| rest.clone())).collect()
    }

    fn finished(&self) -> bool {
        self.answers.iter().zip(self.records).all(|(answer, record)| answer.is_some() || record.fate == Fate::Stuck)
    }
}

fn same(one: &Answer, other: &Answer) -> bool {
    matches!((one, other), (Answer::Ack, Answer::Ack) | (Answer::Nack, Answer::Nack))
}

fn records(input: &mut Unstructured) -> arbitrary::Result<Vec<Record>> {
    let count = input.int_in_range(1..=24)?;
    (0..count).map(|_| Record::arbitrary(input)).collect()
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let (Ok(records), Ok(ending)) = (records(&mut input), Ending::arbitrary(&mut input)) else { return };
    let mut wire = Wire::new(&records);
    while let (false, Ok(step)) = (input.is_empty(), Step::arbitrary(&mut input)) {
        wire.step(&step, input.len());
    }

    let messages: Vec<Message> = records.iter().enumerate().map(|(id, record)| message(id, record.mandatory)).collect();
    let refs: Vec<&Message> = messages.iter().collect();
    let answers = wire.heard(ending);
    let outcomes = judge(&refs, &answers, &wire.returns, 10.0, ending == Ending::Mute);
    assert_eq!(outcomes.len(), records.len());
    for (i, outcome) in outcomes.iter().enumerate() {
        fair(i, outcome, &wire, ending);
    }
});

fn message(id: usize, mandatory: bool) -> Message {
    let draft = Draft { message_id: Some(id.to_string()), routing_key: "k".into(), mandatory, ..Draft::default() };
    Message::build(draft).unwrap()
}

/// Nothing that reached no queue is called confirmed, nothing is blamed that is not to blame, and an outcome that may be
/// otherwise says so.
fn fair(i: usize, outcome: &Outcome, wire: &Wire, ending: Ending) {
    let Record { fate, mandatory } = wire.records[i];
    match outcome {
        Ok(()) => assert!(fate == Fate::Queued || (fate == Fate::Unroutable && !mandatory), "{i} is in no queue"),
        Err(e) => {
            assert_ne!(e.scope(), Scope::Record, "{e}");
            assert!(!e.message().is_empty());
            match e.kind() {
                Kind::Returned => assert!(fate == Fate::Unroutable && mandatory, "{i} was not returned"),
                Kind::Nacked => assert_eq!(fate, Fate::Nacked, "{i} was not nacked"),
                _ => assert!(e.unknown(), "{i} may have arrived, and its error denies it: {e}"),
            }
            if e.kind() == Kind::Unconfirmed && e.scope() == Scope::Destination {
                assert!(ending == Ending::Silence && wire.answers[i].is_none(), "{i} is blamed for the connection");
            }
        }
    }
    if wire.finished() {
        complete(i, outcome, fate, mandatory);
    }
}

/// When everything came that was to come, what is known is known exactly.
fn complete(i: usize, outcome: &Outcome, fate: Fate, mandatory: bool) {
    let kind = outcome.as_ref().err().map(Error::kind);
    match fate {
        Fate::Queued => assert_eq!(kind, None, "{i} arrived"),
        Fate::Unroutable if mandatory => assert_eq!(kind, Some(Kind::Returned), "{i}"),
        Fate::Unroutable => assert_eq!(kind, None, "{i} need not arrive"),
        Fate::Nacked => assert_eq!(kind, Some(Kind::Nacked), "{i}"),
        Fate::Stuck => assert!(matches!(kind, Some(Kind::Unconfirmed | Kind::Lost)), "{i}"),
    }
}
