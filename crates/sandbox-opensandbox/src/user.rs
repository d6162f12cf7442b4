//! Who a name is, from the sandbox's own lists.

use sandbox_core::{Error, ErrorKind, Result};

use crate::error;
use crate::execd::Execd;
use crate::place::{Place, User};

/// The largest list that is read.
const LIST: u64 = 1 << 20;

/// A user of one command, with the home directory where the image knows one.
///
/// # Errors
///
/// [`ErrorKind::NotFound`] for a name that the image does not know, [`ErrorKind::Unsupported`]
/// where the daemon can't be another user.
pub(crate) async fn find(
    execd: &Execd,
    place: &Place,
    name: &str,
) -> Result<(Option<User>, Option<String>)> {
    let (user, group) = match name.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (name, None),
    };
    let passwd = list(execd, "/etc/passwd").await?;
    let groups = match group {
        Some(group) if group.parse::<u32>().is_err() => list(execd, "/etc/group").await?,
        _ => String::new(),
    };
    let (found, home) = lookup(user, group, &passwd, &groups).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "the image has no such user or group").with("user", name)
    })?;
    if found.uid == place.daemon && found.gid.is_none() {
        return Ok((None, home));
    }
    if !place.can_switch() {
        return Err(Error::unsupported(
            "another user in this image: its daemon does not run as root",
        ));
    }
    Ok((Some(found), home))
}

fn lookup(
    user: &str,
    group: Option<&str>,
    passwd: &str,
    groups: &str,
) -> Option<(User, Option<String>)> {
    let number = user.parse::<u32>().ok();
    let entry = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, _, _, home, ..] = fields[..] else {
            return None;
        };
        let uid: u32 = uid.parse().ok()?;
        (name == user || Some(uid) == number).then(|| (uid, home.to_owned()))
    });
    let known = entry.is_some();
    let (uid, home) = match (entry, number) {
        (Some((uid, home)), _) => (uid, Some(home).filter(|h| h.starts_with('/'))),
        (None, Some(uid)) => (uid, None),
        (None, None) => return None,
    };
    let gid = match group {
        None if known => None,
        None => Some(0),
        Some(group) => Some(group.parse().ok().or_else(|| {
            groups.lines().find_map(|line| {
                let mut fields = line.split(':');
                (fields.next()? == group).then(|| fields.nth(1)?.parse().ok())?
            })
        })?),
    };
    Some((User { uid, gid }, home))
}

/// A text file of the sandbox; empty if it is not there.
async fn list(execd: &Execd, path: &str) -> Result<String> {
    let mut download = match execd.download(path, None).await {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(String::new()),
        other => other?,
    };
    if download.left() > LIST {
        return Err(error::endless("read the sandbox's users"));
    }
    let mut bytes = Vec::new();
    while let Some(part) = download.next().await? {
        bytes.extend_from_slice(&part);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:100::/home/app:/bin/sh\nbad\n";
    const GROUPS: &str = "root:x:0:\nstaff:x:50:app\n";

    #[test]
    fn users_are_found_by_name_and_number() {
        let find = |user, group| lookup(user, group, PASSWD, GROUPS);
        let app = |gid| Some((User { uid: 1000, gid }, Some("/home/app".to_owned())));
        assert_eq!(find("app", None), app(None));
        assert_eq!(find("1000", None), app(None));
        assert_eq!(find("app", Some("staff")), app(Some(50)));
        assert_eq!(find("1000", Some("7")), app(Some(7)));
        let unknown = User {
            uid: 4242,
            gid: Some(0),
        };
        assert_eq!(find("4242", None), Some((unknown, None)));
        assert_eq!(find("nobody2", None), None);
        assert_eq!(find("app", Some("nogroup2")), None);
    }
}
