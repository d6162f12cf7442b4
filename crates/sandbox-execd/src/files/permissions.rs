//! Mode, owner and group.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use hyper::Response;

use super::failure::Failure;
use super::unreadable;
use crate::body::Share;
use crate::daemon::{Daemon, blocking};
use crate::decode::{Permission, Struct, first_value, map_of};
use crate::process::accounts::Accounts;
use crate::respond::{ApiError, Body, empty};

/// Octal digits in a decimal number made into bits: 644 is 0644. Only the nine of the rights
/// count.
fn bits(mode: i64) -> Result<u32, Failure> {
    let digits = mode.to_string();
    let error = match u32::from_str_radix(&digits, 8) {
        Ok(mode) => return Ok(mode & 0o777),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => "value out of range",
        Err(_) => "invalid syntax",
    };
    Err(Failure::said(format!(
        "strconv.ParseUint: parsing \"{digits}\": {error}"
    )))
}

/// Sets what `permission` asks for: first the mode, then the owner.
///
/// # Errors
///
/// What is wrong, with what was done before left done.
pub(super) fn apply(path: &Path, permission: &Permission) -> Result<(), Failure> {
    if permission.mode != 0 {
        let mode = Permissions::from_mode(bits(permission.mode)?);
        std::fs::set_permissions(path, mode).map_err(|it| Failure::io("chmod", path, &it))?;
    }
    let (owner, group) = (&permission.owner, &permission.group);
    if owner.is_empty() && group.is_empty() {
        return Ok(());
    }
    let accounts = Accounts::load();
    let unknown = |kind: &str, name: &str| {
        Failure::said(format!(
            "failed to lookup {kind} {name}: {kind}: unknown {kind} {name}"
        ))
    };
    let uid = match owner.as_str() {
        "" => None,
        name => Some(accounts.uid(name).ok_or_else(|| unknown("user", name))?),
    };
    let gid = match group.as_str() {
        "" => None,
        name => Some(accounts.gid(name).ok_or_else(|| unknown("group", name))?),
    };
    std::os::unix::fs::chown(path, uid, gid).map_err(|error| {
        Failure::io("chown", path, &error)
            .within_named("failed to set owner/group for ", path.as_os_str())
    })
}

/// The permissions asked for each path.
pub(super) fn of_each<'a>(
    asked: &[(&'a str, Struct<'_>)],
) -> Result<Vec<(&'a str, Permission)>, String> {
    asked
        .iter()
        .map(|(path, it)| Ok((*path, it.permission("")?)))
        .collect()
}

/// `POST /files/permissions`.
pub(crate) async fn change(
    daemon: &Arc<Daemon>,
    body: Vec<u8>,
    share: Share,
) -> Result<Response<Body>, ApiError> {
    let daemon = daemon.clone();
    blocking(move || {
        let _share = share;
        let value = first_value(&body).map_err(unreadable)?;
        let all = map_of(&value, "Permission")
            .and_then(|it| of_each(&it))
            .map_err(unreadable)?;
        for (asked, permission) in all {
            daemon
                .environment
                .absolute(asked.as_ref())
                .map_err(Failure::said)
                .and_then(|path| apply(&path, &permission))
                .map_err(|it| it.runtime("error changing permissions for ", asked.as_ref()))?;
        }
        Ok(empty())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_octal_digits() {
        assert_eq!(bits(644), Ok(0o644));
        assert_eq!(bits(4755), Ok(0o755));
        for (mode, why) in [
            (888, "invalid syntax"),
            (-5, "invalid syntax"),
            (777_777_777_777, "value out of range"),
        ] {
            let said = Failure::said(format!("strconv.ParseUint: parsing \"{mode}\": {why}"));
            assert_eq!(bits(mode), Err(said));
        }
    }
}
