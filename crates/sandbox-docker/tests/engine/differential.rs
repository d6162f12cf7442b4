//! The mock and a container answer alike: sequences of file operations and commands that proptest
//! makes, with hostile names and bytes, run on both.
//!
//! Always the same sequences: `SANDBOX_TEST_SEED` makes others, `SANDBOX_TEST_SEQUENCES` more of them.
//! What differs on purpose is left out of [`sequences`] and stands in the mock's `docs/fidelity.md`.

use std::cell::Cell;
use std::fmt::Debug;
use std::time::Duration;

use proptest::prelude::{Just, Strategy, any};
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest::{collection, option, prop_oneof};
use sandbox_core::{
    Client, Command, GrepOptions, ReadOptions, Result, Sandbox, SandboxSpec, files,
};
use sandbox_mock::{MockConfig, MockProvider};
use tokio::runtime::{Builder, Runtime};

use crate::support::{GNU, client};

/// How many sequences there are for each user, unless the variable says otherwise.
const SEQUENCES: u64 = 50;

/// Names of files and directories. All are made in one directory, so that they meet.
const NAMES: &[&str] = &[
    "a",
    "b",
    "c.txt",
    " lead",
    "trail ",
    "sp ace",
    "q'uote",
    "d\"q",
    "$HOME",
    "$(id)",
    "`id`",
    "-n",
    "--help",
    "-rf",
    "*",
    "[a]",
    "?",
    "back\\slash",
    "\u{fc}n\u{ef}",
    "\u{65e5}\u{672c}",
    "a:12:b",
    "%s",
    "#x",
    "~",
    "&",
    ";",
    "|",
    "{a,b}",
    "!",
    "x=1",
    "...",
    ".hidden",
    "e\u{301}",
    "<",
    "\u{1f600}",
];

/// Names that the mock's shell can't say: only the file operations get them.
const CONTROLS: &[&str] = &[
    "new\nline",
    "tab\there",
    "cr\rthere",
    "\u{1b}[31m",
    "a",
    "b",
];

/// What is no path, or one that says the same in more words.
const ODD_PATHS: &[&str] = &[
    "",
    "relative",
    "/../etc",
    "/a\0b",
    "//",
    "/./",
    "/nowhere/at/all",
];

const TEXTS: &[&str] = &[
    "",
    "x",
    "\n",
    "a\nb\n",
    "no end",
    "a\r\nb\r\nc\r\n",
    "mixed\r\nends\nhere",
    "\u{feff}first\n",
    "foo foo foo",
    "aaaa",
    "$1 \\1 & `id` $(id)\n",
    "EOF\nPY\n'\"\n",
    "{0} %s %d\n",
    "-v\n--pre=sh\n",
    "caf\u{e9} \u{1f600}\n",
    "needle\nin\nneedle",
    "\n\n\n",
    "  indented\n\t\ttabs\n",
];

const BYTES: &[&[u8]] = &[
    b"\xff\xfe\x00",
    b"\0",
    b"a\0needle\n",
    b"caf\xe9\nx=1\n",
    b"\xf0\x9f\x98",
    b"x\n\xc3",
    b"\r\r\n\n",
    b"\x1b[31mred\x1b[0m\n",
];

/// What `edit` looks for and puts in place.
const OLD: &[&str] = &[
    "a", "aa", "foo", "a\nb", "x", "", "zz", "\n", "needle", "$1", "\r\n",
];
const NEW: &[&str] = &["b", "", "x\ny", "$& $1 \\1 &", "\u{e9}", "foo"];

/// What `grep` looks for.
const SOUGHT: &[&str] = &[
    "a", "needle", "-v", "--pre=sh", "$1", "foo f", "\u{e9}", ".", "zz", "[a]",
];

const PATTERNS: &[&str] = &[
    "*",
    "**/*",
    "**",
    "*.txt",
    "?",
    "[a]*",
    "[!a]*",
    "[^a]*",
    "{a,b}",
    "{a,{b,c.txt}}",
    ".*",
    "*/*",
    "**/a",
    "/a",
    "a/**",
    "../*",
    "new*",
    "-*",
    "[",
    "\\*",
    "*e",
    "",
    "x=[0-9]",
];

