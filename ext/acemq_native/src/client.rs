//! `AceMQ::Native::Client`: one application's way to one broker, over a connection for publishing and another for
//! taking, so that an alarm, which blocks who publishes, blocks no acks.

use crate::convert::{Failure, header_hash, message, option};
use crate::errors::raise;
use crate::gvl;
use crate::inbox::{Inbox, pull};
use crate::parcel::Parcel;
use crate::subscription::Subscription;
use crate::ticket::Ticket;
use acemq_core::address::Address;
use acemq_core::batch::Pace;
use acemq_core::gate::SendBy;
use acemq_core::headers::Headers;
use acemq_core::inbox::Inbox as CoreInbox;
use acemq_core::letter::Changes;
use acemq_core::line::{Line, Settings};
use acemq_core::message::Message;
use acemq_core::publisher::Publisher;
use acemq_core::subscription::{Request, Subscription as CoreSubscription};
use acemq_core::tls::{Pem, Tls};
use acemq_core::topology::{self, Answer, Declaration, Operation};
use acemq_core::{Error as CoreError, Kind, runtime};
use magnus::{
    Error, IntoValue, Module, Object, RArray, RHash, RModule, Ruby, TypedData, Value, function, method, prelude::*,
};
use std::cell::RefCell;
use std::mem;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Settings, and what this process has made of them.
#[magnus::wrap(class = "AceMQ::Native::Client", free_immediately, size)]
pub(crate) struct Client {
    settings: Settings,
    /// For everything but a batch: how long an answer is waited for.
    limit: Duration,
    /// Only touched with the GVL held and never across a wait, so a fork never catches it in use.
    live: RefCell<Option<Live>>,
}

/// What belongs to one process.
struct Live {
    pid: u32,
    publishing: Arc<Line>,
    taking: Arc<Line>,
    publisher: Publisher,
    inbox: Arc<CoreInbox>,
}

impl Live {
    fn start(settings: &Settings, limit: Duration) -> acemq_core::Result<Self> {
        let publishing = Arc::new(Line::new(settings.clone())?);
        let taking = Arc::new(Line::new(settings.clone())?);
        Ok(Self {
            pid: process::id(),
            publisher: Publisher::start(Arc::clone(&publishing), &runtime::handle()),
            inbox: Arc::new(CoreInbox::new(Arc::clone(&taking), limit)),
            publishing,
            taking,
        })
    }

    fn ours(&self) -> bool {
        self.pid == process::id()
    }
}

/// What a parent process made is neither used, joined nor closed in its child: it is left lying there.
fn abandon(live: Live) {
    mem::forget(live);
}

impl Drop for Client {
    fn drop(&mut self) {
        match self.live.take() {
            Some(live) if live.ours() => {
                runtime::handle()
                    .spawn(async move { close(live.publishing, live.taking, Duration::from_secs(1)).await });
            }
            Some(live) => abandon(live),
            None => {}
        }
    }
}

async fn close(publishing: Arc<Line>, taking: Arc<Line>, limit: Duration) {
    let end = tokio::time::Instant::now() + limit;
    publishing.close(end).await;
    taking.close(end).await;
}

impl Client {
    /// `new(url, options)`; ConfigurationError when a part of them is wrong.
    fn new(ruby: &Ruby, url: String, options: RHash) -> Result<Self, Error> {
        let settings = settings(ruby, &url, options)?;
        let limit = seconds(option(ruby, options, "answer_timeout")?);
        // Certificates are looked at now, while there is somebody to tell. Threads are started by what needs them: not in
        // a process that only checks its settings, and then forks.
        Line::new(settings.clone()).map_err(|e| raise(ruby, &e))?;
        Ok(Self { settings, limit, live: RefCell::new(None) })
    }

    /// This process's own, made on first use and anew after a fork. `take` must not run Ruby: another thread could come in here.
    fn with_live<T>(&self, ruby: &Ruby, take: impl FnOnce(&Live) -> T) -> Result<T, Error> {
        let ours = self.live.borrow().as_ref().is_some_and(Live::ours);
        if !ours {
            let fresh = Live::start(&self.settings, self.limit).map_err(|e| raise(ruby, &e))?;
            if let Some(inherited) = self.live.replace(Some(fresh)) {
                abandon(inherited);
            }
        }
        match self.live.borrow().as_ref() {
            Some(live) => Ok(take(live)),
            None => Err(raise(ruby, &CoreError::new(Kind::Internal, "the connection was just made and is gone"))),
        }
    }

    /// `connect -> nil`: dials the publishing connection unless it is live.
    fn connect(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        let line = rb_self.with_live(ruby, |live| Arc::clone(&live.publishing))?;
        gvl::run(ruby, async move { line.connect().await })
    }

    /// `open? -> bool`
    fn is_open(&self) -> bool {
        self.live.borrow().as_ref().is_some_and(|live| live.ours() && live.publishing.open())
    }

