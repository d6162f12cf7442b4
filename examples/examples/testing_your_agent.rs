//! How an agent's author tests an agent: on a mock whose calls fail on a script and are recorded.
//! In a project of one's own, each function below would be a `#[tokio::test]`.
//!
//!     cargo run -p sandbox-examples --example testing_your_agent

use std::time::Duration;

use sandbox::{Client, Command, ErrorKind, Operation, Sandbox, SandboxSpec, Status};
use sandbox_mock::{Faults, MockConfig, MockProvider};

/// The agent under test: it counts words, asks again when the sandbox was not reached, and goes
/// on in a new sandbox when it lost its own.
async fn count_words(client: &Client, text: &str) -> Result<String, String> {
    let mut sandbox = None;
    for _ in 0..3 {
        match attempt(client, &mut sandbox, text).await {
            Ok(answer) => return Ok(answer),
            Err(e) if e.kind() == ErrorKind::SandboxGone => sandbox = None,
            Err(e) if e.may_retry(Operation::Write) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    Err("gave up after three attempts".to_owned())
}

async fn attempt(
    client: &Client,
    kept: &mut Option<Sandbox>,
    text: &str,
) -> sandbox::Result<String> {
    let sandbox = match kept {
        Some(sandbox) => sandbox,
        None => kept.insert(client.create(SandboxSpec::new()).await?),
    };
    sandbox.write("/workspace/text", text.to_owned()).await?;
    let command = Command::shell("wc -w </workspace/text").timeout(Duration::from_secs(5));
    let result = sandbox.execute(command).await?;
    match &result.status {
        // Counting twice is safe, so a lost command is simply run again.
        Status::Lost(why) => Err(sandbox::Error::new(ErrorKind::SandboxGone, why.clone())),
        _ => Ok(result.into_result()?.output().trim().to_owned()),
    }
}

fn mock(faults: Faults) -> (Client, MockProvider) {
    let provider = MockProvider::with_faults(MockConfig::new(), faults);
    (Client::new(provider.clone()), provider)
}

async fn it_counts() {
    let (client, provider) = mock(Faults::new());
    assert_eq!(
        count_words(&client, "three small words").await.as_deref(),
        Ok("3")
    );
    // And it does so without waste.
    assert_eq!(provider.record().count(Operation::Create), 1);
    assert_eq!(provider.record().count(Operation::Execute), 1);
}

async fn it_survives_an_unreachable_backend() {
    let faults = Faults::new().fail(Operation::Create, 1..=2, ErrorKind::Unavailable);
    let (client, provider) = mock(faults);
    assert_eq!(count_words(&client, "a b").await.as_deref(), Ok("2"));
    assert_eq!(provider.record().count(Operation::Create), 3);
}

async fn it_moves_on_when_its_sandbox_is_lost() {
    let (client, provider) = mock(Faults::new().lose_sandbox(Operation::Execute, 1));
    assert_eq!(count_words(&client, "a b c d").await.as_deref(), Ok("4"));
    assert_eq!(provider.record().count(Operation::Create), 2);
}

async fn it_gives_up_and_does_not_hammer() {
    let (client, provider) =
        mock(Faults::new().fail(Operation::Create, 1.., ErrorKind::Unavailable));
    assert!(
        count_words(&client, "a")
            .await
            .is_err_and(|e| e.contains("gave up"))
    );
    assert_eq!(provider.record().count(Operation::Create), 3);
    // What no retry helps with is not retried.
    let (client, provider) =
        mock(Faults::new().fail(Operation::Create, 1.., ErrorKind::Unauthorized));
    assert!(count_words(&client, "a").await.is_err());
    assert_eq!(provider.record().count(Operation::Create), 1);
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example's output")]
async fn main() {
    it_counts().await;
    println!("it counts");
    it_survives_an_unreachable_backend().await;
    println!("it survives an unreachable backend");
    it_moves_on_when_its_sandbox_is_lost().await;
    println!("it moves on when its sandbox is lost");
    it_gives_up_and_does_not_hammer().await;
    println!("it gives up and does not hammer");
}
