//! Stand-ins for the APIs of language models.
//!
//! A [`ChatServer`] listens on the loopback and speaks one [`Wire`]. What it answers is up to a
//! [`Script`], which sees every conversation in one neutral form, whatever the wire.

mod server;
mod wire;

use serde_json::Value;

pub use server::{ChatServer, Request};
pub use wire::Wire;

/// What a client sent, in one form for all wires.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The model asked for.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// What was said, in order.
    pub messages: Vec<Message>,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// From the user.
    User(String),
    /// From the model.
    Model(String),
    /// A tool call of the model.
    Call {
        /// The tool.
        name: String,
        /// Its arguments.
        args: Value,
    },
    /// What a tool answered.
    Answer(String),
}

/// What the stand-in says next.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Plain text.
    Text(String),
    /// A tool call.
    Call {
        /// The tool.
        name: String,
        /// Its arguments.
        args: Value,
    },
    /// An HTTP error, with seconds to wait if given.
    Status(u16, Option<u64>),
    /// A body of one's own with status 200: for answers that no API should give.
    Raw(String),
}

impl Reply {
    /// A tool call.
    pub fn call(name: impl Into<String>, args: Value) -> Self {
        Self::Call {
            name: name.into(),
            args,
        }
    }
}

/// What a stand-in says to a conversation.
pub trait Script: Send + 'static {
    /// The next reply.
    fn reply(&mut self, conversation: &Conversation) -> Reply;
}

impl<F: FnMut(&Conversation) -> Reply + Send + 'static> Script for F {
    fn reply(&mut self, conversation: &Conversation) -> Reply {
        self(conversation)
    }
}