/// Commands, with one path or two as arguments. Their output depends on nothing else, the exit code
/// of a failed redirection least: shells have each their own.
const COMMANDS: &[&str] = &[
    r#"cat -- "$1""#,
    r#"[ -d "$1" ] || wc -c <"$1" || echo failed"#,
    r#"wc -l -- "$1""#,
    r#"od -An -tx1 <"$1" | head -n 5 || echo failed"#,
    r#"sha256sum <"$1" || echo failed"#,
    r#"sort -- "$1""#,
    r#"tr a-c x <"$1" || echo failed"#,
    r#"head -n 1 -- "$1""#,
    r#"tail -c 3 -- "$1""#,
    r#"sed 's/a/[&]/g' <"$1" || echo failed"#,
    r#"grep -c -F -e a -- "$1""#,
    r#"cut -c 1-3 <"$1" || echo failed"#,
    r#"printf 'more\n' >>"$1" || echo failed"#,
    r#"true >"$1" || echo failed"#,
    r#"printf '%s' "$1" | wc -c"#,
    r#"touch -- "$1""#,
    r#"mkdir -- "$1""#,
    r#"mkdir -p -- "$1/in/it""#,
    r#"rmdir -- "$1""#,
    r#"rm -- "$1""#,
    r#"rm -rf -- "$1""#,
    r#"cp -- "$1" "$2""#,
    r#"case $2/ in "$1"/*) ;; *) cp -r -- "$1" "$2" ;; esac"#,
    r#"mv -- "$1" "$2""#,
    r#"ln -- "$1" "$2""#,
    r#"[ ! -e "$1" ] || ln -s -- "$1" "$2""#,
    r#"ln -s -- no/such "$2""#,
    r#"readlink -- "$1""#,
    r#"chmod 000 -- "$1""#,
    r#"chmod 755 -- "$1""#,
    r#"chmod 600 -- "$1""#,
    r#"chmod 500 -- "$1""#,
    r#"stat -c '%a %F %h' -- "$1""#,
    r#"ls -A -- "$1" | wc -l"#,
    r#"test -e "$1"; echo $?; test -L "$1"; echo $?; test -d "$1"; echo $?; test -r "$1"; echo $?"#,
    r#"[ -s "$1" ] && echo some || echo none"#,
    r#"cd -- "$1" 2>/dev/null && pwd || echo failed"#,
    r#"cmp -- "$1" "$2" >/dev/null 2>&1; echo $?"#,
    r#"for f in "$1"/*; do printf '%s\n' "$f"; done"#,
    r#"case $1 in */a*) echo yes;; *) echo no;; esac; echo "${1#/*/}" "${2%/*}""#,
    r#"mkfifo "$1""#,
    r#"basename -- "$1"; dirname -- "$1""#,
    r#"find "$1" -type f | wc -l"#,
    r#"tar -cf - -C "$1" . | tar -tf - | sort"#,
];

/// What is left of a sequence, as far as all can say it.
const LEFT: &str = r#"exec 2>/dev/null; cd "$1" || exit; find . | LC_ALL=C sort
find . -type f -exec sh -c 'for f; do printf "%s " "$f"; cksum <"$f" || echo; done' sh {} + | LC_ALL=C sort"#;

