//! A stream that can be told when to stop writing.
//!
//! lapin writes what it was handed whenever its socket has room. A process that was stopped for longer than its leases
//! and goes on must not: others have taken its records over. So the last place before the socket asks what time it is.

use crate::legible::LegibleStream;
use async_compat::Compat;
use async_rs::Tokio;
use async_rs::traits::Reactor;
use futures_core::Stream;
use futures_io::{AsyncRead, AsyncWrite};
use parking_lot::Mutex;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Points in time are kept as nanoseconds since then.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

const NEVER: u64 = u64::MAX;

/// Until when a batch may be written. Whoever renews its leases moves it.
#[derive(Debug)]
pub struct SendBy(AtomicU64);

impl SendBy {
    /// `None` is without an end.
    pub fn new(end: Option<Instant>) -> Arc<Self> {
        LazyLock::force(&EPOCH);
        let send_by = Arc::new(Self(AtomicU64::new(NEVER)));
        send_by.set(end);
        send_by
    }

    pub fn set(&self, end: Option<Instant>) {
        let nanos = |end: Instant| u64::try_from(end.saturating_duration_since(*EPOCH).as_nanos()).unwrap_or(NEVER);
        self.0.store(end.map_or(NEVER, nanos), Ordering::SeqCst);
    }

    pub(crate) fn passed(&self) -> bool {
        let end = self.0.load(Ordering::SeqCst);
        end != NEVER && EPOCH.elapsed().as_nanos() >= u128::from(end)
    }
}

/// Shut while a batch whose time has passed still has something to write.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Option<Arc<SendBy>>>);

impl Gate {
    /// From here on until it is opened, what is written is this batch's.
    pub(crate) fn watch(&self, send_by: &Arc<SendBy>) {
        *self.0.lock() = Some(Arc::clone(send_by));
    }

    pub(crate) fn open(&self) {
        *self.0.lock() = None;
    }

    fn check(&self) -> io::Result<()> {
        match &*self.0.lock() {
            Some(send_by) if send_by.passed() => Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the lease of what was still to be written has run out",
            )),
            _ => Ok(()),
        }
    }
}

/// A TCP stream behind a gate.
pub(crate) struct GatedStream {
    stream: Compat<TcpStream>,
    gate: Arc<Gate>,
}

impl GatedStream {
    pub(crate) fn new(stream: TcpStream, gate: Arc<Gate>) -> Self {
        Self { stream: Compat::new(stream), gate }
    }
}

impl AsyncRead for GatedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_read_vectored(cx, bufs)
    }
}

impl AsyncWrite for GatedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.gate.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.gate.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

/// tokio's reactor, whose streams are gated and legible. lapin is handed a stream that is connected already and asks it
/// for timers.
#[derive(Clone, Debug)]
pub(crate) struct GatedReactor(pub(crate) Tokio);

impl Reactor for GatedReactor {
    type TcpStream = LegibleStream;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        Err::<GatedStream, _>(io::Error::other("the only stream of a link is the one it was dialled with"))
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.0.sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(duration)
    }

    fn tcp_connect_addr(&self, _: SocketAddr) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        std::future::ready(Err(io::Error::other("a link is dialled by itself, not by lapin")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shut_only_while_a_batch_whose_time_has_passed_has_something_to_write() {
        let gate = Gate::default();
        let send_by = SendBy::new(Some(Instant::now()));
        assert!(gate.check().is_ok());
        gate.watch(&send_by);
        assert_eq!(gate.check().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        send_by.set(Some(Instant::now() + Duration::from_secs(60)));
        assert!(gate.check().is_ok());
        send_by.set(Some(Instant::now()));
        gate.open();
        assert!(gate.check().is_ok());
    }
}
