//! The report of one backend beside that of the mock.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use clap::Parser as _;
use sandbox_examples::data_analysis::{self, Options, Outcome};

use crate::png::Picture;

/// Charts at the least.
const CHARTS: usize = 4;

/// A chart smaller than that can't be read.
const LEAST: usize = 300;

/// Analyses the shipped CSV on the mock and on the backend of `url`, which has pandas and seaborn.
/// The text must be the same, but for the endings of the images' names; the charts must be PNG, and
/// show something.
///
/// # Errors
///
/// What is wrong.
pub(crate) fn is_that_of_the_mock(url: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (mock, real) = (folder.path().join("mock"), folder.path().join("real"));
    let expected = analyse("mock:", &mock)?;
    let outcome = analyse(url, &real)?;
    if !outcome.refused.is_empty() {
        return Err(format!("refused: {:?}", outcome.refused));
    }
    let (expected, got) = (text(&expected)?, text(&outcome)?);
    if expected != got {
        let differing = expected.lines().zip(got.lines()).find(|(a, b)| a != b);
        return Err(format!("the reports differ: {differing:?}"));
    }
    if outcome.images.len() < CHARTS {
        return Err(format!("too few charts: {:?}", outcome.images));
    }
    outcome.images.iter().try_for_each(|image| chart(image))
}

fn analyse(url: &str, out: &Path) -> Result<Outcome, String> {
    let out = out.to_str().ok_or("no UTF-8")?;
    let options = Options::parse_from(["data_analysis", "--backend", url, "--out", out]);
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let run = data_analysis::run(&options, Arc::new(|_| {}));
    runtime.block_on(run).map_err(|e| format!("{url}: {e}"))
}

/// The text, one ending for all images.
fn text(outcome: &Outcome) -> Result<String, String> {
    let text = fs::read_to_string(&outcome.report).map_err(|e| e.to_string())?;
    Ok(text.replace(".svg)", ".image)").replace(".png)", ".image)"))
}

fn chart(path: &Path) -> Result<(), String> {
    let wrong = |why: &str| format!("{}: {why}", path.display());
    let bytes = fs::read(path).map_err(|e| wrong(&e.to_string()))?;
    let picture = Picture::decode(&bytes).map_err(&wrong)?;
    if picture.width < LEAST || picture.height < LEAST {
        return Err(wrong("too small to read"));
    }
    // A frame and a title alone are less.
    if picture.drawn() < 0.02 {
        return Err(wrong("blank"));
    }
    Ok(())
}
