//! What the kit's own test programs share.

pub(crate) mod minimal;