/// One step of a sequence. Paths are relative to its own directory.
#[derive(Clone, Debug)]
enum Action {
    Execute(&'static str, String, String),
    Upload(Vec<(String, Vec<u8>)>),
    Download(Vec<String>),
    Read(String, u64, u64),
    Write(String, String),
    CreateNew(String, String),
    Edit(String, &'static str, &'static str, bool),
    Ls(String),
    Glob(&'static str, String),
    Grep(&'static str, String, Option<&'static str>, u64),
    Delete(String),
}

/// A path as anyone would write it.
fn plain_path(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let name = move || select(names).prop_map(str::to_owned);
    prop_oneof![
        6 => name().prop_map(|n| format!("/{n}")),
        4 => (name(), name()).prop_map(|(a, b)| format!("/{a}/{b}")),
        1 => (name(), name(), name()).prop_map(|(a, b, c)| format!("/{a}/{b}/{c}")),
        2 => Just(String::new()),
        1 => (200_usize..260).prop_map(|n| format!("/{}", "n".repeat(n))),
    ]
}

fn path(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let odd = select(ODD_PATHS).prop_map(str::to_owned);
    prop_oneof![14 => plain_path(names), 1 => odd]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => select(TEXTS).prop_map(|t| t.as_bytes().to_vec()),
        2 => select(BYTES).prop_map(<[u8]>::to_vec),
        1 => collection::vec(any::<u8>(), 0..64),
        1 => (0_usize..200_000).prop_map(|n| b"line\n".repeat(n / 5)),
    ]
}

fn command() -> impl Strategy<Value = Action> {
    (select(COMMANDS), plain_path(NAMES), plain_path(NAMES))
        .prop_map(|(c, a, b)| Action::Execute(c, a, b))
}

fn file_operation(names: &'static [&'static str]) -> impl Strategy<Value = Action> {
    let path = || path(names);
    let text = || select(TEXTS).prop_map(str::to_owned);
    prop_oneof![
        4 => collection::vec((path(), content()), 1..4).prop_map(Action::Upload),
        2 => collection::vec(path(), 1..4).prop_map(Action::Download),
        2 => (path(), 0_u64..4, 0_u64..4).prop_map(|(p, o, l)| Action::Read(p, o, l)),
        1 => path().prop_map(|p| Action::Read(p, 0, 2000)),
        4 => (path(), text()).prop_map(|(p, t)| Action::Write(p, t)),
        1 => (path(), text()).prop_map(|(p, t)| Action::CreateNew(p, t)),
        3 => (path(), select(OLD), select(NEW), any::<bool>())
            .prop_map(|(p, o, n, all)| Action::Edit(p, o, n, all)),
        2 => path().prop_map(Action::Ls),
        2 => (select(PATTERNS), path()).prop_map(|(g, p)| Action::Glob(g, p)),
        2 => (select(SOUGHT), path(), option::of(select(PATTERNS)), 1_u64..9)
            .prop_map(|(t, p, g, n)| Action::Grep(t, p, g, n)),
        1 => path().prop_map(Action::Delete),
    ]
}

/// Sequences, and whether commands can look at what they leave.
fn sequences() -> impl Strategy<Value = (bool, Vec<Action>)> {
    let mixed = prop_oneof![1 => command(), 2 => file_operation(NAMES)];
    prop_oneof![
        3 => (Just(true), collection::vec(mixed, 4..16)),
        1 => (Just(false), collection::vec(file_operation(CONTROLS), 4..16)),
    ]
}

/// The same user on both sides.
struct Pair {
    mock: Sandbox,
    container: Sandbox,
}

impl Pair {
    async fn new(user: &str) -> Self {
        let mock = Client::new(MockProvider::with(MockConfig::new().user(user)));
        Self {
            mock: mock.create(SandboxSpec::new()).await.unwrap(),
            container: client(GNU, user)
                .await
                .create(SandboxSpec::new())
                .await
                .unwrap(),
        }
    }

    /// Runs a sequence in a directory of its own. The first difference is the error.
    async fn compare(
        &self,
        (look, actions): (bool, &[Action]),
        dir: &str,
    ) -> std::result::Result<(), String> {
        for sandbox in [&self.mock, &self.container] {
            let made = sandbox.execute(Command::new("mkdir").arg(dir)).await;
            assert!(made.unwrap().success());
        }
        for action in actions {
            let (mock, container) = tokio::join!(
                act(&self.mock, action, dir),
                act(&self.container, action, dir)
            );
            if mock != container {
                return Err(format!(
                    "{action:?}\n  mock:      {mock}\n  container: {container}"
                ));
            }
        }
        let left = async |sandbox: &Sandbox| {
            let command = shell(LEFT, [dir.to_owned()]).cwd("/");
            plain(sandbox.execute(command).await.map(|run| run.stdout))
        };
        let (mock, container) = tokio::join!(left(&self.mock), left(&self.container));
        if look && mock != container {
            return Err(format!(
                "what is left\n  mock:\n{mock}\n  container:\n{container}"
            ));
        }
        for sandbox in [&self.mock, &self.container] {
            let clean = shell("chmod -R u+rwx \"$1\"; rm -rf \"$1\"", [dir.to_owned()]);
            let _ = sandbox.execute(clean).await;
        }
        Ok(())
    }
}

