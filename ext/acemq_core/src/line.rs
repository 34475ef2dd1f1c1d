//! The way to the broker: hands out the live connection, or dials a new one.

use crate::address::{Address, Host};
use crate::error::{Error, Kind, Result};
use crate::link::Link;
use crate::tls::{Pem, Tls};
use parking_lot::Mutex;
use rustls::ClientConfig;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Where and how to dial.
#[derive(Clone)]
pub struct Settings {
    pub hosts: Vec<Host>,
    pub user: String,
    pub password: String,
    pub vhost: String,
    /// Seconds; the broker's own where none is given.
    pub heartbeat: Option<u16>,
    pub channel_max: Option<u16>,
    /// For a dial as a whole: every host, TCP, TLS and handshake.
    pub connection_timeout: Duration,
    /// What the broker's management pages call the connection.
    pub name: Option<String>,
    pub tls: Option<Tls>,
}

impl Settings {
    /// What the URL says, over the defaults of this crate.
    pub fn of(address: Address) -> Self {
        let tls = address.tls.then(|| Tls {
            authority: address.ca_file.map(Pem::File),
            identity: address
                .cert_file
                .zip(address.key_file)
                .map(|(certificate, key)| (Pem::File(certificate), Pem::File(key))),
            server_name: address.server_name,
            unverified: false,
        });
        Self {
            hosts: address.hosts,
            user: address.user,
            password: address.password,
            vhost: address.vhost,
            heartbeat: address.heartbeat,
            channel_max: address.channel_max,
            connection_timeout: address.connection_timeout.unwrap_or(Duration::from_secs(10)),
            name: None,
            tls,
        }
    }
}

/// Without the password.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("hosts", &self.hosts)
            .field("user", &self.user)
            .field("vhost", &self.vhost)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// A connection that is dialled again when it is gone.
pub struct Line {
    settings: Settings,
    tls: Option<Arc<ClientConfig>>,
    link: Mutex<Option<Arc<Link>>>,
    /// What the last dial came to, when it failed, and when.
    dialling: tokio::sync::Mutex<Option<(Instant, Error)>>,
    next_host: AtomicUsize,
    closed: AtomicBool,
}

impl Line {
    /// Reads the certificates; dials nothing.
    ///
    /// # Errors
    /// [`Kind::Config`] when a certificate or a key cannot be used.
    pub fn new(settings: Settings) -> Result<Self> {
        let tls = settings.tls.as_ref().map(Tls::client_config).transpose()?;
        Ok(Self {
            settings,
            tls,
            link: Mutex::new(None),
            dialling: tokio::sync::Mutex::new(None),
            next_host: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// The live connection, if there is one.
    pub(crate) fn live(&self) -> Option<Arc<Link>> {
        self.link.lock().as_ref().filter(|link| link.alive()).map(Arc::clone)
    }

    /// Whether there is a live connection.
    pub fn open(&self) -> bool {
        self.live().is_some()
    }

    /// Why the broker has blocked the live connection, while it has.
    pub fn blocked_reason(&self) -> Option<String> {
        self.live().and_then(|link| link.blocked_reason())
    }

    /// The live connection, or a new one to the first host that takes us.
    pub(crate) async fn link(&self) -> Result<Arc<Link>> {
        let asked = Instant::now();
        let mut failed = self.dialling.lock().await;
        if let Some(link) = self.live() {
            return Ok(link);
        }
        // Who has waited for a dial that failed has its answer, and does not dial in turn.
        if let Some((_, error)) = failed.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(error.clone());
        }
        let link = match self.dial().await {
            Ok(link) => Arc::new(link),
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                return Err(error);
            }
        };
        *self.link.lock() = Some(Arc::clone(&link));
        // A close that came while we dialled found nothing to close.
        if self.closed.load(Ordering::SeqCst) {
            self.abort();
            return Err(closed());
        }
        Ok(link)
    }

    /// Dials unless there is a live connection.
    ///
    /// # Errors
    /// [`Kind::Connect`] with what the last host said, or [`Kind::Closed`].
    pub async fn connect(&self) -> Result<()> {
        self.link().await.map(drop)
    }

    /// Tries each host once, beginning behind the one that was tried first last time.
    async fn dial(&self) -> Result<Link> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        let hosts = &self.settings.hosts;
        let first = self.next_host.fetch_add(1, Ordering::Relaxed);
        let end = Instant::now() + self.settings.connection_timeout;
        let mut failures = Vec::new();
        for tried in 0..hosts.len() {
            let host = &hosts[(first + tried) % hosts.len()];
            let share = end.saturating_duration_since(Instant::now()) / (hosts.len() - tried) as u32;
            match Link::dial(&self.settings, self.tls.as_ref(), host, Instant::now() + share).await {
                Ok(link) => return Ok(link),
                Err(e) => failures.push(e),
            }
        }
        Err(all_failed(failures))
    }

    /// Ends the connection at once; the next use dials anew.
    pub(crate) fn abort(&self) {
        if let Some(link) = self.link.lock().take() {
            link.abort();
        }
    }

    /// Ends it for good, politely until the deadline.
    pub async fn close(&self, end: Instant) {
        self.closed.store(true, Ordering::SeqCst);
        let link = self.link.lock().take();
        if let Some(link) = link {
            link.close(end).await;
        }
    }
}

pub(crate) fn closed() -> Error {
    Error::new(Kind::Closed, "this connection was closed; open a new one")
}

fn all_failed(mut failures: Vec<Error>) -> Error {
    let Some(last) = failures.pop() else { return Error::config("there is no host to dial") };
    if failures.is_empty() {
        return last;
    }
    let texts: Vec<&str> = failures.iter().chain([&last]).map(Error::message).collect();
    Error::new(Kind::Connect, texts.join("; "))
}
