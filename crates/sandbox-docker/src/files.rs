//! Files by one program in the container and its stdin and stdout, with the rights of the
//! sandbox's user. The engine's archive API is not used: it acts with the daemon's rights.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use sandbox_core::derive::{RunScript, ScriptOutput};
use sandbox_core::{Result, Stream};

use crate::container::Container;
use crate::running::Sink;

#[async_trait]
impl RunScript for Container {
    async fn run_script(
        &self,
        script: &'static str,
        args: Vec<String>,
        input: Vec<Bytes>,
        output: &mut dyn ScriptOutput,
        limit: Duration,
    ) -> Result<i32> {
        self.script(script, args, input, &mut Output(output), limit)
            .await
    }
}

struct Output<'a>(&'a mut dyn ScriptOutput);

impl Sink for Output<'_> {
    async fn ready(&mut self) -> bool {
        self.0.wants_more()
    }

    fn put(&mut self, stream: Stream, bytes: Bytes) {
        self.0.put(stream, bytes);
    }
}
