//! What a model is told of the tools.

use serde_json::{Value, json};

/// One tool, as agent libraries and model APIs want it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name that [`crate::dispatch`] takes.
    pub name: &'static str,
    /// What it does and how to use it.
    pub description: &'static str,
    /// The JSON schema of its arguments: an object of strings, integers and booleans, without
    /// unions, which not every model API takes.
    pub parameters: Value,
}

/// All tools, in the order of [`crate::NAMES`].
pub fn definitions() -> Vec<ToolDefinition> {
    vec![
        execute(),
        ls(),
        read_file(),
        write_file(),
        edit_file(),
        glob(),
        grep(),
    ]
}

fn tool(
    name: &'static str,
    description: &'static str,
    properties: &Value,
    required: &[&str],
) -> ToolDefinition {
    ToolDefinition {
        name,
        description,
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn whole(description: &str) -> Value {
    json!({"type": "integer", "description": description})
}

fn execute() -> ToolDefinition {
    tool(
        "execute",
        "Executes a shell command in an isolated sandbox and returns combined stdout/stderr with the exit code.

- The shell is POSIX sh. Each call is a shell of its own: variables and `cd` do not last, files do. Use absolute paths.
- Quote paths that contain spaces.
- Of long output the beginning and the end are returned; redirect it into a file to read all of it.
- A command that runs longer than its timeout is killed with all its children. What is to go on running must be put in the background with its output redirected.
- Prefer grep, glob and read_file to shell commands for searching and reading.",
        &json!({
            "command": text("Shell command to execute in the sandbox environment."),
            "timeout": whole("Optional timeout in seconds for this command. Overrides the default of two minutes."),
        }),
        &["command"],
    )
}

fn ls() -> ToolDefinition {
    tool(
        "ls",
        "Lists all files in a directory, hidden ones too: absolute paths with sizes; directories end with a slash. Use it before reading or editing files.",
        &json!({"path": text("Absolute path to the directory to list. Must be absolute, not relative.")}),
        &["path"],
    )
}

fn read_file() -> ToolDefinition {
    tool(
        "read_file",
        "Reads a text file.

- By default it reads up to 100 lines from the beginning of the file. Use `offset` and `limit` to page through large files instead of reading them whole.
- A status header, `@@ lines A-B of N | ... @@`, sits above the content, and every line after it is verbatim file content. When something is left out, a note comes before the header. Never include the header when editing.
- An empty file returns a reminder instead of content.
- Always read a file before editing it.",
        &json!({
            "file_path": text("Absolute path to the file to read. Must be absolute, not relative."),
            "offset": whole("Line number to start reading from (0-indexed). Use for pagination of large files."),
            "limit": whole("Maximum number of lines to read. Use for pagination of large files."),
        }),
        &["file_path"],
    )
}

fn write_file() -> ToolDefinition {
    tool(
        "write_file",
        "Writes content to a file. Creates the file and its parent directories if they do not exist; replaces the file entirely if it does. Prefer edit_file for changing an existing file.",
        &json!({
            "file_path": text("Absolute path where the file should be written. Must be absolute, not relative."),
            "content": text("The text content to write to the file."),
        }),
        &["file_path", "content"],
    )
}

fn edit_file() -> ToolDefinition {
    tool(
        "edit_file",
        "Performs exact string replacements in files.

- Read the file first, and preserve its exact indentation. Never include the header of read_file in old_string or new_string.
- The edit fails if old_string is not in the file, or is there more than once and replace_all is not set.",
        &json!({
            "file_path": text("Absolute path to the file to edit. Must be absolute, not relative."),
            "old_string": text("The exact text to find and replace. Must be unique in the file unless replace_all is true."),
            "new_string": text("The text to replace old_string with. Must be different from old_string."),
            "replace_all": json!({
                "type": "boolean",
                "description": "If true, replace all occurrences of old_string. If false (default), old_string must be unique.",
            }),
        }),
        &["file_path", "old_string", "new_string"],
    )
}

fn glob() -> ToolDefinition {
    tool(
        "glob",
        "Finds files matching a glob pattern, returning absolute paths.

- `*` (any characters within a path segment), `**` (any directories), `?` (one character), `[abc]` (one of a set), `{a,b}` (alternatives).
- A pattern without `/` matches the file name at any depth below the search root. One with `/` matches the path relative to it; a leading `/` anchors to it.
- Names with a leading dot are only matched when the segment itself starts with a dot. `**` does not descend into dot-directories: `*.yml` is broader than `**/*.yml`.",
        &json!({
            "pattern": text("Glob pattern to match files, as `*.py`, `src/**/*.py`, `*.{yml,yaml}`."),
            "path": text("Absolute path of the directory to search from. Defaults to the working directory."),
        }),
        &["pattern"],
    )
}

fn grep() -> ToolDefinition {
    tool(
        "grep",
        "Searches for a LITERAL text pattern across files (NOT regex). Metacharacters are ordinary characters: `foo|bar` searches for exactly that. For a regular expression use execute with `grep -E`. Binary files are skipped.",
        &json!({
            "pattern": text("Text to search for (literal string, not regex), within one line."),
            "path": text("Absolute path of the directory or file to search in. Defaults to the working directory."),
            "glob": text("Glob pattern (NOT regex) limiting which files are searched, as `*.py`."),
            "output_mode": json!({
                "type": "string",
                "enum": ["files_with_matches", "content", "count"],
                "description": "'files_with_matches' (default): matching file paths. 'content': matching lines grouped by file, each as '<line number>: <line>'. 'count': one '<path>: <count>' line per file.",
            }),
            "max_count": whole("Optional cap on the total number of matches across all files, 1 or more. When it is hit, a note says so."),
        }),
        &["pattern"],
    )
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Map, Value, json};

    use super::definitions;
    use crate::args::{self, typed};

    /// An argument of the type that the schema names.
    fn sample(schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("string") => schema["enum"].get(0).cloned().unwrap_or(json!("/a")),
            Some("integer") => json!(1),
            Some("boolean") => json!(true),
            other => panic!("a type that not every model API takes: {other:?}"),
        }
    }

    fn agrees<T: DeserializeOwned>(name: &str, parameters: &Value) {
        let properties = parameters["properties"].as_object().unwrap();
        let required: Vec<&str> = parameters["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r.as_str().unwrap())
            .collect();
        let all: Map<String, Value> = properties
            .iter()
            .map(|(k, s)| (k.clone(), sample(s)))
            .collect();
        typed::<T>(name, Value::Object(all.clone())).expect("all properties are taken");
        for key in properties.keys() {
            let mut less = all.clone();
            less.remove(key);
            assert_eq!(
                typed::<T>(name, Value::Object(less)).is_err(),
                required.contains(&key.as_str()),
                "{name}.{key}: required in one place only"
            );
            let mut wrong = all.clone();
            wrong.insert(key.clone(), json!({"no": "such"}));
            assert!(
                typed::<T>(name, Value::Object(wrong)).is_err(),
                "{name}.{key}"
            );
        }
        let mut more = all;
        more.insert("unheard_of".into(), json!(1));
        assert!(typed::<T>(name, Value::Object(more)).is_err());
        assert_eq!(parameters["additionalProperties"], json!(false));
    }

    #[test]
    fn schemas_and_types_agree() {
        for d in definitions() {
            match d.name {
                "execute" => agrees::<args::ExecuteArgs>(d.name, &d.parameters),
                "ls" => agrees::<args::LsArgs>(d.name, &d.parameters),
                "read_file" => agrees::<args::ReadFileArgs>(d.name, &d.parameters),
                "write_file" => agrees::<args::WriteFileArgs>(d.name, &d.parameters),
                "edit_file" => agrees::<args::EditFileArgs>(d.name, &d.parameters),
                "glob" => agrees::<args::GlobArgs>(d.name, &d.parameters),
                "grep" => agrees::<args::GrepArgs>(d.name, &d.parameters),
                other => panic!("{other} has no types"),
            }
        }
        let names: Vec<_> = definitions().iter().map(|d| d.name).collect();
        assert_eq!(names, crate::NAMES);
    }

    #[test]
    fn every_mode_of_grep_is_a_type() {
        let grep = &definitions()[6].parameters;
        for mode in grep["properties"]["output_mode"]["enum"]
            .as_array()
            .unwrap()
        {
            let args = json!({"pattern": "x", "output_mode": mode});
            typed::<args::GrepArgs>("grep", args).unwrap();
        }
    }
}
