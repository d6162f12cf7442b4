//! A process that edits a file in a sandbox of another's: this program again.

use std::process::{Child, Command, ExitCode};

use sandbox_core::{BackendUrl, Client, ErrorKind, SandboxId};
use sandbox_opensandbox::OpenSandbox;

use crate::Site;

/// Tells such a process what to do: `URL ID PATH NAME EDITS`.
const ROLE: &str = "SANDBOX_TEST_EDITOR";

/// Ends with 0 when it has counted the line `NAME 0` of a file up to `edits`, an edit each.
pub(crate) fn start(site: &Site, id: &SandboxId, path: &str, name: &str, edits: u32) -> Child {
    let url = format!("opensandbox://{}", site.address);
    Command::new(std::env::current_exe().unwrap())
        .env(ROLE, format!("{url} {id} {path} {name} {edits}"))
        .env("OPEN_SANDBOX_API_KEY", &site.key)
        .spawn()
        .unwrap()
}

/// What this process is if it is such an editor; `None` for the test program itself.
pub(crate) fn child() -> Option<ExitCode> {
    let role = std::env::var(ROLE).ok()?;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(edit(&role.split(' ').collect::<Vec<_>>()));
    Some(ExitCode::SUCCESS)
}

async fn edit(role: &[&str]) {
    let [url, id, path, name, edits] = role else {
        panic!("{role:?}");
    };
    let url = BackendUrl::parse(url).unwrap();
    let client = Client::new(OpenSandbox::from_url(&url).await.unwrap());
    let sandbox = client.connect(&SandboxId::new(*id)).await.unwrap();
    for n in 0..edits.parse::<u32>().unwrap() {
        let (old, new) = (format!("{name} {n}\n"), format!("{name} {}\n", n + 1));
        // It says so when the other one was in between.
        while let Err(e) = sandbox.edit(*path, &old, &new, false).await {
            assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
        }
    }
}