    /// `blocked_reason -> String or nil`
    fn blocked_reason(&self) -> Option<String> {
        self.live.borrow().as_ref().filter(|live| live.ours()).and_then(|live| live.publishing.blocked_reason())
    }

    /// `submit([message parts, ...], pace) -> Ticket`
    fn submit(ruby: &Ruby, rb_self: &Self, messages: RArray, pace: RHash) -> Result<Ticket, Error> {
        let mut built = Vec::with_capacity(messages.len());
        for at in 0..messages.len() {
            built.push(message(ruby, messages.entry(at as isize)?)?);
        }
        rb_self.hand_over(ruby, built, pace)
    }

    /// `copy(parcel, changes, pace) -> Ticket`: the same message for another queue. TransportError for a parcel that is
    /// settled or another process's.
    fn copy(ruby: &Ruby, rb_self: &Self, parcel: &Parcel, changes: RHash, pace: RHash) -> Result<Ticket, Error> {
        let Some(letter) = parcel.letter() else {
            return Err(raise(
                ruby,
                &CoreError::new(Kind::Lost, "this delivery was settled; there is nothing to copy"),
            ));
        };
        let changes = Changes {
            exchange: option(ruby, changes, "exchange")?,
            routing_key: option(ruby, changes, "routing_key")?,
            message_id: option(ruby, changes, "message_id")?,
            headers: headers(ruby, changes, "headers")?,
            keep_expiration: option(ruby, changes, "keep_expiration")?,
            mandatory: option(ruby, changes, "mandatory")?,
        };
        rb_self.hand_over(ruby, vec![letter.copy(changes)], pace)
    }

    fn hand_over(&self, ruby: &Ruby, messages: Vec<acemq_core::Result<Message>>, pace: RHash) -> Result<Ticket, Error> {
        let limit: Option<f64> = option(ruby, pace, "send_by")?;
        let send_by = SendBy::new(limit.and_then(|limit| Instant::now().checked_add(seconds(limit))));
        let pace = Pace {
            in_flight: option(ruby, pace, "in_flight")?,
            in_flight_bytes: option(ruby, pace, "in_flight_bytes")?,
            confirm_timeout: seconds(option(ruby, pace, "confirm_timeout")?),
            relay: option(ruby, pace, "relay")?,
        };
        let mut good = Vec::with_capacity(messages.len());
        let mut refused: Vec<(usize, CoreError)> = Vec::new();
        for (at, message) in messages.into_iter().enumerate() {
            match message {
                Ok(message) => good.push(message),
                Err(refusal) => refused.push((at, refusal)),
            }
        }
        let ticket = self.with_live(ruby, |live| live.publisher.submit(good, pace, Arc::clone(&send_by)))?;
        Ok(Ticket::new(ticket, send_by, refused))
    }

    /// `perform(operation, options)`: one operation on the topology.
    fn perform(ruby: &Ruby, rb_self: &Self, name: String, options: RHash) -> Result<Value, Error> {
        let operation = operation(ruby, &name, options)?;
        let line = rb_self.with_live(ruby, |live| Arc::clone(&live.publishing))?;
        let limit = rb_self.limit;
        let answer = gvl::run(ruby, async move { topology::perform(&line, operation, limit).await })?;
        Ok(match answer {
            Answer::Done => ruby.qnil().as_value(),
            Answer::Name(name) => name.into_value_with(ruby),
            Answer::Count(count) => count.into_value_with(ruby),
            Answer::Yes => true.into_value_with(ruby),
            Answer::No => false.into_value_with(ruby),
        })
    }

    /// `pull(queue) -> Array or nil`, see `parcel::unpack`
    fn pull(ruby: &Ruby, rb_self: &Self, queue: String) -> Result<Option<RArray>, Error> {
        pull(ruby, rb_self.with_live(ruby, |live| Arc::clone(&live.inbox))?, queue)
    }

    /// `inbox -> Inbox`, with a channel of its own
    fn inbox(ruby: &Ruby, rb_self: &Self) -> Result<Inbox, Error> {
        let taking = rb_self.with_live(ruby, |live| Arc::clone(&live.taking))?;
        Ok(Inbox::new(CoreInbox::new(taking, rb_self.limit)))
    }

    /// `subscribe(queue, options) -> Subscription`
    fn subscribe(ruby: &Ruby, rb_self: &Self, queue: String, options: RHash) -> Result<Subscription, Error> {
        let request = Request {
            queue,
            tag: option(ruby, options, "tag")?,
            prefetch: option(ruby, options, "prefetch")?,
            arguments: headers(ruby, options, "arguments")?,
            limit: rb_self.limit,
        };
        let line = rb_self.with_live(ruby, |live| Arc::clone(&live.taking))?;
        gvl::run(ruby, CoreSubscription::open(line, request)).map(Subscription::new)
    }

