//! A consumer at the broker, subscribed again whenever it is lost.
//!
//! One task owns the channel. Acks are collected while the last ones are being written, and what is contiguous goes
//! out as one; an ack never outlives the channel its delivery came by.

use crate::error::{Error, Kind, Result};
use crate::feed::Feed;
use crate::headers::{Headers, short, table};
use crate::letter::Letter;
use crate::line::Line;
use crate::link::Link;
use crate::topology::translate;
use crate::unsettled::Unsettled;
use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt};
use lapin::options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::ShortString;
use lapin::{Channel, Consumer, ErrorKind};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Deliveries handed to the threads, and orders of theirs carried out, in one go at most.
const HANDFUL: usize = 256;

/// Between attempts to subscribe again; doubled each time, with as much again for jitter.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long what is settled waits for more of it, while there is plenty to do.
const LINGER: Duration = Duration::from_millis(2);

/// Between two looks at whether the channel of a consumer that was stopped is still there.
const LOOK: Duration = Duration::from_millis(100);

/// What is consumed, and how.
#[derive(Clone, Debug)]
pub struct Request {
    pub queue: String,
    pub tag: String,
    /// Deliveries not yet settled, at most; 0 is no limit.
    pub prefetch: u16,
    pub arguments: Headers,
    /// For each answer of the broker.
    pub limit: Duration,
}

/// A subscription. Letting go of it ends it.
pub struct Subscription {
    feed: Arc<Feed>,
    orders: UnboundedSender<Order>,
}

enum Order {
    Settle(Settle),
    Stop(Instant, oneshot::Sender<()>),
    Close(Instant, oneshot::Sender<()>),
}

#[derive(Clone, Copy)]
struct Settle {
    tag: u64,
    generation: u64,
    accept: bool,
    requeue: bool,
}

impl Subscription {
    /// Subscribes for the first time.
    ///
    /// # Errors
    /// [`Kind::Broker`] when there is no such queue or the broker refuses the consumer, [`Kind::Connect`] or
    /// [`Kind::Lost`] when it cannot be asked, [`Kind::Refused`] for a name or an argument the wire cannot carry.
    pub async fn open(line: Arc<Line>, request: Request) -> Result<Self> {
        let feed = Arc::new(Feed::new(few(request.prefetch)));
        let (orders, received) = unbounded_channel();
        let (first, answer) = oneshot::channel();
        let task = Task { line, request, feed: Arc::clone(&feed), orders: received, generation: 0 };
        tokio::spawn(task.run(first));
        match answer.await {
            Ok(Ok(())) => Ok(Self { feed, orders }),
            Ok(Err(e)) => Err(e),
            Err(_) => {
                Err(Error::new(Kind::Internal, "a defect in acemq_native stopped the subscription; please report it"))
            }
        }
    }

    /// Where its deliveries are.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Has a delivery acked, or given back. False when its channel is gone: the broker hands it out again.
    pub fn settle(&self, letter: &Letter, accept: bool, requeue: bool) -> bool {
        let order = Settle { tag: letter.tag, generation: letter.generation, accept, requeue };
        self.feed.alive(letter.generation) && self.orders.send(Order::Settle(order)).is_ok()
    }

    /// Takes the consumer off the queue and gives back what nobody has begun. What was begun can still be settled.
    pub async fn stop(&self, end: Instant) {
        let (done, answer) = oneshot::channel();
        if self.orders.send(Order::Stop(end, done)).is_ok() {
            let _ = timeout_at(end, answer).await;
        }
    }

    /// Has everything written that was settled, and closes the channel: what is unsettled goes back.
    pub async fn close(&self, end: Instant) {
        let (done, answer) = oneshot::channel();
        if self.orders.send(Order::Close(end, done)).is_ok() {
            let _ = timeout_at(end, answer).await;
        }
    }
}

/// A consumer that the broker has.
struct Open {
    /// Held, because a link nobody holds is aborted.
    _link: Arc<Link>,
    channel: Channel,
    consumer: Consumer,
    generation: u64,
    unsettled: Unsettled,
}

struct Task {
    line: Arc<Line>,
    request: Request,
    feed: Arc<Feed>,
    orders: UnboundedReceiver<Order>,
    generation: u64,
}

/// Why a channel is no longer served.
enum End {
    Lost(String),
    Ordered,
}

