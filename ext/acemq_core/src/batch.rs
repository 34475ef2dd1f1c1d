//! One batch of records on its way through a confirm channel.
//!
//! Records go out in chunks, and a chunk is a barrier: nothing more is written until each of its records has an
//! answer, or the time is up. That is what makes the returns of a chunk exact (see [`crate::verdict`]).

use crate::error::{Error, Kind, Scope};
use crate::failpoint;
use crate::gate::SendBy;
use crate::line::Line;
use crate::link::Link;
use crate::message::{Destination, Message};
use crate::verdict::{Answer, Outcome, Return, channel_refusal, judge, lost, no_exchange, unsent};
use futures_util::stream::{FuturesUnordered, StreamExt};
use lapin::options::{BasicPublishOptions, ExchangeDeclareOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, ErrorKind};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// How long a broker that has stopped confirming may take to open a channel. It takes a round trip; being wrong costs
/// nobody anything, since what is the connection's is nobody's fault.
const LAST_QUESTION: Duration = Duration::from_millis(500);

/// How a batch is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Records without an answer at any time.
    pub in_flight: usize,
    /// Their bytes; one record larger than this goes alone.
    pub in_flight_bytes: usize,
    /// Since the last answer.
    pub confirm_timeout: Duration,
    /// A relay's batch: it waits out an alarm of the broker, and once a destination has not taken a record,
    /// nothing later for it is written.
    pub relay: bool,
}

/// A confirm channel and what is known of the broker behind it.
pub(crate) struct Desk {
    line: Arc<Line>,
    open: Option<(Arc<Link>, Channel)>,
    /// Exchanges seen on this link; asking first costs less than a channel closed by a 404.
    exchanges: HashSet<String>,
    /// Destinations over which the broker closed a channel: their records go last and alone, until one is confirmed.
    suspects: HashSet<Destination>,
}

/// How a chunk ended.
enum End {
    Judged,
    /// The broker closed the channel over one of its records.
    ChannelClosed {
        code: u16,
        text: String,
        open: Vec<usize>,
    },
    /// The connection is gone, or has to go.
    LinkGone,
}

impl Desk {
    pub(crate) fn new(line: Arc<Line>) -> Self {
        Self { line, open: None, exchanges: HashSet::new(), suspects: HashSet::new() }
    }

    /// Sends a batch, and writes down what became of each record as it learns it. When this future is dropped
    /// half-way, what is written down is the truth of that moment, and a record without an outcome was not sent.
    pub(crate) async fn send(
        &mut self,
        messages: &[Message],
        pace: &Pace,
        send_by: &Arc<SendBy>,
        outcomes: &mut [Option<Outcome>],
    ) {
        let mut run = Run { messages, pace, send_by, outcomes, held: HashSet::new() };
        if let Err(e) = self.run(&mut run).await {
            run.rest(&e);
        }
    }

    async fn run(&mut self, run: &mut Run<'_>) -> Result<(), Error> {
        let link = self.link().await?;
        if link.blocked() {
            run.rest(&blocked());
            return Ok(());
        }
        run.refuse_larger_than(link.frame_max());
        self.strike_missing(run, &link).await?;

        let (last, first): (Vec<usize>, Vec<usize>) =
            run.open().into_iter().partition(|&i| self.suspects.contains(&run.messages[i].destination()));
        let mut queue: VecDeque<usize> = first.into();
        while !queue.is_empty() {
            let chunk = run.chunk(&mut queue, self.window(run.pace));
            if chunk.is_empty() {
                break;
            }
            match self.chunk(run, &chunk).await? {
                End::Judged => {}
                End::LinkGone => return Ok(()),
                End::ChannelClosed { code: 404, open, .. } => {
                    // An exchange went away since we saw it. Without its records the others can go again.
                    self.exchanges.clear();
                    let link = self.link().await?;
                    self.strike_missing(run, &link).await?;
                    if open.iter().all(|&i| run.is_open(i)) {
                        self.isolate(run, &open).await?;
                    } else {
                        open.into_iter().rev().for_each(|i| queue.push_front(i));
                    }
                }
                End::ChannelClosed { open, .. } => self.isolate(run, &open).await?,
            }
        }
        self.isolate(run, &last).await
    }

    /// One record, and one confirm, at a time: whoever closes the channel is the one.
    async fn isolate(&mut self, run: &mut Run<'_>, records: &[usize]) -> Result<(), Error> {
        for &i in records {
            if !run.is_open(i) || run.hold(i) {
                continue;
            }
            let message = &run.messages[i];
            match self.chunk(run, &[i]).await? {
                End::LinkGone => return Ok(()),
                End::Judged => {
                    self.suspects.remove(&message.destination());
                }
                End::ChannelClosed { code, text, .. } => {
                    let refusal = channel_refusal(message, code, &text);
                    if refusal.scope() == Scope::Destination {
                        self.suspects.insert(message.destination());
                        self.exchanges.remove(message.exchange.as_str());
                        run.settle_destination(records, message, &refusal);
                    } else {
                        run.set(i, Err(refusal));
                    }
                }
            }
        }
        Ok(())
    }

