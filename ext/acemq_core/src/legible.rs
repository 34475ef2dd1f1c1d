//! Short strings that are no UTF-8, made legible before lapin reads them.
//!
//! Names, routing keys and most properties are short strings, and AMQP does not say of which characters. To lapin one that
//! is not UTF-8 is the end of the connection: of all its consumers, again and again, because the broker hands such a
//! message out anew each time. So what comes from the broker is read along, and what nobody can read becomes as many
//! question marks. Bodies and long strings are bytes to everybody, and stay as they are.

use crate::gate::GatedStream;
use futures_io::{AsyncRead, AsyncWrite};
use lapin::tcp::AsyncTcpStream;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Read at a time.
const CHUNK: usize = 64 * 1024;
/// Type, channel and size.
const HEAD: usize = 7;
/// No frame that is looked into is larger than what RabbitMQ lets one be.
const LARGEST: usize = 16 * 1024 * 1024;
/// Tables within tables: what is nested deeper is dropped by whoever receives it.
const DEEPEST: usize = 64;

const METHOD: u8 = 1;
const PROPERTIES: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;

const BASIC: u16 = 60;
const RETURN: u16 = 50;
const DELIVER: u16 = 60;
const GET_OK: u16 = 71;

/// A connection's stream, above TLS.
pub(crate) struct LegibleStream {
    stream: AsyncTcpStream<GatedStream>,
    frames: Frames,
}

impl LegibleStream {
    pub(crate) fn new(stream: AsyncTcpStream<GatedStream>) -> Self {
        Self { stream, frames: Frames::default() }
    }
}

impl AsyncRead for LegibleStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            let taken = this.frames.take(buf);
            if taken > 0 || buf.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            let read = ready!(Pin::new(&mut this.stream).poll_read(cx, this.frames.room()))?;
            if read == 0 {
                this.frames.end();
                return Poll::Ready(Ok(this.frames.take(buf)));
            }
            this.frames.add(read);
        }
    }
}

impl AsyncWrite for LegibleStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

/// What was read and not yet handed on. Frames that are looked into are handed on as a whole, the others as they come.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
    /// Handed on up to here, may be handed on up to there, and read up to there.
    taken: usize,
    cleared: usize,
    filled: usize,
    /// Of the present frame, what may pass when it comes.
    passing: usize,
}

impl Frames {
    fn take(&mut self, buf: &mut [u8]) -> usize {
        let count = buf.len().min(self.cleared - self.taken);
        buf[..count].copy_from_slice(&self.bytes[self.taken..self.taken + count]);
        self.taken += count;
        count
    }

    /// Where to read to.
    fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.cleared -= self.taken;
        self.taken = 0;
        if self.bytes.len() < self.filled + CHUNK {
            self.bytes.resize(self.filled + CHUNK, 0);
        }
        &mut self.bytes[self.filled..]
    }

    fn add(&mut self, read: usize) {
        self.filled += read;
        loop {
            let pass = self.passing.min(self.filled - self.cleared);
            self.cleared += pass;
            self.passing -= pass;
            if self.passing > 0 || !self.next_frame() {
                return;
            }
        }
    }

    /// No more will come.
    fn end(&mut self) {
        self.cleared = self.filled;
    }

    /// Whether the next frame, or as much of it as is needed, is there.
    fn next_frame(&mut self) -> bool {
        let rest = &mut self.bytes[self.cleared..self.filled];
        let Some(size) =
            rest.get(3..HEAD).map(|size| u32::from_be_bytes([size[0], size[1], size[2], size[3]]) as usize)
        else {
            return false;
        };
        let kind = rest[0];
        match kind {
            METHOD | PROPERTIES if size <= LARGEST => {
                // And the octet that ends every frame.
                if rest.len() <= HEAD + size {
                    return false;
                }
                let payload = Payload(&mut rest[HEAD..HEAD + size]);
                let _ = if kind == METHOD { payload.method() } else { payload.properties() };
                self.cleared += HEAD + size + 1;
            }
            BODY | HEARTBEAT => self.passing = HEAD + size + 1,
            // No AMQP 0-9-1, or none that we know: lapin says what it is.
            _ => self.passing = usize::MAX,
        }
        true
    }
}

