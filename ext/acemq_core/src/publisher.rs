//! The task that owns the publishing channel: one batch at a time, in the order they came.

use crate::batch::{Desk, Pace, blocked};
use crate::error::{Error, Kind};
use crate::gate::SendBy;
use crate::line::Line;
use crate::message::Message;
use crate::ticket::Ticket;
use crate::verdict::{Outcome, unsent};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// What became of a batch, record by record.
pub type Outcomes = Vec<Outcome>;

/// Between two looks at whether an alarm has come, while a batch is out.
const LOOK: Duration = Duration::from_millis(100);

/// Small batches of several threads that go out together, at most.
const MERGED: usize = 1000;

struct Job {
    messages: Vec<Message>,
    pace: Pace,
    send_by: Arc<SendBy>,
    ticket: Arc<Ticket<Outcomes>>,
}

/// Takes batches for publishing.
pub struct Publisher {
    line: Arc<Line>,
    jobs: UnboundedSender<Job>,
}

impl Publisher {
    /// Starts the task on `runtime`.
    pub fn start(line: Arc<Line>, runtime: &Handle) -> Self {
        let (jobs, queue) = unbounded_channel();
        runtime.spawn(work(Arc::clone(&line), queue));
        Self { line, jobs }
    }

    /// Hands a batch over. The ticket answers with one outcome per message, in order.
    /// After `send_by` nothing more of it is written, not even what lapin was handed before.
    pub fn submit(&self, messages: Vec<Message>, pace: Pace, send_by: Arc<SendBy>) -> Arc<Ticket<Outcomes>> {
        let ticket = Ticket::new();
        // Behind one that waits for an alarm to end it would only wait as well. A relay does that on purpose.
        if !pace.relay && self.line.blocked_reason().is_some() {
            ticket.answer(vec![Err(blocked()); messages.len()]);
            return ticket;
        }
        let job = Job { messages, pace, send_by, ticket: Arc::clone(&ticket) };
        if let Err(refused) = self.jobs.send(job) {
            let count = refused.0.messages.len();
            ticket.answer(vec![Err(unsent("the publisher has stopped")); count]);
        }
        ticket
    }
}

async fn work(line: Arc<Line>, mut queue: UnboundedReceiver<Job>) {
    let mut desk = Desk::new(line);
    let mut waiting: VecDeque<Job> = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match queue.recv().await {
                Some(job) => waiting.push_back(job),
                None => return,
            }
        }
        while let Ok(job) = queue.try_recv() {
            waiting.push_back(job);
        }
        let line = desk.line();
        let jobs = take(&mut waiting);
        let sending = send(desk, jobs);
        tokio::pin!(sending);
        desk = loop {
            match timeout(LOOK, &mut sending).await {
                Ok(desk) => break desk,
                Err(_) => decline(&line, &mut queue, &mut waiting),
            }
        };
    }
}

/// Who has come meanwhile does not wait for an alarm to end that a relay sits out.
fn decline(line: &Line, queue: &mut UnboundedReceiver<Job>, waiting: &mut VecDeque<Job>) {
    if line.blocked_reason().is_none() {
        return;
    }
    while let Ok(job) = queue.try_recv() {
        waiting.push_back(job);
    }
    let (patient, others): (VecDeque<Job>, VecDeque<Job>) =
        mem::take(waiting).into_iter().partition(|job| job.pace.relay);
    *waiting = patient;
    for job in others {
        job.ticket.answer(vec![Err(blocked()); job.messages.len()]);
    }
}

/// The next job, together with those behind it that can share its barrier.
fn take(waiting: &mut VecDeque<Job>) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut count = 0;
    while let Some(job) = waiting.front() {
        let fits = match jobs.first() {
            None => true,
            Some(first) => {
                mergeable(first) && mergeable(job) && first.pace == job.pace && count + job.messages.len() <= MERGED
            }
        };
        if !fits {
            break;
        }
        count += job.messages.len();
        jobs.extend(waiting.pop_front());
    }
    jobs
}

/// Publishes of several threads share a barrier. A relay's batch has a lease and a ticket that may be cancelled.
fn mergeable(job: &Job) -> bool {
    !job.pace.relay
}

async fn send(desk: Desk, jobs: Vec<Job>) -> Desk {
    // Nobody waits for a cancelled one any more, and nothing of it has been written.
    let (cancelled, jobs): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.ticket.is_cancelled());
    for job in cancelled {
        job.ticket.answer(vec![Err(unsent("it was cancelled")); job.messages.len()]);
    }
    let Some((pace, send_by)) = jobs.first().map(|job| (job.pace, Arc::clone(&job.send_by))) else { return desk };

    let shares: Vec<(Arc<Ticket<Outcomes>>, usize)> =
        jobs.iter().map(|job| (Arc::clone(&job.ticket), job.messages.len())).collect();
    let messages: Vec<Message> = jobs.into_iter().flat_map(|job| job.messages).collect();
    // Of several publishes that share a barrier none can be cancelled alone.
    let only = if shares.len() == 1 { Some(Arc::clone(&shares[0].0)) } else { None };

    let (desk, mut outcomes) = guarded(desk, messages, pace, send_by, only).await;
    for (ticket, size) in shares {
        ticket.answer(outcomes.drain(..size).collect());
    }
    desk
}

/// Sends in a task of its own, so that a panic in it ends as an ordinary failure and a new desk.
async fn guarded(
    mut desk: Desk,
    messages: Vec<Message>,
    pace: Pace,
    send_by: Arc<SendBy>,
    only: Option<Arc<Ticket<Outcomes>>>,
) -> (Desk, Outcomes) {
    let (line, total) = (desk.line(), messages.len());
    let sending = tokio::spawn(async move {
        let mut outcomes = vec![None; messages.len()];
        match only {
            None => desk.send(&messages, &pace, &send_by, &mut outcomes).await,
            Some(ticket) => tokio::select! {
                biased;
                () = desk.send(&messages, &pace, &send_by, &mut outcomes) => {}
                () = ticket.cancelled() => desk.abort(),
            },
        }
        let judged = outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(unsent("it was cancelled"))));
        (judged.collect(), desk)
    });
    match sending.await {
        Ok((outcomes, desk)) => (desk, outcomes),
        Err(e) => {
            line.abort();
            let text =
                format!("a defect in acemq_native stopped this batch ({e}); it may have arrived; please report it");
            (Desk::new(line), vec![Err(Error::new(Kind::Internal, text)); total])
        }
    }
}
