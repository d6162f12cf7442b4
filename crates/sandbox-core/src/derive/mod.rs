//! The operations derived from the four primitives: one file each.
//!
//! Free functions over `&dyn SandboxBackend`; arguments were checked by [`crate::Sandbox`], which
//! is the one place that chooses between these and a backend's own
//! [`NativeFiles`](crate::NativeFiles).

mod delete;
mod edit;
mod glob;
mod grep;
mod ls;
mod read;
mod transfer;
mod tree;
mod write;

pub use delete::delete;
pub use edit::edit;
pub use glob::glob;
pub use grep::grep;
pub use ls::ls;
pub use read::read;
pub use transfer::{download_to, upload_from};
pub use tree::{download_dir, upload_dir};
pub use write::write;
