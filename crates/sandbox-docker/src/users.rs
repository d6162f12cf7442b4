//! Who a name is, read from the image before anything runs in it.

use std::io::Read as _;

use sandbox_core::{Error, ErrorKind, Result};

use crate::client::Engine;
use crate::error;

/// The largest `/etc/passwd` or `/etc/group`.
const LIMIT: usize = 4 << 20;

/// A user of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// As the image says it.
    pub(crate) home: Option<String>,
}

/// Who `name` (`user` or `user:group`, each by name or number) is in a container that has not been
/// started.
///
/// # Errors
///
/// [`ErrorKind::NotFound`] if the image has no such user or group.
pub(crate) async fn find(engine: &Engine, id: &str, name: &str) -> Result<User> {
    let (user, group) = match name.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (name, None),
    };
    if (user.is_empty() || user == "root" || user == "0") && group.is_none() {
        return Ok(User {
            uid: 0,
            gid: 0,
            home: Some("/root".to_owned()),
        });
    }
    let passwd = read(engine, id, "/etc/passwd").await?;
    let groups = match group {
        Some(group) if group.parse::<u32>().is_err() => read(engine, id, "/etc/group").await?,
        _ => String::new(),
    };
    lookup(user, group, &passwd, &groups).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "the image has no such user or group").with("user", name)
    })
}

fn lookup(user: &str, group: Option<&str>, passwd: &str, groups: &str) -> Option<User> {
    let number = user.parse::<u32>().ok();
    let entry = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, ..] = fields[..] else {
            return None;
        };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        (name == user || Some(uid) == number).then(|| (uid, gid, home.to_owned()))
    });
    let (uid, own_gid, home) = match (entry, number) {
        (Some((uid, gid, home)), _) => (uid, gid, Some(home).filter(|h| h.starts_with('/'))),
        (None, Some(uid)) => (uid, 0, None),
        (None, None) => return None,
    };
    let gid = match group {
        None => own_gid,
        Some(group) => group.parse().ok().or_else(|| {
            groups.lines().find_map(|line| {
                let mut fields = line.split(':');
                (fields.next()? == group).then(|| fields.nth(1)?.parse().ok())?
            })
        })?,
    };
    Some(User { uid, gid, home })
}

/// A text file; empty if it is not there.
async fn read(engine: &Engine, id: &str, path: &str) -> Result<String> {
    let Some(tar) = engine.archive(id, path, LIMIT).await? else {
        return Ok(String::new());
    };
    let garbled = |_| error::garbled("read a file of the image");
    let mut archive = tar::Archive::new(&tar[..]);
    let mut text = Vec::new();
    if let Some(entry) = archive.entries().map_err(garbled)?.next() {
        let entry = entry.map_err(garbled)?;
        entry
            .take(LIMIT as u64)
            .read_to_end(&mut text)
            .map_err(garbled)?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A tar of new directories, each below the one before, for `user`.
pub(crate) fn directories(names: &[&str], user: &User) -> Result<Vec<u8>> {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    let mut tar = tar::Builder::new(Vec::new());
    let mut path = String::new();
    let unexpected =
        |e: std::io::Error| Error::new(ErrorKind::Unexpected, "no tar of the workdir").because(e);
    for name in names {
        path.push_str(name);
        path.push('/');
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        header.set_mode(0o755);
        header.set_mtime(now);
        header.set_uid(user.uid.into());
        header.set_gid(user.gid.into());
        tar.append_data(&mut header, &path, std::io::empty())
            .map_err(unexpected)?;
    }
    tar.into_inner().map_err(unexpected)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:100::/home/app:/bin/sh\nbad\n";
    const GROUPS: &str = "root:x:0:\nstaff:x:50:app\n";

    #[test]
    fn users_are_found_by_name_and_number() {
        let find = |user, group| lookup(user, group, PASSWD, GROUPS);
        let app = User {
            uid: 1000,
            gid: 100,
            home: Some("/home/app".into()),
        };
        assert_eq!(find("app", None), Some(app.clone()));
        assert_eq!(find("1000", None), Some(app.clone()));
        assert_eq!(find("app", Some("staff")).unwrap().gid, 50);
        assert_eq!(find("1000", Some("7")).unwrap().gid, 7);
        assert_eq!(
            find("4242", None),
            Some(User {
                uid: 4242,
                gid: 0,
                home: None
            })
        );
        assert_eq!(find("nobody2", None), None);
        assert_eq!(find("app", Some("nogroup2")), None);
    }
}
