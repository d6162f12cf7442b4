//! The operations derived from the four primitives: one file each.
//!
//! Free functions over `&dyn SandboxBackend`; arguments were checked by [`crate::Sandbox`], which
//! is the one place that chooses between these and a backend's own
//! [`NativeFiles`](crate::NativeFiles). Who implements those finds the parts that need no sandbox
//! here too, so that both ways answer alike: [`page`], [`apply`], [`Pattern`],
//! [`matching_lines`], [`pack_tree`], [`unpack_tree`].

mod archive;
mod by_script;
mod delete;
mod edit;
mod glob;
mod grep;
mod install;
mod ls;
mod pattern;
mod processes;
mod read;
mod script;
mod search;
#[cfg(test)]
mod tests;
mod transfer;
mod tree;
mod write;

pub use archive::{pack_tree, unpack_tree};
pub use by_script::{RunScript, ScriptOutput, download_by_script, upload_by_script};
pub use delete::delete;
pub use edit::{apply, edit};
pub use glob::glob;
pub use grep::{grep, matching_lines};
pub use ls::ls;
pub use pattern::Pattern;
pub use processes::ShellProcesses;
pub use read::{has_binary_name, is_binary, page, read};
pub use transfer::{download_to, upload_from};
pub use tree::{download_dir, upload_dir};
pub use write::write;
