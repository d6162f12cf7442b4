//! The arguments of the tools, as a model sends them: anything may be wrong with them.

use serde::de::{DeserializeOwned, Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Arguments of `execute`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExecuteArgs {
    /// Shell text.
    pub command: String,
    /// Seconds until the command is killed.
    #[serde(default, deserialize_with = "whole")]
    pub timeout: Option<i64>,
}

/// Arguments of `ls`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LsArgs {
    /// The directory, absolute.
    pub path: String,
}

/// Arguments of `read_file`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadFileArgs {
    /// The file, absolute.
    pub file_path: String,
    /// Lines to leave out at the beginning; 0 if unset.
    #[serde(default, deserialize_with = "whole")]
    pub offset: Option<i64>,
    /// Lines to give at most; 100 if unset.
    #[serde(default, deserialize_with = "whole")]
    pub limit: Option<i64>,
}

/// Arguments of `write_file`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WriteFileArgs {
    /// The file, absolute.
    pub file_path: String,
    /// All of its text.
    pub content: String,
}

/// Arguments of `edit_file`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EditFileArgs {
    /// The file, absolute.
    pub file_path: String,
    /// The text to replace, literally.
    pub old_string: String,
    /// What to put in its place.
    pub new_string: String,
    /// Everywhere instead of once; no if unset.
    #[serde(default, deserialize_with = "yes_or_no")]
    pub replace_all: bool,
}

/// Arguments of `glob`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GlobArgs {
    /// The pattern.
    pub pattern: String,
    /// Where to search, absolute.
    #[serde(default)]
    pub path: Option<String>,
}

/// Arguments of `grep`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GrepArgs {
    /// The text to search, literally.
    pub pattern: String,
    /// Where to search, absolute.
    #[serde(default)]
    pub path: Option<String>,
    /// Only files that this pattern finds.
    #[serde(default)]
    pub glob: Option<String>,
    /// What to tell of the hits.
    #[serde(default, deserialize_with = "or_default")]
    pub output_mode: OutputMode,
    /// Hits at most.
    #[serde(default, deserialize_with = "whole")]
    pub max_count: Option<i64>,
}

/// What `grep` tells of its hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputMode {
    /// The files.
    #[default]
    FilesWithMatches,
    /// The lines.
    Content,
    /// The number of hits a file.
    Count,
}

/// Reads JSON text that a model wrote as arguments. None at all are an empty object.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(text).map_err(|e| format!("the arguments are not valid JSON: {e}"))
}

/// Takes the arguments of one tool out of a JSON value. The text of a failure is for the model.
pub(crate) fn typed<T: DeserializeOwned>(tool: &str, args: Value) -> Result<T, String> {
    let args = match args {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::Object(_) => args,
        _ => return Err(format!("the arguments of {tool} must be a JSON object")),
    };
    serde_json::from_value(args).map_err(|e| {
        // A wrong value can be as long as it likes; the reason comes first.
        let why: String = e.to_string().chars().take(300).collect();
        format!("the arguments of {tool} can't be used: {why}")
    })
}

/// An integer, also when the model wrote `10.0` or `"10"`. `null` is unset.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let value = Option::<Value>::deserialize(from)?;
    let Some(value) = value else {
        return Ok(None);
    };
    let number = match &value {
        Value::Number(n) => n.as_i64().or_else(|| {
            let f = n.as_f64()?;
            #[allow(
                clippy::cast_possible_truncation,
                reason = "whole and far inside the range"
            )]
            (f.fract() == 0.0 && f.abs() < 1e15).then_some(f as i64)
        }),
        Value::String(s) => s.trim().parse().ok(),
        _ => None,
    };
    number
        .map(Some)
        .ok_or_else(|| D::Error::invalid_value(unexpected(&value), &"a whole number"))
}

/// A boolean, also when the model wrote `"true"`. `null` is no.
fn yes_or_no<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match Option::<Value>::deserialize(from)? {
        None => Ok(false),
        Some(Value::Bool(b)) => Ok(b),
        Some(Value::String(s)) if s.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(s)) if s.eq_ignore_ascii_case("false") => Ok(false),
        Some(other) => Err(D::Error::invalid_value(
            unexpected(&other),
            &"true or false",
        )),
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(b) => Unexpected::Bool(*b),
        Value::Number(n) => n
            .as_i64()
            .map_or(Unexpected::Other("number"), Unexpected::Signed),
        Value::String(s) => Unexpected::Str(s),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_come_in_three_spellings_and_nothing_else() {
        for (given, taken) in [
            (json!(7), Some(7)),
            (json!(7.0), Some(7)),
            (json!(" 7 "), Some(7)),
            (json!(-1), Some(-1)),
            (json!(null), None),
        ] {
            let args: ReadFileArgs =
                typed("read_file", json!({"file_path": "/a", "limit": given})).unwrap();
            assert_eq!(args.limit, taken);
        }
        for bad in [
            json!(1.5),
            json!("x"),
            json!([1]),
            json!(true),
            json!(1e300),
        ] {
            let why = typed::<ReadFileArgs>("read_file", json!({"file_path": "/a", "limit": bad}))
                .unwrap_err();
            assert!(why.contains("a whole number"), "{why}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let why = |args| typed::<LsArgs>("ls", args).unwrap_err();
        assert!(why(json!({})).contains("missing field `path`"));
        assert!(why(json!({"path": "/", "dir": 1})).contains("unknown field `dir`"));
        assert!(why(json!({"path": 1})).contains("expected a string"));
        assert!(why(json!([1])).contains("must be a JSON object"));
        assert!(why(json!({"path": "/", ("x".repeat(10_000)): 1})).len() < 400);
        assert!(
            parse(r#"{"path": "\ud800"}"#)
                .unwrap_err()
                .contains("not valid JSON")
        );
        assert!(parse("{\"path\": ").is_err());
        assert_eq!(parse(" ").unwrap(), json!({}));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = parse(&text).map(|v| typed::<GrepArgs>("grep", v));
        }
    }
}
