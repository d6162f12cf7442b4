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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{OWN_SKIPS, Profile};

    #[test]
    fn names_are_sentences_and_each_is_one_case() {
        let cases = all();
        let names: BTreeSet<String> = cases.iter().map(Case::full_name).collect();
        assert_eq!(names.len(), cases.len(), "two cases have one name");
        for name in names {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c);
            assert!(name.chars().all(plain), "{name}");
        }
        let core = cases.iter().filter(|c| c.profile <= Profile::Core).count();
        assert!(core >= 150, "{core} cases of the core profile");
    }

    #[test]
    fn the_list_of_skips_names_capabilities_and_cases_that_exist() {
        for skip in OWN_SKIPS {
            let known = all().iter().any(|c| match skip.what {
                crate::SkipWhat::Case(name) => c.full_name() == name,
                crate::SkipWhat::Capability(name) => c.need.is_some_and(|n| n.name == name),
            });
            assert!(known && !skip.reason.is_empty(), "{skip:?}");
        }
    }
}
