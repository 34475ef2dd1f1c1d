//! Single gets. Their acks travel on the channel they came by; when that is gone, so is the delivery, and the
//! broker hands it out again.

use crate::error::{Error, Kind, Result};
use crate::letter::Letter;
use crate::line::Line;
use crate::link::Link;
use crate::runtime;
use crate::topology::{passive, translate};
use lapin::Channel;
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicNackOptions};
use lapin::types::ShortString;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

struct Open {
    link: Arc<Link>,
    channel: Channel,
    known: HashSet<String>,
    /// While a get is out. Set on a channel that nobody waits on, it tells of a delivery that nobody has.
    asked: bool,
}

/// A letter on its way to whoever asked. If nobody takes it, it goes back to its queue.
pub struct Pulled {
    letter: Option<Letter>,
    inbox: Arc<Inbox>,
}

impl Pulled {
    pub fn take(mut self) -> Option<Letter> {
        self.letter.take()
    }
}

impl Drop for Pulled {
    fn drop(&mut self) {
        let Some(letter) = self.letter.take() else { return };
        let inbox = Arc::clone(&self.inbox);
        runtime::handle().spawn(async move { inbox.settle(letter.tag, letter.generation, false, true).await });
    }
}

/// Gets messages one by one.
pub struct Inbox {
    line: Arc<Line>,
    state: Mutex<(u64, Option<Open>)>,
    limit: Duration,
}

impl Inbox {
    /// `limit` bounds every call.
    pub fn new(line: Arc<Line>, limit: Duration) -> Self {
        Self { line, state: Mutex::new((0, None)), limit }
    }

    /// The next message of a queue, or nothing.
    ///
    /// # Errors
    /// [`Kind::Broker`] when there is no such queue, [`Kind::Connect`] or [`Kind::Lost`] when it cannot be asked.
    pub async fn pull(self: Arc<Self>, queue: &str) -> Result<Pulled> {
        let letter = self.within(&format!("get from the queue {queue:?}"), self.get(queue)).await?;
        Ok(Pulled { letter, inbox: self })
    }

    async fn get(&self, queue: &str) -> Result<Option<Letter>> {
        let what = format!("get from the queue {queue:?}");
        let mut state = self.state.lock().await;
        self.open(&mut state).await?;
        let generation = state.0;
        let Some(open) = state.1.as_mut() else { return Ok(None) };
        // A get from a missing queue would close the channel, and with it every delivery not yet settled.
        if !open.known.contains(queue) {
            let scratch = open.link.channel().await.map_err(|e| translate(&e, &what))?;
            passive(&scratch, queue).await.map_err(|e| translate(&e, &what))?;
            let _ = scratch.close(200, ShortString::default()).await;
            open.known.insert(queue.to_owned());
        }
        let name = crate::headers::short("queue name", queue)?;
        open.asked = true;
        let got = open.channel.basic_get(name, BasicGetOptions::default()).await;
        open.asked = false;
        let got = got.map_err(|e| translate(&e, &what))?;
        Ok(got.map(|message| Letter::of(message.delivery, generation)))
    }

    /// Settles a letter. False when its channel is gone: the broker has taken it back.
    ///
    /// # Errors
    /// [`Kind::Lost`] when the broker does not take the word in time.
    pub async fn settle(&self, tag: u64, generation: u64, accept: bool, requeue: bool) -> Result<bool> {
        let work = async {
            let state = self.state.lock().await;
            let Some(open) = state.1.as_ref().filter(|open| state.0 == generation && open.channel.status().connected())
            else {
                return Ok(false);
            };
            let done = if accept {
                open.channel.basic_ack(tag, BasicAckOptions::default()).await
            } else {
                open.channel.basic_nack(tag, BasicNackOptions { requeue, multiple: false }).await
            };
            Ok(done.is_ok())
        };
        self.within("settle a delivery", work).await
    }

    /// Whether what came with this generation can still be settled, as far as can be told without waiting.
    pub fn alive(&self, generation: u64) -> bool {
        self.state.try_lock().map_or(true, |state| {
            state.0 == generation && state.1.as_ref().is_some_and(|open| open.channel.status().connected())
        })
    }

    /// Gives back at once all that is not settled, and hears that the rest is. A queue of the classic kind looks for the place of every message that
    /// comes back by itself, which holds up everything else it has to do by the square of their number.
    ///
    /// # Errors
    /// [`Kind::Lost`] when the broker does not answer in time, or the channel is gone: the broker has taken back whatever it
    /// has not heard of.
    pub async fn close(&self) -> Result<()> {
        let what = "give back what was pulled";
        let work = async {
            let Some(open) = self.state.lock().await.1.take() else { return Ok(()) };
            open.channel.close(200, ShortString::default()).await.map_err(|e| translate(&e, what))
        };
        self.within(what, work).await
    }

    async fn open(&self, state: &mut (u64, Option<Open>)) -> Result<()> {
        let link = self.line.link().await?;
        if let Some(open) = &state.1 {
            if Arc::ptr_eq(&open.link, &link) && open.channel.status().connected() && !open.asked {
                return Ok(());
            }
            let _ = open.channel.close(200, ShortString::default()).await;
        }
        let channel = link.channel().await.map_err(|e| translate(&e, "open a channel"))?;
        *state = (state.0 + 1, Some(Open { link, channel, known: HashSet::new(), asked: false }));
        Ok(())
    }

    async fn within<T>(&self, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        match timeout(self.limit, work).await {
            Ok(done) => done,
            Err(_) => Err(Error::new(Kind::Lost, format!("could not {what} within {} s", self.limit.as_secs_f64()))),
        }
    }
}
