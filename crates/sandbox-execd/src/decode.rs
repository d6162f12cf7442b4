//! Requests in JSON, with the complaints the real daemon has about bad ones.

use std::collections::BTreeMap;

use serde_json::Value;

/// The JSON value at the start of `body`; what follows it is ignored.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn first_value(body: &[u8]) -> Result<Value, String> {
    if body.trim_ascii().is_empty() {
        return Err("EOF".into());
    }
    match serde_json::Deserializer::from_slice(body)
        .into_iter::<Value>()
        .next()
    {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(complaint(&error, body)),
        None => Err("EOF".into()),
    }
}

/// The JSON value that is all of `body`.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn only_value(body: &[u8]) -> Result<Value, String> {
    if body.trim_ascii().is_empty() {
        return Err("unexpected end of JSON input".into());
    }
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => "unexpected end of JSON input".into(),
        _ => complaint(&error, body),
    })
}

fn complaint(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected EOF".into();
    }
    let said = error.to_string();
    let place = if said.starts_with("key must be a string") {
        "looking for beginning of object key string"
    } else if said.starts_with("expected value") || said.starts_with("expected ident") {
        "looking for beginning of value"
    } else if said.starts_with("expected `:`") {
        "after object key"
    } else if said.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if said.starts_with("expected `,` or `]`") {
        "after array element"
    } else if said.starts_with("trailing comma") {
        "looking for beginning of value"
    } else if said.starts_with("trailing characters") {
        "after top-level value"
    } else if said.starts_with("control character") {
        "in string literal"
    } else {
        return said;
    };
    let line = body
        .split(|&byte| byte == b'\n')
        .nth(error.line().saturating_sub(1));
    let character = line
        .and_then(|line| line.get(error.column().saturating_sub(1)..))
        .and_then(|rest| {
            String::from_utf8_lossy(&rest[..rest.len().min(4)])
                .chars()
                .next()
        })
        .map_or_else(String::new, |it| it.escape_default().to_string());
    format!("invalid character '{character}' {place}")
}

/// What Go calls a JSON value.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "bool".into(),
        Value::Number(number) => format!("number {number}"),
        Value::String(_) => "string".into(),
        Value::Array(_) => "array".into(),
        Value::Object(_) => "object".into(),
    }
}

/// One field of an object, by Go's rules: `null` is as good as absent, and names are compared
/// without regard to case where none is the same.
fn field<'a>(object: &'a serde_json::Map<String, Value>, name: &str) -> Option<&'a Value> {
    object
        .get(name)
        .or_else(|| {
            object
                .iter()
                .find(|it| it.0.eq_ignore_ascii_case(name))
                .map(|it| it.1)
        })
        .filter(|value| !value.is_null())
}

/// An object as Go's decoder fills a struct from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Struct<'a> {
    /// The struct's name in complaints.
    name: &'static str,
    object: Option<&'a serde_json::Map<String, Value>>,
}

impl<'a> Struct<'a> {
    /// # Errors
    ///
    /// When `value` is neither an object nor `null`; `whole` is the name of the type then.
    pub(crate) fn new(value: &'a Value, name: &'static str, whole: &str) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self { name, object: None }),
            Value::Object(object) => Ok(Self {
                name,
                object: Some(object),
            }),
            other => Err(mismatch(other, whole)),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.and_then(|object| field(object, name))
    }

    fn complain(&self, value: &Value, field: &str, wanted: &str) -> String {
        let kind = kind(value);
        // The number itself is told only where another number would do.
        let kind = match (value, wanted) {
            (Value::Number(_), "string" | "bool") => "number",
            _ => kind.as_str(),
        };
        format!(
            "json: cannot unmarshal {kind} into Go struct field {}.{field} of type {wanted}",
            self.name
        )
    }

    /// A string; empty if absent.
    pub(crate) fn string(&self, name: &str) -> Result<String, String> {
        self.string_at(name, name)
    }

    fn string_at(&self, name: &str, path: &str) -> Result<String, String> {
        match self.get(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(self.complain(other, path, "string")),
        }
    }

    pub(crate) fn bool(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(it)) => Ok(*it),
            Some(other) => Err(self.complain(other, name, "bool")),
        }
    }

    pub(crate) fn int64(&self, name: &str) -> Result<i64, String> {
        self.int_at(name, name, "int64")
    }

    fn int_at(&self, name: &str, path: &str, wanted: &str) -> Result<i64, String> {
        match self.get(name) {
            None => Ok(0),
            Some(value) => value
                .as_i64()
                .ok_or_else(|| self.complain(value, path, wanted)),
        }
    }

    pub(crate) fn uint32(&self, name: &str) -> Result<Option<u32>, String> {
        self.get(name)
            .map(|value| {
                value
                    .as_u64()
                    .and_then(|it| u32::try_from(it).ok())
                    .ok_or_else(|| self.complain(value, name, "uint32"))
            })
            .transpose()
    }

    pub(crate) fn strings(&self, name: &str) -> Result<BTreeMap<String, String>, String> {
        match self.get(name) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(object)) => object
                .iter()
                .map(|(key, value)| match value {
                    Value::Null => Ok((key.clone(), String::new())),
                    Value::String(text) => Ok((key.clone(), text.clone())),
                    other => Err(self.complain(other, name, "string")),
                })
                .collect(),
            Some(other) => Err(self.complain(other, name, "map[string]string")),
        }
    }

    /// `owner`, `group` and `mode`, which stand in the object itself but are complained about
    /// with `prefix` where they are embedded in a larger struct.
    pub(crate) fn permission(&self, prefix: &str) -> Result<Permission, String> {
        Ok(Permission {
            owner: self.string_at("owner", &format!("{prefix}owner"))?,
            group: self.string_at("group", &format!("{prefix}group"))?,
            mode: self.int_at("mode", &format!("{prefix}mode"), "int")?,
        })
    }
}

