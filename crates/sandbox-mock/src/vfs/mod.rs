//! The virtual file system of a sandbox: an inode tree in memory with modes, owners, links and one
//! budget, checked as Linux checks a process without capabilities.

mod error;
mod image;
mod node;
mod ops;
mod table;
mod view;

pub(crate) use error::{FsError, FsResult};
pub(crate) use image::{Account, Accounts, HOSTNAME, base};
pub(crate) use node::{Cred, FileKind, Stat};
pub(crate) use ops::{How, Leaf, Vfs};
pub(crate) use table::{Last, Table};
pub(crate) use view::View;