impl Task {
    async fn run(mut self, first: oneshot::Sender<Result<()>>) {
        let mut first = Some(first);
        let mut pause = FIRST_PAUSE;
        loop {
            let attempt = tokio::select! {
                attempt = subscribe(&self.line, &self.request) => attempt,
                () = ordered_to_end(&mut self.orders) => return self.feed.end("it was stopped".to_owned()),
            };
            let why = match attempt {
                Ok((link, channel, consumer)) => {
                    self.generation += 1;
                    self.feed.open(self.generation);
                    first.take().map(|first| first.send(Ok(())));
                    let began = Instant::now();
                    let generation = self.generation;
                    let open = Open { _link: link, channel, consumer, generation, unsettled: Unsettled::default() };
                    match self.serve(open).await {
                        End::Ordered => return self.feed.end("it was stopped".to_owned()),
                        End::Lost(why) => {
                            // A consumer that is lost again at once is not a fresh start.
                            if began.elapsed() > LONGEST_PAUSE {
                                pause = FIRST_PAUSE;
                            }
                            why
                        }
                    }
                }
                Err(e) => {
                    if let Some(first) = first.take() {
                        self.feed.end(e.message().to_owned());
                        let _ = first.send(Err(e));
                        return;
                    }
                    if e.kind() == Kind::Closed {
                        return self.feed.end(e.message().to_owned());
                    }
                    e.message().to_owned()
                }
            };
            self.feed.lost(why);
            tokio::select! {
                () = sleep(jittered(pause)) => pause = LONGEST_PAUSE.min(pause * 2),
                () = ordered_to_end(&mut self.orders) => return self.feed.end("it was stopped".to_owned()),
            }
        }
    }

    async fn serve(&mut self, mut open: Open) -> End {
        let mut batch = Vec::with_capacity(HANDFUL);
        loop {
            tokio::select! {
                delivery = open.consumer.next() => {
                    if let Some(end) = self.hand_out(&mut open, delivery) {
                        return end;
                    }
                }
                received = self.orders.recv_many(&mut batch, HANDFUL) => {
                    if received == 0 {
                        open.close(Instant::now() + self.request.limit).await;
                        return End::Ordered;
                    }
                    if let Some(end) = self.gather(&mut open, &mut batch).await {
                        return end;
                    }
                    if self.obey(&mut open, &mut batch).await {
                        return self.wind_down(open).await;
                    }
                }
            }
        }
    }

    /// While threads have plenty to do, what they settle goes out together: each word that is written alone wakes three
    /// threads of ours and a process of the broker's.
    async fn gather(&mut self, open: &mut Open, batch: &mut Vec<Order>) -> Option<End> {
        if !self.feed.plenty() || !batch.iter().all(|order| matches!(order, Order::Settle(_))) {
            return None;
        }
        let enough = sleep(LINGER);
        tokio::pin!(enough);
        loop {
            tokio::select! {
                () = &mut enough => break,
                () = self.feed.running_low() => break,
                delivery = open.consumer.next() => {
                    if let Some(end) = self.hand_out(open, delivery) {
                        return Some(end);
                    }
                }
            }
        }
        while self.orders.recv_many(batch, HANDFUL).now_or_never().is_some_and(|received| received > 0) {}
        None
    }

    /// Hands out a delivery and all that have come behind it.
    fn hand_out(&self, open: &mut Open, first: Option<lapin::Result<lapin::message::Delivery>>) -> Option<End> {
        let mut letters = Vec::new();
        let mut next = first;
        let end = loop {
            match next {
                Some(Ok(delivery)) => letters.push(Letter::of(delivery, open.generation)),
                Some(Err(e)) => break Some(End::Lost(reason(&e))),
                None => {
                    let queue = &self.request.queue;
                    break Some(End::Lost(format!(
                        "the broker cancelled the consumer of {queue:?} (was the queue deleted?)"
                    )));
                }
            }
            if letters.len() >= HANDFUL {
                break None;
            }
            match open.consumer.next().now_or_never() {
                Some(more) => next = more,
                None => break None,
            }
        };
        if end.is_none() {
            open.unsettled.extend(letters.iter().map(|letter| letter.tag));
            self.feed.push(letters);
        }
        end
    }

    /// True when it was told to stop.
    async fn obey(&self, open: &mut Open, batch: &mut Vec<Order>) -> bool {
        let mut settles = Vec::with_capacity(batch.len());
        let mut stopped = false;
        for order in batch.drain(..) {
            match order {
                Order::Settle(settle) => settles.push(settle),
                Order::Stop(end, done) => {
                    open.settle(&mut settles).await;
                    self.cancel(open, end, &mut stopped).await;
                    let _ = done.send(());
                }
                Order::Close(end, done) => {
                    open.settle(&mut settles).await;
                    self.cancel(open, end, &mut stopped).await;
                    open.close(end).await;
                    let _ = done.send(());
                }
            }
        }
        open.settle(&mut settles).await;
        stopped
    }

    /// Once: a consumer that is asked for deliveries behind its last one never answers.
    async fn cancel(&self, open: &mut Open, end: Instant, stopped: &mut bool) {
        if mem::replace(stopped, true) {
            return;
        }
        let mut back: Vec<(u64, bool)> = self.feed.stop().iter().map(|letter| (letter.tag, true)).collect();
        if open.channel.status().connected() {
            let tag = open.consumer.tag();
            let _ = timeout_at(end, open.channel.basic_cancel(tag, BasicCancelOptions::default())).await;
            // Deliveries that were on their way, until the end of the stream, behind which it may not be asked again.
            while let Ok(Some(Ok(delivery))) = timeout_at(end, open.consumer.next()).await {
                back.push((delivery.delivery_tag, true));
            }
        }
        for (tag, _) in &back {
            open.unsettled.remove(*tag);
        }
        let _ = timeout_at(end, open.nack(&back)).await;
    }