/// What is left of a frame. `None` where it ends too early or cannot be understood: then the rest stays as it is.
struct Payload<'a>(&'a mut [u8]);

impl Payload<'_> {
    fn method(mut self) -> Option<()> {
        if self.u16()? != BASIC {
            return Some(());
        }
        match self.u16()? {
            RETURN => {
                self.skip(2)?;
                self.text()?;
            }
            DELIVER => {
                self.text()?;
                self.skip(9)?;
            }
            GET_OK => self.skip(9)?,
            _ => return Some(()),
        }
        // Exchange and routing key.
        self.text()?;
        self.text()
    }

    fn properties(mut self) -> Option<()> {
        self.skip(12)?; // class, weight, size of the body
        let flags = self.u16()?;
        for property in 0..14 {
            if flags & (1 << (15 - property)) == 0 {
                continue;
            }
            match property {
                2 => self.table(DEEPEST)?,
                3 | 4 => self.skip(1)?, // delivery mode, priority
                9 => self.skip(8)?,     // timestamp
                _ => self.text()?,
            }
        }
        Some(())
    }

    fn table(&mut self, depth: usize) -> Option<()> {
        let mut table = self.block()?;
        while !table.0.is_empty() {
            table.text()?;
            table.value(depth.checked_sub(1)?)?;
        }
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        let kind = self.cut(1)?[0];
        match kind {
            b'V' => Some(()),
            b't' | b'b' | b'B' => self.skip(1),
            b's' | b'u' => self.skip(2),
            b'I' | b'i' | b'f' => self.skip(4),
            b'D' => self.skip(5),
            b'l' | b'L' | b'd' | b'T' => self.skip(8),
            b'S' | b'x' => self.block().map(drop),
            b'F' => self.table(depth),
            b'A' => {
                let mut list = self.block()?;
                while !list.0.is_empty() {
                    list.value(depth.checked_sub(1)?)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// A short string.
    fn text(&mut self) -> Option<()> {
        let size = self.cut(1)?[0].into();
        make_legible(self.cut(size)?);
        Some(())
    }

    /// Whatever has its size in front of it, in four octets.
    fn block(&mut self) -> Option<Payload<'_>> {
        let size = self.cut(4)?;
        let size = u32::from_be_bytes([size[0], size[1], size[2], size[3]]) as usize;
        self.cut(size).map(Payload)
    }

    fn u16(&mut self) -> Option<u16> {
        let number = self.cut(2)?;
        Some(u16::from_be_bytes([number[0], number[1]]))
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.cut(count).map(drop)
    }

    fn cut(&mut self, count: usize) -> Option<&mut [u8]> {
        let (first, rest) = mem::take(&mut self.0).split_at_mut_checked(count)?;
        self.0 = rest;
        Some(first)
    }
}

fn make_legible(mut bytes: &mut [u8]) {
    while let Err(e) = std::str::from_utf8(bytes) {
        let from = e.valid_up_to();
        let to = e.error_len().map_or(bytes.len(), |count| from + count);
        bytes[from..to].fill(b'?');
        bytes = &mut bytes[to..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![kind, 0, 1];
        frame.extend((payload.len() as u32).to_be_bytes());
        frame.extend(payload);
        frame.push(0xCE);
        frame
    }

    fn short(bytes: &[u8]) -> Vec<u8> {
        [&[bytes.len() as u8], bytes].concat()
    }

    fn sized(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
    }

    /// With a content type, headers, a delivery mode, a correlation id, a timestamp and a type.
    fn properties(text: &[u8], key: &[u8], long: &[u8]) -> Vec<u8> {
        let inner = [short(key), b"t\x01".to_vec()].concat();
        let list = [[b"F".to_vec(), sized(&inner)].concat(), b"I\x00\x00\xFF\xFF".to_vec()].concat();
        let table = [short(key), b"S".to_vec(), sized(long), short(b"list"), b"A".to_vec(), sized(&list)].concat();
        let flags: u16 = 1 << 15 | 1 << 13 | 1 << 12 | 1 << 10 | 1 << 6 | 1 << 5;
        [
            b"\x00\x3C\x00\x00\x00\x00\x00\x00\x00\x00\xFF\xFE".to_vec(),
            flags.to_be_bytes().to_vec(),
            short(text),
            sized(&table),
            vec![2],
            short(text),
            vec![0xFF; 8],
            short(text),
        ]
        .concat()
    }

    fn deliver(text: &[u8]) -> Vec<u8> {
        [b"\x00\x3C\x00\x3C".to_vec(), short(b"tag"), vec![0xFF; 9], short(text), short(text)].concat()
    }

    /// What lapin reads of what is sent in pieces of these sizes.
    fn read(sent: &[u8], pieces: &[usize]) -> Vec<u8> {
        let (mut frames, mut got, mut sent) = (Frames::default(), Vec::new(), sent);
        let mut pieces = pieces.iter().cycle();
        while !sent.is_empty() {
            let count = (*pieces.next().unwrap()).min(sent.len());
            frames.room()[..count].copy_from_slice(&sent[..count]);
            frames.add(count);
            sent = &sent[count..];
            drain(&mut frames, &mut got);
        }
        frames.end();
        drain(&mut frames, &mut got);
        got
    }

    fn drain(frames: &mut Frames, got: &mut Vec<u8>) {
        let mut buf = [0; 10];
        loop {
            match frames.take(&mut buf) {
                0 => return,
                count => got.extend(&buf[..count]),
            }
        }
    }

    #[test]
    fn what_nobody_can_read_becomes_question_marks_and_bytes_stay() {
        let (bad, good, bytes) = (b"caf\xE9 \xF0\x9F", "caf? ??".as_bytes(), b"\xFF\xFE");
        let sent = [frame(1, &deliver(bad)), frame(2, &properties(bad, bad, bytes)), frame(3, bad)].concat();
        let wanted = [frame(1, &deliver(good)), frame(2, &properties(good, good, bytes)), frame(3, bad)].concat();
        assert_eq!(read(&sent, &[CHUNK]), wanted);
        assert_eq!(read(&sent, &[1]), wanted);
    }

    #[test]
    fn what_is_no_amqp_passes() {
        assert_eq!(
            read(b"AMQP\x00\x00\x09\x01and \xFF whatever follows", &[3]),
            b"AMQP\x00\x00\x09\x01and \xFF whatever follows"
        );
    }

    #[test]
    fn tables_without_end_are_left_alone() {
        let mut table = Vec::new();
        for _ in 0..10_000 {
            table = [b"\x01aF".to_vec(), sized(&table)].concat();
        }
        let flags: u16 = 1 << 13;
        let sent = frame(2, &[vec![0; 12], flags.to_be_bytes().to_vec(), sized(&table)].concat());
        assert_eq!(read(&sent, &[CHUNK]), sent);
    }

    proptest! {
        #[test]
        fn text_passes_as_it_is_however_it_is_cut(
            text in "\\PC{0,20}", key in "\\PC{0,10}", body in proptest::collection::vec(any::<u8>(), 0..100),
            pieces in proptest::collection::vec(1..40_usize, 1..5)
        ) {
            let (text, key) = (text.as_bytes(), key.as_bytes());
            let sent = [frame(1, &deliver(text)), frame(2, &properties(text, key, &body)), frame(3, &body), frame(8, b"")];
            let sent = sent.concat().repeat(2);
            prop_assert_eq!(read(&sent, &pieces), sent);
        }

        #[test]
        fn whatever_comes_keeps_its_length(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0..4_u8,
            pieces in proptest::collection::vec(1..100_usize, 1..5)
        ) {
            let sent = [frame(kind, &bytes), bytes].concat();
            prop_assert_eq!(read(&sent, &pieces).len(), sent.len());
        }
    }
}
