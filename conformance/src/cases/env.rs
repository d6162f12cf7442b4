//! The variables of a command.

use sandbox_core::{Command, ErrorKind};

use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "env":
    a_value_is_exact minimal;
    a_program_sees_it_too minimal;
    a_variable_does_not_last minimal;
    a_variable_replaces_the_sandboxes_own minimal;
    an_empty_value_is_set minimal;
    bad_names_and_values_are_refused minimal;
    a_value_is_never_run minimal;
    many_and_large_variables_arrive minimal;
    path_and_home_are_set minimal;
    nothing_of_this_process_is_inside minimal;
    commands_at_once_do_not_share_variables minimal;
}

const VALUES: &[&str] = &[
    "x",
    "x y'\"$HOME\n2",
    "",
    " ",
    "\n",
    "a\n",
    "=",
    "-n",
    "`id`",
    "$(id)",
    "é😀",
    "\\",
    "%s",
    "a\tb",
];

async fn a_value_is_exact(cx: Cx) -> CaseResult {
    for value in VALUES {
        let r = cx
            .sandbox
            .execute(Command::shell("printf '%s|' \"$KIT\"").env("KIT", *value))
            .await?;
        check_eq!(r.stdout.to_text(), format!("{value}|"));
    }
    Ok(())
}

async fn a_program_sees_it_too(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(
            Command::new("sh")
                .args(["-c", "printf '%s\\n' \"$KIT\""])
                .env("KIT", "a 'b'"),
        )
        .await?;
    check_eq!(r.stdout, "a 'b'\n");
    Ok(())
}

async fn a_variable_does_not_last(cx: Cx) -> CaseResult {
    cx.sandbox
        .execute(Command::shell("export KIT2=1").env("KIT", "secret"))
        .await?;
    check_eq!(cx.raw("echo \"[$KIT$KIT2]\"").await?.stdout, "[]\n");
    Ok(())
}

async fn a_variable_replaces_the_sandboxes_own(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("echo \"$HOME\"").env("HOME", "/kit"))
        .await?;
    check_eq!(r.stdout, "/kit\n");
    Ok(())
}

async fn an_empty_value_is_set(cx: Cx) -> CaseResult {
    let r = cx
        .sandbox
        .execute(Command::shell("echo \"${KIT+set}[$KIT]\"").env("KIT", ""))
        .await?;
    check_eq!(r.stdout, "set[]\n");
    Ok(())
}

async fn bad_names_and_values_are_refused(cx: Cx) -> CaseResult {
    let text = format!("echo x >{}", cx.path("ran"));
    let pwned = format!("D;touch {}", cx.path("ran"));
    for (name, value) in [
        ("", "1"),
        ("1A", "1"),
        ("B=C", "1"),
        ("A-B", "1"),
        ("A B", "1"),
        ("A\n", "1"),
        (&*pwned, "1"),
        ("E", "nul\0"),
    ] {
        let call = cx
            .sandbox
            .execute(Command::shell(text.as_str()).env(name, value));
        refused(call.await, ErrorKind::InvalidArgument)?;
    }
    check!(!cx.exists("ran").await?, "something ran");
    Ok(())
}

async fn a_value_is_never_run(cx: Cx) -> CaseResult {
    let value = format!(
        "'; touch {0}; $(touch {0}) `touch {0}`\ntouch {0}",
        cx.path("pwned")
    );
    let r = cx
        .sandbox
        .execute(cx.command("echo \"$KIT\"").env("KIT", value.clone()))
        .await?;
    check_eq!(r.stdout.to_text(), format!("{value}\n"));
    check!(!cx.exists("pwned").await?, "the value was run");
    Ok(())
}

async fn many_and_large_variables_arrive(cx: Cx) -> CaseResult {
    let mut command =
        Command::shell("echo \"$KIT_0 $KIT_99 ${#KIT_BIG}\"").env("KIT_BIG", "x".repeat(60_000));
    for i in 0..100 {
        command = command.env(format!("KIT_{i}"), format!("v{i}"));
    }
    check_eq!(cx.sandbox.execute(command).await?.stdout, "v0 v99 60000\n");
    Ok(())
}

async fn path_and_home_are_set(cx: Cx) -> CaseResult {
    check_eq!(
        cx.raw("[ -n \"$PATH\" ] && [ -n \"$HOME\" ] && echo yes")
            .await?
            .stdout,
        "yes\n"
    );
    check_eq!(
        cx.raw("cd && pwd >/dev/null && echo yes").await?.stdout,
        "yes\n"
    );
    Ok(())
}

/// What both sides have by themselves says nothing.
const COMMON: &[&str] = &[
    "PATH", "HOME", "LANG", "PWD", "SHELL", "TERM", "USER", "LOGNAME",
];

async fn nothing_of_this_process_is_inside(cx: Cx) -> CaseResult {
    let inside = cx
        .raw("env; cat /proc/self/environ /proc/1/environ 2>/dev/null")
        .await?
        .output();
    for (name, value) in std::env::vars() {
        if value.len() >= 8 && !COMMON.contains(&name.as_str()) {
            check!(
                !inside.contains(&format!("{name}={value}")),
                "`{name}` of this process is inside"
            );
        }
    }
    check!(
        !inside.contains("CARGO_MANIFEST_DIR"),
        "this process's variables are inside"
    );
    Ok(())
}

async fn commands_at_once_do_not_share_variables(cx: Cx) -> CaseResult {
    let runs = (0..16).map(|i| {
        let command = Command::shell("sleep 0.1; echo \"$KIT\"").env("KIT", format!("v{i}"));
        cx.sandbox.execute(command)
    });
    for (i, r) in futures_util::future::join_all(runs)
        .await
        .into_iter()
        .enumerate()
    {
        check_eq!(r?.stdout.to_text(), format!("v{i}\n"));
    }
    Ok(())
}