    /// Until the first confirm of a link only one record is out: an alarm is told of only after a publish.
    fn window(&self, pace: &Pace) -> usize {
        match &self.open {
            Some((link, _)) if link.proven.load(std::sync::atomic::Ordering::Relaxed) => pace.in_flight.max(1),
            _ => 1,
        }
    }

    /// The live link, forgetting what was known of an earlier one.
    async fn link(&mut self) -> Result<Arc<Link>, Error> {
        let link = self.line.link().await?;
        if !self.open.as_ref().is_some_and(|(open, _)| Arc::ptr_eq(open, &link)) {
            self.open = None;
            self.exchanges.clear();
        }
        Ok(link)
    }

    async fn channel(&mut self, pace: &Pace) -> Result<(Arc<Link>, Channel), Error> {
        let link = self.link().await?;
        if let Some((_, channel)) = self.open.as_ref().filter(|(_, channel)| channel.status().connected()) {
            return Ok((link, channel.clone()));
        }
        let channel = self
            .within(&link, pace, "open a channel", link.confirm_channel())
            .await?
            .map_err(|e| unsent(&format!("no channel could be opened: {e}")))?;
        self.open = Some((Arc::clone(&link), channel.clone()));
        Ok((link, channel))
    }

    /// Whatever else the broker is asked has the time of a confirm; one that stands still would answer nothing.
    async fn within<T>(
        &mut self,
        link: &Arc<Link>,
        pace: &Pace,
        what: &str,
        asked: impl Future<Output = T>,
    ) -> Result<T, Error> {
        if let Ok(answer) = timeout(pace.confirm_timeout, asked).await {
            return Ok(answer);
        }
        self.drop_link(link);
        Err(unsent(&format!("the broker did not {what} within {} s", pace.confirm_timeout.as_secs_f64())))
    }

    /// Settles every record whose exchange does not exist.
    async fn strike_missing(&mut self, run: &mut Run<'_>, link: &Arc<Link>) -> Result<(), Error> {
        let mut missing: HashMap<&str, bool> = HashMap::new();
        for i in run.open() {
            let message = &run.messages[i];
            let name = message.exchange.as_str();
            if name.is_empty() || self.exchanges.contains(name) {
                continue;
            }
            let absent = match missing.get(name) {
                Some(absent) => *absent,
                None => {
                    let asked = exists(link, &message.exchange);
                    let absent = !self.within(link, run.pace, "say whether an exchange is there", asked).await??;
                    missing.insert(name, absent);
                    absent
                }
            };
            if absent {
                run.set(i, Err(no_exchange(message)));
            } else {
                self.exchanges.insert(name.to_owned());
            }
        }
        Ok(())
    }

    /// Sends one chunk, waits for its answers and judges it.
    async fn chunk(&mut self, run: &mut Run<'_>, chunk: &[usize]) -> Result<End, Error> {
        if run.send_by.passed() {
            return Err(Error::new(Kind::Unsent, "its lease would have run out"));
        }
        let (link, channel) = self.channel(run.pace).await?;
        let messages: Vec<&Message> = chunk.iter().map(|&i| &run.messages[i]).collect();
        for &i in chunk {
            run.set(i, Err(lost("it was given up while it was out")));
        }
        let Heard { answers, returns, mute } = dispatch(&link, &channel, &messages, run.pace, run.send_by).await;

        if answers.iter().any(|answer| matches!(answer, Answer::Ack | Answer::Nack)) {
            link.prove();
        }
        let silence = answers.iter().any(|answer| matches!(answer, Answer::Silence));
        let failed = answers.iter().any(|answer| matches!(answer, Answer::Failed(_)));
        let closed = closing_fault(&answers);
        let blocked = link.blocked_reason().map(|reason| format!("the broker has blocked this connection ({reason})"));
        for (&i, outcome) in
            chunk.iter().zip(judge(&messages, &answers, &returns, run.pace.confirm_timeout.as_secs_f64(), mute))
        {
            run.set(
                i,
                outcome.map_err(|e| match &blocked {
                    Some(why) if e.kind() == Kind::Unconfirmed => e.with_note(why),
                    _ => e,
                }),
            );
        }
        if silence || (failed && !link.alive()) {
            // What is still queued on it must not go out behind our back.
            self.drop_link(&link);
            run.rest(&unsent(if silence { "confirms stopped coming" } else { "the connection was lost" }));
            return Ok(End::LinkGone);
        }
        let Some((code, text)) = closed.filter(|_| failed) else {
            return Ok(End::Judged);
        };
        self.open = None;
        let open: Vec<usize> = chunk.iter().copied().filter(|&i| run.unanswered(i)).collect();
        open.iter().for_each(|&i| run.outcomes[i] = None);
        Ok(End::ChannelClosed { code, text, open })
    }

