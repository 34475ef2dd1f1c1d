//! The one tokio runtime of this process.
//!
//! It is made on first use and never taken down: dropping a runtime waits for its threads, and in a forked
//! child those threads do not exist. A child that needs a runtime makes its own and lets the inherited one be.

use parking_lot::Mutex;
use std::process;
use tokio::runtime::{Builder, Handle, Runtime};

/// Deeply nested headers are parsed recursively; the stack of a runtime thread is only reserved, not used.
const STACK: usize = 16 * 1024 * 1024;

static CURRENT: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// A handle to this process's runtime.
///
/// # Panics
/// When the operating system gives us no thread.
pub fn handle() -> Handle {
    let mut current = CURRENT.lock();
    match *current {
        Some((pid, runtime)) if pid == process::id() => runtime.handle().clone(),
        _ => {
            let runtime: &'static Runtime = Box::leak(Box::new(build()));
            *current = Some((process::id(), runtime));
            runtime.handle().clone()
        }
    }
}

fn build() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("acemq-io")
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .expect("a thread for the acemq-io runtime")
}
