//! From the model's arguments to the sandbox's operation and back to text.

use std::time::Duration;

use sandbox_core::files::{Listing, ReadPage};
use sandbox_core::{Command, Error, ErrorKind, GrepOptions, ReadOptions, Result, Sandbox};
use serde_json::Value;

use crate::args::{
    EditFileArgs, ExecuteArgs, GlobArgs, GrepArgs, LsArgs, ReadFileArgs, WriteFileArgs, typed,
};
use crate::{NAMES, ToolOptions, ToolOutput, format};

/// Lines that `read_file` gives when the model names no limit (Deep Agents' number).
const READ_LINES: u64 = 100;

pub(crate) async fn dispatch(
    options: &ToolOptions,
    sandbox: &Sandbox,
    name: &str,
    args: Value,
) -> ToolOutput {
    macro_rules! run {
        ($tool:ident) => {
            match typed(name, args) {
                Ok(args) => $tool(options, sandbox, args).await,
                Err(why) => Ok(ToolOutput::refused(why)),
            }
        };
    }
    let answer = match name {
        "execute" => run!(execute),
        "ls" => run!(ls),
        "read_file" => run!(read_file),
        "write_file" => run!(write_file),
        "edit_file" => run!(edit_file),
        "glob" => run!(glob),
        "grep" => run!(grep),
        _ => {
            let name: String = name.chars().take(60).collect();
            Ok(ToolOutput::refused(format!(
                "there is no tool {name:?}; there are: {}",
                NAMES.join(", ")
            )))
        }
    };
    answer.unwrap_or_else(|e| format::error(&e))
}

async fn execute(
    options: &ToolOptions,
    sandbox: &Sandbox,
    args: ExecuteArgs,
) -> Result<ToolOutput> {
    let timeout = match args.timeout {
        None => options.timeout,
        Some(seconds) => match u64::try_from(seconds) {
            Ok(seconds) if seconds > 0 => Duration::from_secs(seconds).min(options.timeout_max),
            _ => return Ok(ToolOutput::refused("the timeout must be 1 second or more")),
        },
    };
    let command = Command::shell(args.command)
        .merge_stderr()
        .timeout(timeout)
        .output_limit(options.output as u64);
    let response = sandbox.execute(command).await?;
    Ok(format::execute(&response, timeout, options.output))
}

async fn ls(options: &ToolOptions, sandbox: &Sandbox, args: LsArgs) -> Result<ToolOutput> {
    let Listing { entries, gaps, .. } = sandbox.ls(&args.path).await?;
    let lines = entries.iter().map(format::entry);
    Ok(format::list(lines, "No files found", &gaps, options.output))
}

async fn read_file(
    options: &ToolOptions,
    sandbox: &Sandbox,
    args: ReadFileArgs,
) -> Result<ToolOutput> {
    let asked = args.offset.unwrap_or(0);
    let offset = u64::try_from(asked).unwrap_or(0);
    let limit = match args.limit {
        None => READ_LINES,
        Some(limit) => u64::try_from(limit).unwrap_or(0),
    };
    let page = sandbox
        .read(&args.file_path, ReadOptions::new(offset, limit))
        .await?;
    Ok(match page {
        ReadPage::Text(page) => format::page(&page, asked, options.output),
        ReadPage::Empty => ToolOutput::done("System reminder: File exists but has empty contents"),
        ReadPage::Binary(bytes) => format::binary(&args.file_path, &bytes),
        // `NothingAsked` today; whatever comes, no text was read.
        _ => ToolOutput::done(format!(
            "System reminder: no lines were read because `limit` was {}. The file was not inspected and may have contents; retry with `limit` >= 1 to read it.",
            args.limit.unwrap_or_default()
        )),
    })
}

async fn write_file(_: &ToolOptions, sandbox: &Sandbox, args: WriteFileArgs) -> Result<ToolOutput> {
    sandbox.write(&args.file_path, args.content).await?;
    Ok(ToolOutput::done(format!("Updated file {}", args.file_path)))
}

async fn edit_file(_: &ToolOptions, sandbox: &Sandbox, args: EditFileArgs) -> Result<ToolOutput> {
    if args.old_string == args.new_string {
        return Ok(ToolOutput::refused(
            "old_string and new_string are the same: nothing to do",
        ));
    }
    let report = sandbox
        .edit(
            &args.file_path,
            &args.old_string,
            &args.new_string,
            args.replace_all,
        )
        .await?;
    Ok(ToolOutput::done(format!(
        "Successfully replaced {} instance(s) of the string in '{}'",
        report.replaced, args.file_path
    )))
}

async fn glob(options: &ToolOptions, sandbox: &Sandbox, args: GlobArgs) -> Result<ToolOutput> {
    let root = args.path.as_deref().unwrap_or(&options.root);
    let found = sandbox.glob(&args.pattern, root).await?;
    let lines = found.paths.iter().map(|p| format::quoted(p.as_str()));
    Ok(format::list(
        lines,
        "No files found",
        &found.gaps,
        options.output,
    ))
}

async fn grep(options: &ToolOptions, sandbox: &Sandbox, args: GrepArgs) -> Result<ToolOutput> {
    let mut how = GrepOptions::default();
    if let Some(n) = args.max_count {
        match u64::try_from(n) {
            Ok(n) if n > 0 => how = how.max_count(n),
            _ => return Ok(ToolOutput::refused("max_count must be 1 or more")),
        }
    }
    if let Some(glob) = args.glob.filter(|g| !g.is_empty()) {
        how = how.glob(glob);
    }
    let root = args.path.as_deref().unwrap_or(&options.root);
    let found = sandbox.grep(&args.pattern, root, how).await;
    let found = found.map_err(|e| match e.kind() {
        // Said with this tool's words: the model has no "text".
        ErrorKind::InvalidArgument => Error::new(
            ErrorKind::InvalidArgument,
            "the pattern must be text within one line, not empty",
        ),
        _ => e,
    })?;
    Ok(format::hits(&found, args.output_mode, options.output))
}
