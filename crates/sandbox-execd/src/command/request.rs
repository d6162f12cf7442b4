//! What a client asks to run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::decode::{Struct, first_value};
use crate::environment::{Environment, Variables};
use crate::names::error_text;
use crate::respond::ApiError;

/// A command to run.
#[derive(Debug)]
pub(crate) struct RunRequest {
    pub(crate) command: String,
    cwd: String,
    pub(crate) background: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) envs: BTreeMap<String, String>,
}

impl RunRequest {
    /// # Errors
    ///
    /// 400 with what is wrong.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let (request, timeout) = Self::fields(body).map_err(|why| {
            ApiError::invalid(format!(
                "error parsing request, MAYBE invalid body format. {why}"
            ))
        })?;
        let failed = |field: &str, key: &str, rule: &str| {
            Err(invalid(&format!(
                "Key: 'RunCommandRequest.{field}' Error:Field validation for '{key}' failed on the '{rule}' tag"
            )))
        };
        if request.command.is_empty() {
            return failed("Command", "Command", "required");
        }
        if timeout < 0 {
            return failed("TimeoutMs", "TimeoutMs", "gte");
        }
        if request.gid.is_some() && request.uid.is_none() {
            return Err(invalid("uid is required when gid is provided"));
        }
        Ok(request)
    }

    fn fields(body: &[u8]) -> Result<(Self, i64), String> {
        let value = first_value(body)?;
        let it = Struct::new(&value, "RunCommandRequest", "model.RunCommandRequest")?;
        let timeout = it.int64("timeout")?;
        let request = Self {
            command: it.string("command")?,
            cwd: it.string("cwd")?,
            background: it.bool("background")?,
            timeout: u64::try_from(timeout)
                .ok()
                .filter(|&it| it > 0)
                .map(Duration::from_millis),
            uid: it.uint32("uid")?,
            gid: it.uint32("gid")?,
            envs: it.strings("envs")?,
        };
        Ok((request, timeout))
    }

    /// The directory to run in, empty for the daemon's own. Asks the file system.
    ///
    /// # Errors
    ///
    /// 400 when it is none.
    pub(crate) fn directory(
        &self,
        environment: &Environment,
        variables: &Variables,
    ) -> Result<OsString, ApiError> {
        if self.cwd.is_empty() {
            return Ok(OsString::new());
        }
        let directory = environment
            .expand(OsStr::new(&self.cwd), variables)
            .map_err(|why| {
                invalid(&format!(
                    "cannot resolve working directory {:?}: {why}",
                    self.cwd
                ))
            })?;
        let shown = directory.display();
        match Path::new(&directory).metadata() {
            Ok(it) if it.is_dir() => Ok(directory),
            Ok(_) => Err(invalid(&format!(
                "working directory path is not a directory: {shown}"
            ))),
            Err(error) => {
                let text = error_text(&error);
                Err(invalid(&if error.kind() == io::ErrorKind::NotFound {
                    format!("working directory does not exist: {shown}: stat {shown}: {text}")
                } else {
                    format!("cannot access working directory: {shown}: stat {shown}: {text}")
                }))
            }
        }
    }
}

fn invalid(why: &str) -> ApiError {
    ApiError::invalid(format!("invalid request, validation error {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        let error = RunRequest::parse(body.as_bytes()).unwrap_err();
        assert_eq!(error.status, 400);
        String::from_utf8(error.message).unwrap()
    }

    #[test]
    fn bad_ones_are_refused_as_recorded() {
        for body in [
            "{}",
            r#"{"command":""}"#,
            r#"{"command":null}"#,
            r#"{"argv":["a"]}"#,
        ] {
            assert_eq!(
                refused(body),
                "invalid request, validation error Key: 'RunCommandRequest.Command' \
                 Error:Field validation for 'Command' failed on the 'required' tag"
            );
        }
        assert_eq!(
            refused(r#"{"command":"id","gid":1}"#),
            "invalid request, validation error uid is required when gid is provided"
        );
        assert!(refused(r#"{"command":"x","timeout":-5}"#).ends_with("failed on the 'gte' tag"));
        assert_eq!(
            refused(""),
            "error parsing request, MAYBE invalid body format. EOF"
        );
    }

    #[test]
    fn a_timeout_of_zero_is_none() {
        let parse = |body: &str| RunRequest::parse(body.as_bytes()).unwrap();
        assert_eq!(parse(r#"{"command":"x","timeout":0}"#).timeout, None);
        assert_eq!(
            parse(r#"{"command":"x","timeout":1500,"whatever":1}"#).timeout,
            Some(Duration::from_millis(1500))
        );
        assert_eq!(parse(r#"{"command":"   "}"#).command, "   ");
    }
}
