//! What the examples share: the parts of `data_analysis`, and the CSV it ships.

pub mod customers;
pub mod data_analysis;

/// What an example or a part of one may fail with: shown to a person, never matched on.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// [`std::result::Result`] with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