    /// `close(seconds) -> nil`
    fn close(ruby: &Ruby, rb_self: &Self, limit: f64) -> Result<(), Error> {
        let lines = match &*rb_self.live.borrow() {
            Some(live) if live.ours() => Some((Arc::clone(&live.publishing), Arc::clone(&live.taking))),
            _ => None,
        };
        match lines {
            None => Ok(()),
            Some((publishing, taking)) => gvl::run(ruby, async move {
                close(publishing, taking, seconds(limit)).await;
                Ok(())
            }),
        }
    }
}

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::from_secs(u32::MAX.into()))
}

fn settings(ruby: &Ruby, url: &str, options: RHash) -> Result<Settings, Error> {
    let address = Address::parse(url).map_err(|e| raise(ruby, &e))?;
    let mut settings = Settings::of(address);
    if let Some(timeout) = option::<Option<f64>>(ruby, options, "connection_timeout")? {
        settings.connection_timeout = seconds(timeout);
    }
    if let Some(heartbeat) = option(ruby, options, "heartbeat")? {
        settings.heartbeat = Some(heartbeat);
    }
    if let Some(user) = option(ruby, options, "username")? {
        settings.user = user;
    }
    if let Some(password) = option(ruby, options, "password")? {
        settings.password = password;
    }
    settings.name = option(ruby, options, "client_name")?;
    if let Some(tls) = option::<Option<RHash>>(ruby, options, "tls")? {
        settings.tls = Some(merge(ruby, settings.tls.unwrap_or_default(), tls)?);
    }
    Ok(settings)
}

/// What the options say wins over the URL's parameters.
fn merge(ruby: &Ruby, mut tls: Tls, options: RHash) -> Result<Tls, Error> {
    if let Some(text) = option::<Option<String>>(ruby, options, "authority")? {
        tls.authority = Some(Pem::Text(text));
    }
    let certificate: Option<String> = option(ruby, options, "certificate")?;
    let key: Option<String> = option(ruby, options, "key")?;
    if let Some((certificate, key)) = certificate.zip(key) {
        tls.identity = Some((Pem::Text(certificate), Pem::Text(key)));
    }
    tls.unverified = option(ruby, options, "unverified")?;
    Ok(tls)
}

fn operation(ruby: &Ruby, name: &str, options: RHash) -> Result<Operation, Error> {
    Ok(match name {
        "declare_exchange" => Operation::DeclareExchange(declaration(ruby, options)?),
        "declare_queue" => Operation::DeclareQueue(declaration(ruby, options)?),
        "bind" => Operation::Bind {
            queue: option(ruby, options, "queue")?,
            exchange: option(ruby, options, "exchange")?,
            routing_key: option(ruby, options, "routing_key")?,
        },
        "count" => Operation::Count(option(ruby, options, "name")?),
        "queue_exists" => Operation::QueueExists(option(ruby, options, "name")?),
        "delete_queue" => Operation::DeleteQueue(option(ruby, options, "name")?),
        other => return Err(Error::new(ruby.exception_arg_error(), format!("there is no operation {other}"))),
    })
}

/// A Hash among the options as a table of the wire.
fn headers(ruby: &Ruby, options: RHash, name: &str) -> Result<Headers, Error> {
    header_hash(ruby, option(ruby, options, name)?).map_err(|failure| match failure {
        Failure::Raised(error) => error,
        Failure::Refused(refusal) => raise(ruby, &refusal),
    })
}

fn declaration(ruby: &Ruby, options: RHash) -> Result<Declaration, Error> {
    Ok(Declaration {
        name: option(ruby, options, "name")?,
        kind: option(ruby, options, "kind")?,
        durable: option(ruby, options, "durable")?,
        auto_delete: option(ruby, options, "auto_delete")?,
        exclusive: option(ruby, options, "exclusive")?,
        arguments: headers(ruby, options, "arguments")?,
    })
}

pub(crate) fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("Client", ruby.class_object())?;
    class.define_singleton_method("new", function!(Client::new, 2))?;
    class.define_method("connect", method!(Client::connect, 0))?;
    class.define_method("open?", method!(Client::is_open, 0))?;
    class.define_method("blocked_reason", method!(Client::blocked_reason, 0))?;
    class.define_method("submit", method!(Client::submit, 2))?;
    class.define_method("perform", method!(Client::perform, 2))?;
    class.define_method("pull", method!(Client::pull, 1))?;
    class.define_method("inbox", method!(Client::inbox, 0))?;
    class.define_method("subscribe", method!(Client::subscribe, 2))?;
    class.define_method("copy", method!(Client::copy, 3))?;
    class.define_method("close", method!(Client::close, 1))?;
    <Client as TypedData>::class(ruby);
    Ok(())
}
