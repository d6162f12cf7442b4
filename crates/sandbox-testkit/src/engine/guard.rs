//! What ends with the program that began it, however that one ends.

use std::collections::BTreeMap;
use std::sync::{Mutex, Once, PoisonError};

use tokio::signal::unix::{SignalKind, signal};

type Ending = Box<dyn FnOnce() + Send>;

/// What has not ended yet, with what to do, in the order in which it began.
static LEFT: Mutex<BTreeMap<u64, Ending>> = Mutex::new(BTreeMap::new());

/// Does something when it is dropped, or when SIGINT or SIGTERM ends the program.
#[derive(Debug)]
pub(super) struct Guard(u64);

impl Guard {
    pub(super) fn new(ending: impl FnOnce() + Send + 'static) -> Self {
        static LISTENING: Once = Once::new();
        LISTENING.call_once(|| {
            std::thread::spawn(end_on_signal);
        });
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        let id = left.last_key_value().map_or(0, |(last, _)| last + 1);
        left.insert(id, Box::new(ending));
        Self(id)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let ending = LEFT
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.0);
        if let Some(ending) = ending {
            ending();
        }
    }
}

/// Waits for a signal, ends all that is left, and then the program.
fn end_on_signal() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let number = match runtime.map(|runtime| runtime.block_on(signalled())) {
        Ok(Ok(number)) => number,
        Ok(Err(e)) | Err(e) => {
            eprintln!("signals can't be received, so containers may be left: {e}");
            return;
        }
    };
    // Kept until the end, so that nothing begins any more.
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    // The last that began first: it may need the others.
    while let Some((_, ending)) = left.pop_last() {
        ending();
    }
    std::process::exit(128 + number);
}

async fn signalled() -> std::io::Result<i32> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
    })
}