    pub(crate) fn drop_link(&mut self, link: &Link) {
        link.abort();
        self.open = None;
    }

    pub(crate) fn line(&self) -> Arc<Line> {
        Arc::clone(&self.line)
    }

    /// Ends whatever is under way, so that nothing of it is written any more.
    pub(crate) fn abort(&mut self) {
        if let Some((link, _)) = self.open.take() {
            link.abort();
        }
    }
}

/// What is not sent during an alarm.
pub(crate) fn blocked() -> Error {
    Error::new(Kind::Blocked, "not sent: the broker has blocked this connection (a memory or disk alarm)")
}

/// What came back for a chunk.
struct Heard {
    answers: Vec<Answer>,
    returns: Vec<Return>,
    /// Confirms stopped coming, and so did everything else.
    mute: bool,
}

/// Publishes a chunk on one channel and gathers the broker's answers.
async fn dispatch(link: &Link, channel: &Channel, messages: &[&Message], pace: &Pace, send_by: &Arc<SendBy>) -> Heard {
    link.gate.watch(send_by);
    let mut heard = Heard { answers: vec![Answer::Silence; messages.len()], returns: Vec::new(), mute: false };
    let mut pending: FuturesUnordered<_> =
        messages.iter().enumerate().map(|(at, m)| publish(link, channel, at, m, at + 1 == messages.len())).collect();
    let mut deadline = Instant::now() + pace.confirm_timeout;
    loop {
        let next = tokio::select! {
            biased;
            next = pending.next() => next,
            () = sleep_until(deadline) => {
                if link.blocked() {
                    if !pace.relay {
                        break;
                    }
                    deadline = Instant::now() + pace.confirm_timeout;
                    continue;
                }
                // If this process was stopped, they have come meanwhile, and are read before the answer.
                tokio::select! {
                    biased;
                    next = pending.next() => next,
                    answers = still_answers(link) => {
                        heard.mute = !answers;
                        break;
                    }
                }
            }
        };
        let Some((at, result)) = next else { break };
        let (answer, returned) = read(result);
        heard.answers[at] = answer;
        heard.returns.extend(returned);
        deadline = Instant::now() + pace.confirm_timeout;
    }
    heard
}

/// Whether the broker answers anything on this link. If it does, the link is not what keeps a confirm from coming.
async fn still_answers(link: &Link) -> bool {
    matches!(timeout(LAST_QUESTION, link.channel()).await, Ok(Ok(_)))
}

async fn publish(
    link: &Link,
    channel: &Channel,
    at: usize,
    message: &Message,
    last: bool,
) -> (usize, lapin::Result<Confirmation>) {
    let options = BasicPublishOptions { mandatory: message.mandatory, immediate: false };
    let sent = channel
        .basic_publish(
            message.exchange.clone(),
            message.routing_key.clone(),
            options,
            &message.body,
            message.properties.clone(),
        )
        .await;
    // Frames are written in order: with the last record, all are.
    if last {
        link.gate.open();
        failpoint::after_publish();
    }
    match sent {
        Ok(confirm) => (at, confirm.await),
        Err(e) => (at, Err(e)),
    }
}

fn read(result: lapin::Result<Confirmation>) -> (Answer, Option<Return>) {
    match result {
        Ok(Confirmation::Ack(returned)) => (Answer::Ack, returned.map(|r| read_return(&r))),
        Ok(Confirmation::Nack(returned)) => (Answer::Nack, returned.map(|r| read_return(&r))),
        Ok(Confirmation::NotRequested) => (Answer::Failed(lost("the channel was not in confirm mode")), None),
        Err(e) => (Answer::Failed(fault(&e)), None),
    }
}

fn read_return(message: &lapin::message::BasicReturnMessage) -> Return {
    Return {
        id: message.delivery.properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default(),
        code: message.reply_code,
        text: message.reply_text.to_string(),
    }
}

/// A soft error keeps its code; follow-ups of an earlier failure and lost connections have none.
fn fault(error: &lapin::Error) -> Error {
    match error.kind() {
        ErrorKind::ProtocolError(e) if error.is_amqp_soft_error() => {
            lost(e.get_message().as_str()).with_code(e.get_id())
        }
        ErrorKind::ProtocolError(e) => {
            lost(&format!("the broker closed the connection ({})", e.get_message().as_str()))
        }
        ErrorKind::MissingHeartbeatError => lost("the broker stopped sending heartbeats"),
        _ => lost(&format!("the connection was lost ({error})")),
    }
}

