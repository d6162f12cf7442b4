//! Scripts that overflow the stack of a plain engine, which would abort this process: each must
//! end as a value, and the sandbox must work after it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use sandbox_core::{Client, Command, Sandbox, SandboxSpec};
use sandbox_mock::MockProvider;

const SCRIPTS: &str = include_str!("data/aborts.txt");

/// Name, seconds, text.
fn scripts() -> Vec<(&'static str, u64, &'static str)> {
    SCRIPTS
        .split("### ")
        .skip(1)
        .map(|block| {
            let (head, text) = block.split_once('\n').unwrap();
            let name = head.split(' ').next().unwrap();
            let seconds = head.rsplit_once("t=").unwrap().1.trim().parse().unwrap();
            (name, seconds, text)
        })
        .collect()
}

async fn survives(sandbox: &Sandbox, text: &str, seconds: u64) -> sandbox_core::ExecuteResponse {
    let start = Instant::now();
    let command = Command::shell(text).timeout(Duration::from_secs(seconds));
    let r = sandbox.execute(command).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(seconds + 6));
    assert!(!r.sandbox_killed, "{r:?}");
    r
}

#[tokio::test(flavor = "multi_thread")]
async fn every_script_of_the_list_ends_as_a_value() {
    let client = Client::new(MockProvider::new());
    assert!(scripts().len() >= 14);
    for (name, seconds, text) in scripts() {
        let sandbox = client.create(SandboxSpec::new()).await.unwrap();
        let start = Instant::now();
        let r = survives(&sandbox, text, seconds).await;
        println!(
            "{name}: {:?} in {:?}: {:.200}",
            r.status,
            start.elapsed(),
            r.stderr.to_text()
        );
        let alive = sandbox.execute("echo alive").await.unwrap();
        assert_eq!(alive.output(), "alive\n", "{name}");
    }
}

/// Scripts that nest and mix what recurses.
fn nested() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("eval \"$x\"".to_owned()),
        Just("f".to_owned()),
        Just("g".to_owned()),
        Just(". /tmp/s".to_owned()),
        Just("sh /tmp/s".to_owned()),
        Just("echo $(eval \"$x\")".to_owned()),
        Just("trap 'eval \"$x\"' DEBUG".to_owned()),
        Just("trap 'f' EXIT".to_owned()),
        Just("test $(printf '( %.0s' $(seq 3000)) a".to_owned()),
        Just("find . $(printf '! %.0s' $(seq 3000)) -name x".to_owned()),
        Just("expr $(printf '( %.0s' $(seq 3000)) 1".to_owned()),
        Just(": $((((((((((((((((1))))))))))))))))".to_owned()),
        Just("awk 'function r(n) { return r(n+1) } BEGIN { r(1) }'".to_owned()),
        Just("xargs -I{} sh -c 'eval \"$x\"' </tmp/s".to_owned()),
        Just("timeout 1 sh -c 'eval \"$x\"'".to_owned()),
        Just("find /tmp -exec sh /tmp/s \\;".to_owned()),
        Just("echo ${a:-${b:-${c:-$(f)}}}".to_owned()),
        Just("grep -E \"$(printf '(%.0s' $(seq 2000))\" /tmp/s".to_owned()),
        Just("sed \"s/$(printf '\\\\(%.0s' $(seq 2000))//\" /tmp/s".to_owned()),
    ];
    leaf.prop_recursive(6, 40, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|s| format!("( {s} )")),
            inner.clone().prop_map(|s| format!("{{ {s}; }}")),
            inner.clone().prop_map(|s| format!("if {s}; then {s}; fi")),
            inner.clone().prop_map(|s| format!("! {s}")),
            inner.clone().prop_map(|s| format!("{s} | {s}")),
            inner
                .clone()
                .prop_map(|s| format!("x='{}'; eval \"$x\"", s.replace('\'', r"'\''"))),
            inner.clone().prop_map(|s| format!("f() {{ {s}; }}; f")),
            inner
                .clone()
                .prop_map(|s| format!("g() {{ f; {s}; g; }}; g")),
            inner
                .clone()
                .prop_map(|s| format!("while {s}; do {s}; done")),
            inner
                .clone()
                .prop_map(|s| format!("case $({s}) in *) {s};; esac")),
            inner.clone().prop_map(|s| format!("{s} &")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{a}; {b}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_nests_them_ends_as_a_value(text in nested()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let client = Client::new(MockProvider::new());
            let sandbox = client.create(SandboxSpec::new()).await.unwrap();
            let script = format!("x='eval \"$x\"'; f() {{ eval \"$x\"; }}; {text}");
            sandbox.upload("/tmp/s", script.clone()).await.unwrap();
            survives(&sandbox, &script, 2).await;
            sandbox.kill().await.unwrap();
        });
    }
}
