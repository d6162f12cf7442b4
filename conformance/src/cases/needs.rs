//! The capabilities that cases need, and what must hold where they are not claimed.

use sandbox_core::Status;

use crate::{CaseResult, Cx, Need};

macro_rules! need {
    ($constant:ident, $field:ident) => {
        pub(super) const $constant: Need = Need {
            name: stringify!($field),
            claimed: |c| c.$field,
            otherwise: None,
        };
    };
    ($constant:ident, $field:ident, otherwise $instead:ident) => {
        pub(super) const $constant: Need = Need {
            name: stringify!($field),
            claimed: |c| c.$field,
            otherwise: Some(|cx| Box::pin($instead(cx))),
        };
    };
}

need!(EXECUTE_USER, execute_user);
need!(STREAMING, streaming);
need!(PROCESSES, processes);
need!(LEASE, lease);
need!(SNAPSHOTS, snapshots);
need!(SEPARATE_STREAMS, separate_streams, otherwise all_output_is_in_stdout);
need!(OUTPUT_ORDER, output_order, otherwise no_order_is_told);
need!(REPORTS_SIGNALS, reports_signals, otherwise a_signal_is_an_exit_code);
need!(CONTROL_CHARACTERS, control_characters_in_commands, otherwise a_control_character_fails);
need!(FILE_OWNERS, file_owners, otherwise changing_an_owner_fails);
need!(HARD_LINKS, hard_links, otherwise a_hard_link_fails);
need!(FIFOS, fifos, otherwise a_fifo_fails);
need!(PROCESS_TABLE, process_table, otherwise no_process_is_seen);

async fn all_output_is_in_stdout(cx: Cx) -> CaseResult {
    let r = cx.raw("echo out; echo err >&2").await?;
    check!(
        r.stderr.bytes().is_empty(),
        "stderr came apart: {:?}",
        r.stderr
    );
    check!(
        r.stdout.to_text().contains("err"),
        "stderr is lost: {:?}",
        r.stdout
    );
    Ok(())
}

async fn no_order_is_told(cx: Cx) -> CaseResult {
    let r = cx.raw("echo out; echo err >&2").await?;
    check!(r.ordered.is_none(), "an order is told: {:?}", r.ordered);
    Ok(())
}

async fn a_signal_is_an_exit_code(cx: Cx) -> CaseResult {
    let r = cx.raw("kill -9 $$").await?;
    check_eq!(r.status, Status::Exited(137));
    Ok(())
}

async fn a_control_character_fails(cx: Cx) -> CaseResult {
    let r = cx.sh("touch \"$(printf 'a\\001b')\"").await?;
    check!(!r.success(), "a name with a control character works");
    Ok(())
}

async fn changing_an_owner_fails(cx: Cx) -> CaseResult {
    let r = cx.sh(": >f; chown 12345:12345 f").await?;
    check!(!r.success(), "`chown` says that it works");
    Ok(())
}

async fn a_hard_link_fails(cx: Cx) -> CaseResult {
    let r = cx.sh(": >f; ln f g").await?;
    check!(!r.success(), "`ln` says that it works");
    check!(
        !cx.exists("g").await?,
        "`ln` failed, but something is there"
    );
    Ok(())
}

async fn a_fifo_fails(cx: Cx) -> CaseResult {
    let r = cx.sh("mkfifo p").await?;
    check!(!r.success(), "`mkfifo` says that it works");
    check!(
        !cx.exists("p").await?,
        "`mkfifo` failed, but something is there"
    );
    Ok(())
}

async fn no_process_is_seen(cx: Cx) -> CaseResult {
    let r = cx.raw("cat /proc/1/stat").await?;
    check!(!r.success(), "process 1 is seen: {:?}", r.stdout);
    Ok(())
}
