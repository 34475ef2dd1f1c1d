//! One live connection to the broker.
//!
//! The dial is our own: TCP, TLS and handshake share one deadline, and a duplicate of the socket is kept, because
//! shutting that down is the only thing that ends everything on a connection at once.

use crate::address::Host;
use crate::error::{Error, Kind, Result};
use crate::gate::{Gate, GatedReactor, GatedStream};
use crate::legible::LegibleStream;
use crate::line::Settings;
use async_rs::Tokio;
use async_rs::util::RuntimeParts;
use futures_util::StreamExt;
use lapin::tcp::{AsyncTcpStream, RustlsConnector};
use lapin::types::{LongString, ShortString};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{Channel, Connection, ConnectionProperties, ErrorKind, Event};
use parking_lot::Mutex;
use rustls::ClientConfig;
use socket2::SockRef;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

/// A live connection, or one that was live.
pub(crate) struct Link {
    connection: Connection,
    socket: Socket,
    /// Why the broker has blocked us, as it last said.
    reason: Arc<Mutex<String>>,
    /// Until when may be written to it.
    pub(crate) gate: Arc<Gate>,
    /// Set by the first confirm: the broker tells of an alarm only after a publish.
    pub(crate) proven: AtomicBool,
}

/// A duplicate of the connection's socket.
struct Socket {
    stream: Mutex<Option<std::net::TcpStream>>,
    pid: u32,
}

impl Socket {
    fn of(stream: &TcpStream) -> io::Result<Self> {
        // Its end is a reset: bytes still queued in the kernel are thrown away, not delivered behind our back.
        SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
        let duplicate = stream.as_fd().try_clone_to_owned()?.into();
        Ok(Self { stream: Mutex::new(Some(duplicate)), pid: process::id() })
    }

    /// Ends the connection at once. In a forked child this would end the parent's, so there it does nothing.
    fn abort(&self) {
        if self.pid != process::id() {
            return;
        }
        if let Some(stream) = self.stream.lock().take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn aborted(&self) -> bool {
        self.stream.lock().is_none()
    }
}

impl Link {
    /// Dials one host. `end` bounds the whole of it.
    pub(crate) async fn dial(
        settings: &Settings,
        tls: Option<&Arc<ClientConfig>>,
        host: &Host,
        end: Instant,
    ) -> Result<Self> {
        let (tcp, socket) =
            timeout_at(end, connect(settings, host)).await.map_err(|_| timed_out(settings, host, "answer"))??;
        let gate = Arc::new(Gate::default());
        let stream = GatedStream::new(tcp, Arc::clone(&gate));
        let stream = match tls {
            None => AsyncTcpStream::Plain(stream),
            Some(config) => {
                let connector = RustlsConnector::from(Arc::clone(config));
                let name = settings.tls.as_ref().and_then(|t| t.server_name.as_deref()).unwrap_or(&host.name);
                let handshake = AsyncTcpStream::Plain(stream).into_rustls(&connector, name);
                timeout_at(end, handshake)
                    .await
                    .map_err(|_| timed_out(settings, host, "finish the TLS handshake"))?
                    .map_err(|e| tls_failure(host, name, &e))?
            }
        };

        let cell = Mutex::new(Some(AsyncTcpStream::Plain(LegibleStream::new(stream))));
        let tokio = Tokio::default().with_handle(Handle::current());
        let runtime = async_rs::Runtime::new(RuntimeParts::new(tokio.clone(), GatedReactor(tokio)));
        let dial = Connection::connector(
            uri(settings, host),
            runtime,
            async move |_, _| cell.lock().take().ok_or_else(|| io::Error::other("the stream was used up").into()),
            properties(settings),
        );
        match timeout_at(end, dial).await {
            Ok(Ok(connection)) => {
                Ok(Self { reason: watch(&connection), connection, socket, gate, proven: AtomicBool::new(false) })
            }
            Ok(Err(e)) => {
                socket.abort();
                Err(handshake_failure(settings, host, &e))
            }
            Err(_) => {
                socket.abort();
                Err(timed_out(settings, host, "finish the AMQP handshake"))
            }
        }
    }

    /// What we have ended is not alive, though lapin takes a moment to notice.
    pub(crate) fn alive(&self) -> bool {
        !self.socket.aborted() && self.connection.status().connected()
    }

    pub(crate) fn blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// The broker's reason while it has blocked us.
    pub(crate) fn blocked_reason(&self) -> Option<String> {
        self.blocked().then(|| self.reason.lock().clone())
    }

    pub(crate) fn frame_max(&self) -> usize {
        self.connection.configuration().frame_max() as usize
    }

    pub(crate) async fn channel(&self) -> lapin::Result<Channel> {
        self.connection.create_channel().await
    }

    /// A channel in confirm mode.
    pub(crate) async fn confirm_channel(&self) -> lapin::Result<Channel> {
        let channel = self.channel().await?;
        channel.confirm_select(Default::default()).await?;
        Ok(channel)
    }