/// What a result says, without what may differ: of an error its kind.
fn plain<T: Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(e) => format!("error {}", e.kind()),
    }
}

fn shell(text: &str, args: impl IntoIterator<Item = String>) -> Command {
    Command::new("sh").args(["-c", text, "sh"]).args(args)
}

async fn act(sandbox: &Sandbox, action: &Action, dir: &str) -> String {
    let at = |path: &String| {
        if path == "relative" {
            path.clone()
        } else {
            format!("{dir}{path}")
        }
    };
    match action {
        Action::Execute(text, a, b) => {
            let command = shell(text, [at(a), at(b)])
                .cwd("/")
                .timeout(Duration::from_secs(20));
            let run = sandbox.execute(command).await;
            plain(run.map(|r| (r.status, r.stdout)))
        }
        Action::Upload(files) => {
            let files = files.iter().map(|(p, c)| (at(p), c.clone()));
            let all = sandbox.upload_files(files).await;
            all.into_iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        Action::Download(paths) => {
            let all = sandbox.download_files(paths.iter().map(at)).await;
            all.into_iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        Action::Read(p, offset, limit) => {
            plain(sandbox.read(at(p), ReadOptions::new(*offset, *limit)).await)
        }
        Action::Write(p, text) => plain(sandbox.write(at(p), text.clone()).await),
        Action::CreateNew(p, text) => plain(sandbox.create_new(at(p), text.clone()).await),
        Action::Edit(p, old, new, all) => plain(sandbox.edit(at(p), old, new, *all).await),
        Action::Ls(p) => plain(sandbox.ls(at(p)).await.map(|listing| {
            // A directory's size is the file system's own business.
            let sized = |e: &files::Entry| (e.kind != files::EntryKind::Dir).then_some(e.size);
            let entries = listing.entries.iter();
            let entries: Vec<_> = entries.map(|e| (&e.path, e.kind, sized(e))).collect();
            format!("{entries:?} {:?}", listing.gaps)
        })),
        Action::Glob(pattern, p) => plain(sandbox.glob(pattern, at(p)).await),
        Action::Grep(text, p, glob, max) => {
            let mut options = GrepOptions::default().max_count(*max);
            options.glob = glob.map(str::to_owned);
            plain(sandbox.grep(text, at(p), options).await)
        }
        Action::Delete(p) => plain(sandbox.delete(at(p)).await),
    }
}

pub(crate) async fn the_mock_answers_as_a_container_of_uid_1000() {
    many("1000").await;
}

pub(crate) async fn the_mock_answers_as_a_container_of_root() {
    many("0").await;
}

/// On a thread of its own: proptest calls from outside of any runtime.
async fn many(user: &'static str) {
    tokio::task::spawn_blocking(move || many_of(user))
        .await
        .unwrap();
}

fn number(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap())
}

fn many_of(user: &str) {
    let seed = number("SANDBOX_TEST_SEED").unwrap_or(0);
    let asked = number("SANDBOX_TEST_SEQUENCES").unwrap_or(SEQUENCES);
    let runtime: Runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let pair = runtime.block_on(Pair::new(user));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    // Other sequences for another user.
    bytes[8] = user.as_bytes()[0];
    let config = Config {
        max_shrink_iters: 300,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    // Shrinking a failure runs more than one sequence.
    let ran = Cell::new(0);
    for _ in 0..asked {
        let sequence = sequences().new_tree(&mut runner).unwrap();
        let result = runner.run_one(sequence, |(look, actions)| {
            ran.set(ran.get() + 1);
            let dir = format!("/workspace/{}", ran.get());
            let compared = runtime.block_on(pair.compare((look, &actions), &dir));
            compared.map_err(TestCaseError::fail)
        });
        if let Err(TestError::Fail(difference, (_, actions))) = result {
            panic!("seed {seed}, user {user}: {difference}\nafter {actions:#?}");
        }
    }
}
