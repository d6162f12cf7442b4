//! What happens where a backend can't be had.

use libtest_mimic::{Completion, Failed, Trial};

/// Whether a run without any of `names`, a target's or a backend's, is a failure: where
/// `SANDBOX_REQUIRE` names one, and under `CI`.
pub fn is_required(names: &[&str]) -> bool {
    let required = std::env::var("SANDBOX_REQUIRE").unwrap_or_default();
    std::env::var_os("CI").is_some() || required.split(',').any(|r| names.contains(&r.trim()))
}

/// The test `NAME::is_available` for a backend that can't run here, `NAME` being the first of
/// `names`: it fails where one of them [is required](is_required), else it is a skip that is seen.
pub fn unavailable(names: &[&str], why: &str) -> Trial {
    let name = format!("{}::is_available", names.first().unwrap_or(&"backend"));
    let why = why.to_owned();
    if is_required(names) {
        return Trial::test(name, move || Err(Failed::from(why)));
    }
    Trial::ignorable_test(name, move || Ok(Completion::ignored_with(why)))
        // A runner that takes a skip decided while running for a pass has to know it beforehand.
        .with_ignored_flag(std::env::var_os("NEXTEST").is_some())
}