/// Owner, group and mode to give a file; what is empty or 0 is left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Permission {
    pub(crate) owner: String,
    pub(crate) group: String,
    /// Octal digits in a decimal number: 644 means 0644.
    pub(crate) mode: i64,
}

fn mismatch(value: &Value, wanted: &str) -> String {
    let kind = kind(value);
    let kind = kind.split(' ').next().unwrap_or_default();
    format!("json: cannot unmarshal {kind} into Go value of type {wanted}")
}

/// An object whose keys are paths: each with its value, which is for a struct named `item`.
///
/// # Errors
///
/// When it is not one.
pub(crate) fn map_of<'a>(
    value: &'a Value,
    item: &'static str,
) -> Result<Vec<(&'a str, Struct<'a>)>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| {
                Ok((
                    key.as_str(),
                    Struct::new(value, item, &format!("model.{item}"))?,
                ))
            })
            .collect(),
        other => Err(mismatch(other, &format!("map[string]model.{item}"))),
    }
}

/// An array of objects, each for a struct named `item`.
///
/// # Errors
///
/// When it is not one.
pub(crate) fn list_of<'a>(value: &'a Value, item: &'static str) -> Result<Vec<Struct<'a>>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => list
            .iter()
            .map(|it| Struct::new(it, item, &format!("model.{item}")))
            .collect(),
        other => Err(mismatch(other, &format!("[]model.{item}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint_of(body: &str) -> String {
        match first_value(body.as_bytes()) {
            Err(said) => said,
            Ok(value) => {
                let it = match Struct::new(&value, "RunCommandRequest", "model.RunCommandRequest") {
                    Ok(it) => it,
                    Err(said) => return said,
                };
                it.string("command")
                    .and(it.int64("timeout").map(|_| String::new()))
                    .and_then(|_| it.uint32("uid"))
                    .and_then(|_| it.bool("background"))
                    .and_then(|_| it.strings("envs"))
                    .unwrap_err()
            }
        }
    }

    #[test]
    fn complaints_are_those_recorded() {
        for (body, said) in [
            ("", "EOF"),
            (" \n", "EOF"),
            ("{\"command\": ", "unexpected EOF"),
            (
                "[]",
                "json: cannot unmarshal array into Go value of type model.RunCommandRequest",
            ),
            (
                r#"{"envs":{"FOO":1}}"#,
                "json: cannot unmarshal number into Go struct field RunCommandRequest.envs of type string",
            ),
            (
                r#"{"timeout":1.5}"#,
                "json: cannot unmarshal number 1.5 into Go struct field RunCommandRequest.timeout of type int64",
            ),
            (
                r#"{"timeout":"5"}"#,
                "json: cannot unmarshal string into Go struct field RunCommandRequest.timeout of type int64",
            ),
            (
                r#"{"uid":-1}"#,
                "json: cannot unmarshal number -1 into Go struct field RunCommandRequest.uid of type uint32",
            ),
            (
                "{bad",
                "invalid character 'b' looking for beginning of object key string",
            ),
            ("x", "invalid character 'x' looking for beginning of value"),
        ] {
            assert_eq!(complaint_of(body), said, "{body}");
        }
    }

    #[test]
    fn embedded_fields_are_named_in_full() {
        let value = only_value(br#"{"path":"/a","mode":"644"}"#).unwrap();
        let said = Struct::new(&value, "FileMetadata", "model.FileMetadata")
            .and_then(|it| it.permission("Permission."))
            .unwrap_err();
        assert_eq!(
            said,
            "json: cannot unmarshal string into Go struct field FileMetadata.Permission.mode of type int"
        );
    }

    #[test]
    fn null_case_and_the_rest_are_as_in_go() {
        let value = first_value(br#"{"COMMAND":"x","uid":null} trailing"#).unwrap();
        let it = Struct::new(&value, "R", "R").unwrap();
        assert_eq!(it.string("command").unwrap(), "x");
        assert_eq!(it.uint32("uid").unwrap(), None);
        assert!(only_value(b"{} x").is_err());
        assert!(first_value("[".repeat(100_000).as_bytes()).is_err());
        assert!(first_value(b"{\"command\":\"\xff\"}").is_err());
    }
}