    /// Settles what was begun before it was stopped, until the channel is closed.
    async fn wind_down(&mut self, mut open: Open) -> End {
        let mut batch = Vec::with_capacity(HANDFUL);
        while open.channel.status().connected() {
            // No delivery tells any more that the channel is gone.
            match timeout(LOOK, self.orders.recv_many(&mut batch, HANDFUL)).await {
                Err(_) => continue,
                Ok(0) => {
                    open.close(Instant::now() + self.request.limit).await;
                    break;
                }
                Ok(_) => {}
            }
            let mut settles = Vec::with_capacity(batch.len());
            for order in batch.drain(..) {
                match order {
                    Order::Settle(settle) => settles.push(settle),
                    Order::Stop(_, done) => _ = done.send(()),
                    Order::Close(end, done) => {
                        open.settle(&mut settles).await;
                        open.close(end).await;
                        let _ = done.send(());
                    }
                }
            }
            open.settle(&mut settles).await;
        }
        End::Ordered
    }
}

impl Open {
    /// Writes them, except what belongs to another channel.
    async fn settle(&mut self, settles: &mut Vec<Settle>) {
        let ours = settles.iter().filter(|settle| settle.generation == self.generation);
        let (accepted, refused): (Vec<&Settle>, Vec<&Settle>) = ours.partition(|settle| settle.accept);
        let accepted: Vec<u64> = accepted.into_iter().map(|settle| settle.tag).collect();
        let refused: Vec<(u64, bool)> = refused.into_iter().map(|settle| (settle.tag, settle.requeue)).collect();
        let words = self.unsettled.settle(&accepted, &refused);
        settles.clear();

        self.nack(&words.nacks).await;
        if let Some((tag, multiple)) = words.up_to {
            let _ = self.channel.basic_ack(tag, BasicAckOptions { multiple }).await;
        }
        let acks = words.acks.iter().map(|tag| self.channel.basic_ack(*tag, BasicAckOptions::default()));
        let _ = join_all(acks).await;
    }

    async fn nack(&self, nacks: &[(u64, bool)]) {
        let nacks = nacks.iter().map(|(tag, requeue)| {
            self.channel.basic_nack(*tag, BasicNackOptions { requeue: *requeue, multiple: false })
        });
        let _ = join_all(nacks).await;
    }

    async fn close(&self, end: Instant) {
        if self.channel.status().connected() {
            let _ = timeout_at(end, self.channel.close(200, ShortString::default())).await;
        }
    }
}

async fn subscribe(line: &Line, request: &Request) -> Result<(Arc<Link>, Channel, Consumer)> {
    let what = format!("consume from the queue {:?}", request.queue);
    let link = line.link().await?;
    let work = async {
        let channel = link.channel().await.map_err(|e| translate(&e, &what))?;
        if request.prefetch > 0 {
            let options = BasicQosOptions::default();
            channel.basic_qos(request.prefetch, options).await.map_err(|e| translate(&e, &what))?;
        }
        let consumer = channel
            .basic_consume(
                short("queue name", &request.queue)?,
                short("consumer tag", &request.tag)?,
                BasicConsumeOptions::default(),
                table(&request.arguments)?.0,
            )
            .await
            .map_err(|e| translate(&e, &what))?;
        Ok((channel, consumer))
    };
    match timeout(request.limit, work).await {
        Ok(Ok((channel, consumer))) => Ok((link, channel, consumer)),
        Ok(Err(e)) => Err(e),
        Err(_) => {
            // What may come of it later would be a second consumer.
            link.abort();
            Err(Error::new(Kind::Lost, format!("could not {what} within {} s", request.limit.as_secs_f64())))
        }
    }
}

/// Half of what the broker hands out ahead. Where that has no limit, what one thread handles in a moment.
fn few(prefetch: u16) -> usize {
    if prefetch == 0 { HANDFUL / 4 } else { usize::from(prefetch) / 2 }
}

/// While there is no channel: what is to be settled is gone already, and an end is an end.
async fn ordered_to_end(orders: &mut UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Settle(_) => {}
            Order::Stop(_, done) | Order::Close(_, done) => {
                let _ = done.send(());
                return;
            }
        }
    }
}

fn reason(error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(e) => format!("the broker closed the channel: {}", e.get_message().as_str()),
        _ => format!("the connection was lost ({error})"),
    }
}

/// Once to twice as long, so that the consumers of a broker that comes back do not all come at once.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1024;
    pause + pause * random as u32 / 1024
}
