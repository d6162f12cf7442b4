//! The kit over the targets of this repository.

/// The very example that is the template for a backend of one's own.
#[path = "../../examples/examples/custom_backend/provider.rs"]
mod custom_backend;

use std::process::ExitCode;

use custom_backend::VendorProvider;
use sandbox_conformance::{OWN_SKIPS, Profile, Target};
use sandbox_core::Client;
use sandbox_mock::{MockConfig, MockProvider};

fn main() -> ExitCode {
    let mock = |name, config: MockConfig| {
        Target::new(name, move || {
            let config = config.clone();
            async move { Ok(Client::new(MockProvider::with(config))) }
        })
    };
    let plain = MockConfig::new;
    let targets = [
        mock("mock", plain()),
        mock("mock-uid1000", plain().user("1000")),
        mock("mock-derived", plain().hide_families()),
        mock("mock-derived-uid1000", plain().hide_families().user("1000")),
        Target::new("minimal", async || {
            Ok(Client::new(VendorProvider::new().await?))
        })
        .profile(Profile::Minimal),
    ];
    sandbox_conformance::main(targets.into_iter().map(|t| t.skips(OWN_SKIPS)).collect())
}
