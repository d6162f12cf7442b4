//! What is claimed works.

use std::time::{Duration, Instant};

use sandbox_core::{Command, ErrorKind};

use super::needs::{
    CONTROL_CHARACTERS, EXECUTE_USER, FIFOS, FILE_OWNERS, HARD_LINKS, PROCESS_TABLE,
};
use crate::check::refused;
use crate::{CaseResult, Cx};

cases! { "capabilities":
    a_second_look_sees_the_same minimal;
    every_part_of_a_command_works_together minimal;
    a_command_runs_as_the_user_it_names needs(EXECUTE_USER);
    an_unknown_user_is_an_error_and_nothing_runs needs(EXECUTE_USER);
    hard_links_are_one_file needs(HARD_LINKS);
    a_fifo_joins_two_commands needs(FIFOS);
    permission_bits_are_enforced needs(FILE_OWNERS);
    files_belong_to_who_makes_them needs(FILE_OWNERS);
    a_file_of_another_user_cannot_be_taken needs(FILE_OWNERS);
    commands_see_processes needs(PROCESS_TABLE);
    names_with_control_characters_work_in_commands needs(CONTROL_CHARACTERS);
    symbolic_links_work minimal;
    the_usual_tools_are_there minimal;
}

async fn a_second_look_sees_the_same(cx: Cx) -> CaseResult {
    let first = cx.caps();
    cx.sh("true").await?;
    check_eq!(cx.caps(), first);
    Ok(())
}

async fn every_part_of_a_command_works_together(cx: Cx) -> CaseResult {
    let text = "pwd; echo \"$A\"; echo \"$#:$1\"; cat; echo err >&2; exit 9";
    let command = Command::shell(text)
        .arg("a 'b'")
        .cwd(&cx.dir)
        .env("A", "v w")
        .stdin("in\n")
        .merge_stderr()
        .timeout(Duration::from_secs(20))
        .output_limit(1000);
    let r = cx.sandbox.execute(command).await?;
    check_eq!(
        r.stdout.to_text(),
        format!("{}\nv w\n1:a 'b'\nin\nerr\n", cx.dir)
    );
    check_eq!(r.exit_code(), Some(9));
    Ok(())
}

async fn a_command_runs_as_the_user_it_names(cx: Cx) -> CaseResult {
    for user in ["12345", "0"] {
        let r = cx
            .sandbox
            .execute(Command::shell("id -u").user(user))
            .await?;
        check_eq!(r.stdout.to_text(), format!("{user}\n"));
    }
    let own = cx.raw("id -u").await?.stdout;
    check_eq!(
        cx.sandbox
            .execute(Command::shell("id -u").user("root"))
            .await?
            .stdout,
        "0\n"
    );
    check_eq!(cx.raw("id -u").await?.stdout, own, "the user lasted");
    Ok(())
}

async fn an_unknown_user_is_an_error_and_nothing_runs(cx: Cx) -> CaseResult {
    let text = format!("echo x >{}", cx.path("ran"));
    let call = cx
        .sandbox
        .execute(Command::shell(text).user("no-such-user-zz"));
    refused(call.await, ErrorKind::NotFound)?;
    check!(!cx.exists("ran").await?, "the command ran");
    Ok(())
}

async fn hard_links_are_one_file(cx: Cx) -> CaseResult {
    check_eq!(
        cx.ok("echo a >f; ln f g; echo b >>g; cat f; rm f; cat g")
            .await?,
        "a\nb\na\nb\n"
    );
    check_eq!(cx.ok("ln g h; stat -c %h g h").await?, "2\n2\n");
    Ok(())
}

async fn a_fifo_joins_two_commands(cx: Cx) -> CaseResult {
    check_eq!(
        cx.ok("mkfifo p; test -p p && (echo through >p) & cat p; wait")
            .await?,
        "through\n"
    );
    Ok(())
}

async fn permission_bits_are_enforced(cx: Cx) -> CaseResult {
    cx.ok("echo x >f; mkdir d; : >d/g").await?;
    for text in [
        "chmod 000 f; cat f",
        "chmod 444 f; echo y >f",
        "chmod 000 d; ls d",
        "chmod 600 d; cat d/g",
        "chmod 500 d; : >d/new",
        "chmod 500 d; rm -f d/g",
    ] {
        check!(!cx.sh(text).await?.success(), "`{text}` works");
    }
    check_eq!(
        cx.ok("chmod 755 d; chmod 644 f; cat f; ls d").await?,
        "x\ng\n"
    );
    Ok(())
}

async fn files_belong_to_who_makes_them(cx: Cx) -> CaseResult {
    let text = cx
        .ok(": >f; mkdir d; stat -c %u f; stat -c %u d; id -u")
        .await?;
    let ids: Vec<&str> = text.split_whitespace().collect();
    check!(
        ids.len() == 3 && ids[0] == ids[2] && ids[1] == ids[2],
        "{ids:?}"
    );
    Ok(())
}

async fn a_file_of_another_user_cannot_be_taken(cx: Cx) -> CaseResult {
    // Root without capabilities may give no file away either.
    let r = cx.sh(": >f; chown 12345:12345 f && stat -c %u f").await?;
    let honest = !r.success() || r.stdout == "12345\n";
    check!(honest, "`chown` says that it works, and does not: {r:?}");
    Ok(())
}

async fn commands_see_processes(cx: Cx) -> CaseResult {
    check_eq!(
        cx.ok("sleep 5 & kill -0 $! && echo alive; kill $!; wait $!; echo $?")
            .await?,
        "alive\n143\n"
    );
    check!(
        cx.ok("ls /proc; cat /proc/$$/stat").await?.contains("1\n"),
        "no process 1"
    );
    Ok(())
}

async fn names_with_control_characters_work_in_commands(cx: Cx) -> CaseResult {
    cx.ok("n=$(printf 'a\\001\\nb'); echo x >\"$n\"; mkdir d; mv \"$n\" d; cat d/*")
        .await?;
    check_eq!(
        cx.sandbox.ls(cx.path("d")).await?.entries[0]
            .path
            .file_name(),
        Some("a\u{1}\nb")
    );
    Ok(())
}

async fn symbolic_links_work(cx: Cx) -> CaseResult {
    let text = "mkdir d; echo x >d/f; ln -s d/f l; ln -s d m; cat l m/f; readlink l; rm l; cat d/f";
    check_eq!(cx.ok(text).await?, "x\nx\nd/f\nx\n");
    Ok(())
}

async fn the_usual_tools_are_there(cx: Cx) -> CaseResult {
    let start = Instant::now();
    let text = "for t in cat ls mkdir rm mv cp chmod ln find grep sed awk sort uniq head tail wc tr cut \
                printf test stat date sleep env id dirname basename; do \
                command -v $t >/dev/null || echo $t; done";
    check_eq!(cx.ok(text).await?, "", "these are missing");
    check!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    Ok(())
}