/// The broker's reason for closing the channel, if it gave one.
fn closing_fault(answers: &[Answer]) -> Option<(u16, String)> {
    answers.iter().find_map(|answer| match answer {
        Answer::Failed(e) => {
            e.code().map(|code| (code, e.message().trim_end_matches("; it may have arrived").to_owned()))
        }
        _ => None,
    })
}

/// Whether an exchange exists, asked on a channel of its own: a no closes it.
async fn exists(link: &Link, name: &ShortString) -> Result<bool, Error> {
    let failed =
        |e: &lapin::Error| unsent(&format!("the broker could not be asked for the exchange {:?}: {e}", name.as_str()));
    let channel = link.channel().await.map_err(|e| failed(&e))?;
    let options = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
    let answer = channel.exchange_declare(name.clone(), lapin::ExchangeKind::Direct, options, Default::default()).await;
    match answer {
        Ok(()) => {
            let _ = channel.close(200, ShortString::default()).await;
            Ok(true)
        }
        Err(e) if matches!(e.kind(), ErrorKind::ProtocolError(p) if p.get_id() == 404) => Ok(false),
        // Whatever else it says, the publish will say it too, and say it of a record.
        Err(e) if e.is_amqp_soft_error() => Ok(true),
        Err(e) => Err(failed(&e)),
    }
}

/// The records of a batch and what became of them so far.
struct Run<'a> {
    messages: &'a [Message],
    pace: &'a Pace,
    send_by: &'a Arc<SendBy>,
    outcomes: &'a mut [Option<Outcome>],
    /// Destinations that did not take a record of a relay's batch.
    held: HashSet<Destination>,
}

impl Run<'_> {
    fn set(&mut self, i: usize, outcome: Outcome) {
        if self.pace.relay && matches!(&outcome, Err(e) if e.scope() == Scope::Destination) {
            self.held.insert(self.messages[i].destination());
        }
        self.outcomes[i] = Some(outcome);
    }

    /// One refusal for all the records of a destination.
    fn settle_destination(&mut self, records: &[usize], message: &Message, refusal: &Error) {
        let destination = message.destination();
        for &i in records {
            if self.is_open(i) && self.messages[i].destination() == destination {
                self.set(i, Err(refusal.clone()));
            }
        }
    }

    fn is_open(&self, i: usize) -> bool {
        self.outcomes[i].is_none()
    }

    fn open(&self) -> Vec<usize> {
        (0..self.messages.len()).filter(|&i| self.is_open(i)).collect()
    }

    /// Judged only to have gone down with its channel.
    fn unanswered(&self, i: usize) -> bool {
        matches!(&self.outcomes[i], Some(Err(e)) if e.kind() == Kind::Lost && e.scope() == Scope::Connection)
    }

    /// Gives every record without an outcome this one.
    fn rest(&mut self, error: &Error) {
        for outcome in self.outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
            *outcome = Some(Err(error.clone()));
        }
    }

    fn refuse_larger_than(&mut self, frame_max: usize) {
        for i in self.open() {
            let bytes = self.messages[i].header_bytes;
            if frame_max > 0 && bytes > frame_max {
                let text =
                    format!("the headers and properties take {bytes} bytes; this broker takes {frame_max} at most");
                self.set(i, Err(Error::refused(text)));
            }
        }
    }

    /// Whether a record has to stay behind an earlier one of its destination.
    fn hold(&mut self, i: usize) -> bool {
        let held = !self.held.is_empty() && self.held.contains(&self.messages[i].destination());
        if held {
            self.outcomes[i] = Some(Err(unsent("an earlier record of its destination was not taken")));
        }
        held
    }

    /// The next records of the queue that fit in one window. Ids are unique within a chunk.
    fn chunk(&mut self, queue: &mut VecDeque<usize>, window: usize) -> Vec<usize> {
        let mut chunk = Vec::new();
        let mut ids = HashSet::new();
        let mut bytes = 0;
        while let Some(&i) = queue.front() {
            if !self.is_open(i) || self.hold(i) {
                queue.pop_front();
                continue;
            }
            let message = &self.messages[i];
            let full = chunk.len() >= window || bytes + message.size() > self.pace.in_flight_bytes;
            if (full && !chunk.is_empty()) || !ids.insert(message.id()) {
                break;
            }
            bytes += message.size();
            chunk.push(i);
            queue.pop_front();
        }
        chunk
    }
}
