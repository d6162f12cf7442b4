//! The cases, a file for each group.

use sandbox_core::{ErrorKind, Result};

use crate::Case;

/// Declares the cases of a group: their names, and what they need. The functions stand below.
macro_rules! cases {
    ($group:literal: $( $name:ident $( $flag:ident $( ( $arg:expr ) )? )* ; )+) => {
        /// The cases of this group.
        pub(super) fn list() -> Vec<$crate::Case> {
            vec![ $(
                $crate::Case::new($group, stringify!($name), |cx| Box::pin($name(cx)))
                    $( .$flag( $( $arg )? ) )*
            ),+ ]
        }
    };
}

mod cancel;
mod capabilities;
mod delete;
mod download;
mod edit;
mod env;
mod errors;
mod execute;
mod glob;
mod grep;
mod isolation;
mod lease;
mod lifecycle;
mod limits;
mod ls;
mod needs;
mod output;
mod ownership;
mod paths;
mod processes;
mod read;
mod snapshots;
mod spec;
mod stdin;
mod stream;
mod timeout;
mod tree;
mod upload;
mod write;

/// Every case of the kit.
pub fn all() -> Vec<Case> {
    [
        execute::list(),
        output::list(),
        stdin::list(),
        env::list(),
        timeout::list(),
        cancel::list(),
        stream::list(),
        processes::list(),
        upload::list(),
        download::list(),
        tree::list(),
        ls::list(),
        read::list(),
        write::list(),
        edit::list(),
        glob::list(),
        grep::list(),
        delete::list(),
        paths::list(),
        errors::list(),
        limits::list(),
        capabilities::list(),
        spec::list(),
        lifecycle::list(),
        ownership::list(),
        lease::list(),
        snapshots::list(),
        isolation::list(),
    ]
    .concat()
}

/// What came of each file of a batch.
fn kinds<T>(results: &[Result<T>]) -> Vec<Option<ErrorKind>> {
    results
        .iter()
        .map(|r| r.as_ref().err().map(sandbox_core::Error::kind))
        .collect()
}

/// `n` lines of text.
fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(|i| line(i) + "\n").collect()
}

/// Numbers that look random and are the same in every run (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        usize::try_from((self.next() >> 16) % n as u64).unwrap_or(0)
    }
}

/// `n` bytes that look random.
fn random_bytes(seed: u64, n: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.next().to_be_bytes()[0]).collect()
}
