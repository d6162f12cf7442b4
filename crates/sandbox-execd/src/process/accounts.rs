//! The sandbox's own `/etc/passwd` and `/etc/group`. A static program has no other source, and
//! an image that uses one has them in numbers.

use std::fs::File;
use std::io::Read as _;

/// What a hostile file may cost.
const LARGEST: u64 = 4 << 20;

/// Users and groups as of one moment.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Vec<User>,
    groups: Vec<Group>,
}

#[derive(Debug, PartialEq, Eq)]
struct User {
    name: String,
    uid: u32,
    gid: u32,
}

#[derive(Debug, PartialEq, Eq)]
struct Group {
    name: String,
    gid: u32,
    members: Vec<String>,
}

impl Accounts {
    /// Reads both files; one that can't be read counts as empty.
    pub(crate) fn load() -> Self {
        Self::parse(&read("/etc/passwd"), &read("/etc/group"))
    }

    fn parse(passwd: &str, group: &str) -> Self {
        let users = passwd
            .lines()
            .filter_map(|line| {
                let mut fields = line.split(':');
                let name = fields.next().filter(|it| !it.is_empty())?.to_owned();
                let uid = fields.nth(1)?.parse().ok()?;
                let gid = fields.next()?.parse().ok()?;
                Some(User { name, uid, gid })
            })
            .collect();
        let groups = group
            .lines()
            .filter_map(|line| {
                let mut fields = line.split(':');
                let name = fields.next().filter(|it| !it.is_empty())?.to_owned();
                let gid = fields.nth(1)?.parse().ok()?;
                let members = fields.next().unwrap_or_default();
                let members = members
                    .split(',')
                    .filter(|it| !it.is_empty())
                    .map(Into::into)
                    .collect();
                Some(Group { name, gid, members })
            })
            .collect();
        Self { users, groups }
    }

    pub(crate) fn uid(&self, name: &str) -> Option<u32> {
        self.users
            .iter()
            .find(|it| it.name == name)
            .map(|it| it.uid)
    }

    pub(crate) fn gid(&self, name: &str) -> Option<u32> {
        self.groups
            .iter()
            .find(|it| it.name == name)
            .map(|it| it.gid)
    }

    /// The user's name, or the number where it has none.
    pub(crate) fn user_name(&self, uid: u32) -> String {
        self.users
            .iter()
            .find(|it| it.uid == uid)
            .map_or_else(|| uid.to_string(), |it| it.name.clone())
    }

    /// The group's name, or the number where it has none.
    pub(crate) fn group_name(&self, gid: u32) -> String {
        self.groups
            .iter()
            .find(|it| it.gid == gid)
            .map_or_else(|| gid.to_string(), |it| it.name.clone())
    }

    /// What a command asked to run as `uid` (and `gid`) runs as: the user's own group where none
    /// is given, 0 where the user is unknown, and the groups it is a member of.
    pub(crate) fn identity(&self, uid: u32, gid: Option<u32>) -> Identity {
        let user = self.users.iter().find(|it| it.uid == uid);
        let mut groups = Vec::new();
        if let Some(user) = user {
            groups.push(user.gid);
            for group in &self.groups {
                if group.members.contains(&user.name) && !groups.contains(&group.gid) {
                    groups.push(group.gid);
                }
            }
        }
        Identity {
            uid,
            gid: gid.or(user.map(|it| it.gid)).unwrap_or(0),
            groups,
        }
    }
}

/// Who a command runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

fn read(path: &str) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What was read before an error is as good as a shorter file.
        let _ = file.take(LARGEST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_groups() {
        let accounts = Accounts::parse(
            "root:x:0:0:root:/root:/bin/sh\nbroken\n:x:1:1::\nann:x:1000:100:Ann:/home/ann:/bin/sh\n",
            "root:x:0:\nusers:x:100:ann\nwheel:x:10:bob,ann\nbad:x:y:\nlast:x:11\n",
        );
        assert_eq!(accounts.uid("ann"), Some(1000));
        assert_eq!(accounts.uid("1000"), None);
        assert_eq!(accounts.gid("last"), Some(11));
        assert_eq!(accounts.user_name(0), "root");
        assert_eq!(accounts.user_name(7), "7");
        assert_eq!(accounts.group_name(10), "wheel");
        let ann = accounts.identity(1000, None);
        assert_eq!(
            ann,
            Identity {
                uid: 1000,
                gid: 100,
                groups: vec![100, 10]
            }
        );
        let given = accounts.identity(1000, Some(5));
        assert_eq!(given.gid, 5);
        let unknown = accounts.identity(7, None);
        assert_eq!(
            unknown,
            Identity {
                uid: 7,
                gid: 0,
                groups: vec![]
            }
        );
    }
}