    pub(crate) fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    /// Ends it at once. What lapin still holds is never written.
    pub(crate) fn abort(&self) {
        self.socket.abort();
    }

    /// Says goodbye, until `end`, and then ends it.
    pub(crate) async fn close(&self, end: Instant) {
        // A blocked or frozen broker never answers a close.
        if self.alive() && !self.blocked() {
            let _ = timeout_at(end, self.connection.close(200, ShortString::default())).await;
        }
        self.abort();
    }
}

/// The duplicate keeps the TCP connection open after lapin has let go of its own, so every end must abort.
impl Drop for Link {
    fn drop(&mut self) {
        self.abort();
    }
}

/// Notes the broker's reasons for blocking, for as long as the connection lives.
fn watch(connection: &Connection) -> Arc<Mutex<String>> {
    let reason = Arc::new(Mutex::new("the broker has an alarm".to_owned()));
    let noted = Arc::clone(&reason);
    let mut events = Box::pin(connection.events_listener());
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let Event::ConnectionBlocked(text) = event {
                *noted.lock() = text;
            }
        }
    });
    reason
}

/// TCP to the first address of the host that answers.
async fn connect(settings: &Settings, host: &Host) -> Result<(TcpStream, Socket)> {
    let failed = |e: io::Error| connect_failure(settings, host, &e.to_string());
    let mut last = io::Error::other("the name has no address");
    for address in tokio::net::lookup_host((host.name.as_str(), host.port)).await.map_err(failed)? {
        match TcpStream::connect(address).await {
            Ok(tcp) => {
                tcp.set_nodelay(true).map_err(failed)?;
                let socket = Socket::of(&tcp).map_err(failed)?;
                return Ok((tcp, socket));
            }
            Err(e) => last = e,
        }
    }
    Err(failed(last))
}

fn uri(settings: &Settings, host: &Host) -> AMQPUri {
    AMQPUri {
        scheme: AMQPScheme::AMQP,
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo { username: settings.user.clone(), password: settings.password.clone() },
            host: host.name.clone(),
            port: host.port,
        },
        vhost: settings.vhost.clone(),
        query: AMQPQueryString {
            heartbeat: settings.heartbeat,
            channel_max: settings.channel_max,
            ..AMQPQueryString::default()
        },
    }
}

fn properties(settings: &Settings) -> ConnectionProperties {
    let properties = ConnectionProperties::default()
        .with_client_property(ShortString::from("product"), LongString::from("acemq_native"))
        .with_client_property(ShortString::from("version"), LongString::from(env!("CARGO_PKG_VERSION")));
    match &settings.name {
        Some(name) => properties.with_connection_name(LongString::from(name.as_str())),
        None => properties,
    }
}

fn timed_out(settings: &Settings, host: &Host, what: &str) -> Error {
    let seconds = settings.connection_timeout.as_secs_f64();
    connect_failure(settings, host, &format!("it did not {what} within connection_timeout ({seconds} s)"))
}

fn connect_failure(settings: &Settings, host: &Host, why: &str) -> Error {
    let scheme = if settings.tls.is_some() { "amqps" } else { "amqp" };
    Error::new(Kind::Connect, format!("cannot connect to {scheme}://{host}: {why}"))
}

fn tls_failure(host: &Host, name: &str, error: &io::Error) -> Error {
    let why = match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(e)) => format!("its certificate does not verify for {name:?}: {e}"),
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS on this port (is it an amqp:// port?)".into(),
        _ => error.to_string(),
    };
    Error::new(Kind::Connect, format!("cannot connect to amqps://{host}: {why}"))
}

fn handshake_failure(settings: &Settings, host: &Host, error: &lapin::Error) -> Error {
    let (why, code) = match error.kind() {
        ErrorKind::ProtocolError(e) if e.get_id() == 403 => {
            (format!("the broker refused the user {:?} or its password", settings.user), Some(403))
        }
        ErrorKind::ProtocolError(e) if e.get_id() == 530 => {
            (not_allowed(settings, e.get_message().as_str()), Some(530))
        }
        ErrorKind::ProtocolError(e) => (e.get_message().to_string(), Some(e.get_id())),
        ErrorKind::ParsingError(_) => ("it does not speak AMQP (an HTTP or TLS port?)".into(), None),
        ErrorKind::InvalidProtocolVersion(v) => (format!("it speaks AMQP {v:?}, not 0-9-1"), None),
        ErrorKind::IOError(e) => (format!("it hung up during the handshake ({e})"), None),
        _ => (error.to_string(), None),
    };
    let failure = connect_failure(settings, host, &why);
    match code {
        Some(code) => failure.with_code(code),
        None => failure,
    }
}

fn not_allowed(settings: &Settings, text: &str) -> String {
    if settings.vhost.is_empty() {
        format!(
            "{text}. The URL ends in a slash, which is the vhost with the empty name; leave the slash off, or write \
             %2F, for the vhost \"/\""
        )
    } else {
        format!("{text} (the vhost of the URL is {:?})", settings.vhost)
    }
}
