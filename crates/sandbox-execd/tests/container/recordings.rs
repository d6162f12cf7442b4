//! A real daemon's recorded traffic, sent to this one.
//!
//! Each request is sent again, in the recorded order, to the daemon in a container, and the answer
//! compared with the recorded one; `compare` says what is left out. The stock profile is sent the
//! requests with the `/proxy/44772` they were recorded with, the default profile without.

use std::collections::BTreeMap;
use std::sync::{Once, OnceLock};

use libtest_mimic::{Failed, Trial};

use crate::compare::canonical;
use crate::container::Container;
use crate::differences::expected;
use crate::http::Answer;
use crate::replay::{Recorded, replay};

/// What is sent to one container, in this order.
struct Run {
    profile: &'static str,
    image: &'static str,
    groups: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    answers: OnceLock<Result<Answers, String>>,
}

type Answers = BTreeMap<String, Result<Answer, String>>;

/// The longest: for itself, beside the others.
const COMMANDS: &[&str] = &["command"];
const MAIN: &[&str] = &["background", "interrupt", "files", "dirs", "direct", "misc"];

const fn run(
    profile: &'static str,
    image: &'static str,
    groups: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
) -> Run {
    Run {
        profile,
        image,
        groups,
        variables,
        answers: OnceLock::new(),
    }
}

/// The second that streams are held open for is a test of its own: in it lie most of the time, and
/// no word of the answer. Runs are not lost here; that is a test of its own, too.
static RUNS: [Run; 8] = [
    run("stock", "sandbox-python", COMMANDS, STOCK),
    run("stock", "sandbox-python", MAIN, STOCK),
    run("stock", "sandbox-busybox", &["busybox"], STOCK),
    run("stock", "sandbox-python", &["token"], STOCK_TOKEN),
    run("default", "sandbox-python", COMMANDS, &[]),
    run("default", "sandbox-python", MAIN, &[]),
    run("default", "sandbox-busybox", &["busybox"], &[]),
    run("default", "sandbox-python", &["token"], &[TOKEN]),
];
const TOKEN: (&str, &str) = ("EXECD_ACCESS_TOKEN", "s3cret");
const STOCK: &[(&str, &str)] = &[
    ("EXECD_PROFILE", "stock"),
    ("EXECD_API_GRACE_SHUTDOWN", "20ms"),
    ("EXECD_STOCK_LOSE_ONE_OF", "0"),
];
const STOCK_TOKEN: &[(&str, &str)] = &[STOCK[0], STOCK[1], STOCK[2], TOKEN];

impl Run {
    fn recorded(&self) -> Vec<Recorded> {
        self.groups
            .iter()
            .flat_map(|it| Recorded::load(it))
            .collect()
    }

    fn answers(&self) -> Result<&Answers, &String> {
        self.answers
            .get_or_init(|| {
                let container = Container::start(self.image, self.variables)?;
                if [COMMANDS, MAIN].contains(&self.groups) {
                    // What the recorder had made before it began.
                    container.exec("mkdir -p /tmp/f")?;
                }
                Ok(replay(
                    container.address,
                    &self.recorded(),
                    self.profile == "default",
                ))
            })
            .as_ref()
    }

    /// Sends everything recorded, to all containers at once, when the first answer is asked for.
    fn begin_all() {
        static BEGUN: Once = Once::new();
        BEGUN.call_once(|| {
            for run in &RUNS {
                std::thread::spawn(|| run.answers().is_ok());
            }
        });
    }

    fn check(&self, recorded: &Recorded) -> Result<(), Failed> {
        Self::begin_all();
        let name = recorded.name();
        let answer = self
            .answers()?
            .get(name)
            .ok_or("it was not sent")?
            .as_ref()?;
        if recorded.is_set_up() {
            return if answer.status == 200 {
                Ok(())
            } else {
                Err(canonical(name, answer).into())
            };
        }
        let wanted = canonical(name, &expected(self.profile, recorded));
        let own = canonical(name, answer);
        if let Some(length) = recorded.shortened() {
            return check_beginning(&wanted, length, &own, answer.body.len());
        }
        if own == wanted {
            return Ok(());
        }
        Err(format!("expected\n{}\nbut it was\n{}", short(&wanted), short(&own)).into())
    }
}

/// For an answer of which the beginning was recorded, and the length. What may differ in length
/// are a few digits of times.
fn check_beginning(
    wanted: &str,
    length: usize,
    own: &str,
    own_length: usize,
) -> Result<(), Failed> {
    let wanted: Vec<&str> = wanted
        .lines()
        .filter(|it| !it.starts_with("not JSON"))
        .collect();
    let same = own.lines().zip(&wanted).all(|(own, wanted)| own == *wanted);
    if same && own_length.abs_diff(length) < 200 {
        return Ok(());
    }
    Err(format!(
        "expected {length} bytes\n{}\nbut it was {own_length} bytes\n{}",
        short(&wanted.join("\n")),
        short(own)
    )
    .into())
}

fn short(text: &str) -> String {
    text.chars().take(4000).collect()
}

/// One test for each request and profile.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for run in &RUNS {
        for recorded in run.recorded() {
            let name = format!("{}::{}", run.profile, recorded.name());
            trials.push(Trial::test(name, move || run.check(&recorded)));
        }
    }
    trials
}
