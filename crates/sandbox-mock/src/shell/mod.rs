//! Commands: what runs them, what holds them, what ends them.

mod cd;
mod engine;
mod guard;
mod leader;
mod limits;
mod pool;
mod run;
mod sink;

pub(crate) use engine::{Launch, Session, command_names, start};
pub(crate) use run::{Ended, Run, StopOnDrop, Why};
pub(crate) use sink::Sink;
