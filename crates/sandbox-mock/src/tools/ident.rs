//! Who the user is: `id`, `whoami`, `groups`, `logname`.

use super::getopt;
use super::io::{Io, Run};
use super::mode;
use crate::vfs::Accounts;

pub(super) async fn id(io: &mut Io) -> Run<i32> {
    let long = [
        ("user", 'u'),
        ("group", 'g'),
        ("groups", 'G'),
        ("name", 'n'),
        ("real", 'r'),
        ("zero", 'z'),
    ];
    let parsed = getopt::options(io, "ugGnraz", &long, 1).await?;
    let has = |letter: char| parsed.options.iter().any(|(option, _)| *option == letter);
    let cred = match parsed.operands.first() {
        None => io.cred(),
        Some(user) => match Accounts::find(user) {
            Ok(account) => account.cred,
            Err(_) => return io.fail(format!("'{user}': no such user"), 1).await,
        },
    };
    let (user, group) = (mode::account(cred.uid), mode::account(cred.gid));
    let text = match (has('u'), has('g') || has('G'), has('n')) {
        (true, _, true) => user,
        (true, _, false) => cred.uid.to_string(),
        (_, true, true) => group,
        (_, true, false) => cred.gid.to_string(),
        (false, false, true) => {
            return io
                .fail("cannot print only names or real IDs in default format", 1)
                .await;
        }
        _ => format!(
            "uid={}{} gid={}{} groups={}{}",
            cred.uid,
            named(cred.uid),
            cred.gid,
            named(cred.gid),
            cred.gid,
            named(cred.gid)
        ),
    };
    io.write(format!("{text}\n").as_bytes()).await?;
    Ok(0)
}

fn named(id: u32) -> String {
    Accounts::name(id).map_or_else(String::new, |name| format!("({name})"))
}

pub(super) async fn whoami(io: &mut Io) -> Run<i32> {
    let uid = io.cred().uid;
    match Accounts::name(uid) {
        Some(name) => io.write(format!("{name}\n").as_bytes()).await?,
        None => {
            return io
                .fail(format!("cannot find name for user ID {uid}"), 1)
                .await;
        }
    }
    Ok(0)
}

pub(super) async fn groups(io: &mut Io) -> Run<i32> {
    let group = mode::account(io.cred().gid);
    io.write(format!("{group}\n").as_bytes()).await?;
    Ok(0)
}
