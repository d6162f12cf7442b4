//! Everything one does with files, on any backend, whatever tools its image has.
//!
//!     cargo run -p sandbox-examples --example files

use sandbox::{ErrorKind, GrepOptions, ReadOptions, ReadPage, SandboxSpec};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example's output")]
async fn main() -> sandbox_examples::Result<()> {
    let sandbox = sandbox::connect("mock:")
        .await?
        .create(SandboxSpec::new())
        .await?;

    // Many files in one round trip; parents are made; one file's failure is that file's alone.
    let results = sandbox
        .upload_files([
            (
                "/workspace/src/main.py",
                "import util\nprint(util.greet('you'))\n",
            ),
            (
                "/workspace/src/util.py",
                "def greet(who):\n    return 'hello ' + who\n",
            ),
            ("/workspace/notes with a space.txt", "one\ntwo\nthree\n"),
            ("relative.txt", "refused"),
        ])
        .await;
    assert!(results[..3].iter().all(Result::is_ok));
    let refused = results[3].as_ref().map_err(sandbox::Error::kind);
    assert_eq!(refused, Err(ErrorKind::InvalidPath));

    for entry in sandbox.ls("/workspace").await?.entries {
        println!("{:?} {} ({} bytes)", entry.kind, entry.path, entry.size);
    }

    // Lines by number, for a model that reads page by page.
    let page = sandbox
        .read("/workspace/notes with a space.txt", ReadOptions::new(1, 1))
        .await?;
    let ReadPage::Text(page) = page else {
        return Err("text was expected".into());
    };
    println!(
        "line {} of {}: {}",
        page.start_line, page.total_lines, page.text
    );
    assert_eq!((page.text.as_str(), page.next_offset), ("two", Some(2)));

    // An edit needs a unique match, or is told to replace all.
    let edit = sandbox
        .edit("/workspace/src/util.py", "'hello '", "'good day, '", false)
        .await?;
    assert_eq!(edit.replaced, 1);
    let twice = sandbox
        .edit("/workspace/src/main.py", "util", "tools", false)
        .await;
    assert_eq!(twice.map_err(|e| e.kind()), Err(ErrorKind::NotUnique));

    let found = sandbox.glob("*.py", "/workspace").await?;
    println!(
        "python files: {:?}",
        found
            .paths
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    );
    assert_eq!(found.paths.len(), 2);

    let hits = sandbox
        .grep("greet", "/workspace", GrepOptions::default().glob("*.py"))
        .await?;
    for hit in &hits.matches {
        println!("{}:{}: {}", hit.path, hit.line, hit.text);
    }
    // A result says when it could not look everywhere.
    assert!(hits.matches.len() == 2 && hits.gaps.is_empty());

    sandbox.delete("/workspace/src").await?;
    let gone = sandbox.download("/workspace/src/main.py").await;
    assert_eq!(gone.map_err(|e| e.kind()), Err(ErrorKind::NotFound));

    sandbox.kill().await?;
    Ok(())
}
