//! The analysis script on the mock, against figures computed independently (`data/expected.py`).

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandbox::{Command, ExecuteResponse, Sandbox, SandboxSpec};
use serde_json::Value;

const AWK: &str = include_str!("../src/data_analysis/plan/analyse.awk");

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

async fn sandbox_with(csv: Vec<u8>) -> Sandbox {
    let sandbox = sandbox::connect("mock:")
        .await
        .unwrap()
        .create(SandboxSpec::new())
        .await
        .unwrap();
    sandbox.write("/workspace/analyse.awk", AWK).await.unwrap();
    sandbox.upload("/workspace/in.csv", csv).await.unwrap();
    sandbox
}

async fn analyse(sandbox: &Sandbox, options: &str) -> ExecuteResponse {
    let text = format!("mkdir -p out && LC_ALL=C awk -f analyse.awk -v OUT=out {options} in.csv");
    let command = Command::shell(text)
        .merge_stderr()
        .timeout(Duration::from_mins(2));
    sandbox.execute(command).await.unwrap()
}

/// All values of a key, by the column's number.
struct Figures(HashMap<(String, String), Vec<String>>);

impl Figures {
    async fn of(sandbox: &Sandbox) -> Self {
        let bytes = sandbox
            .download("/workspace/out/figures.tsv")
            .await
            .unwrap();
        let mut all: HashMap<_, Vec<_>> = HashMap::new();
        for line in String::from_utf8(bytes.to_vec()).unwrap().lines() {
            let mut cells = line.splitn(3, '\t').map(str::to_owned);
            let (key, column) = (cells.next().unwrap(), cells.next().unwrap());
            all.entry((key, column))
                .or_default()
                .push(cells.next().unwrap());
        }
        Self(all)
    }

    fn all(&self, key: &str, column: &str) -> &[String] {
        self.0
            .get(&(key.to_owned(), column.to_owned()))
            .map_or(&[], Vec::as_slice)
    }
}

/// Compares every figure that the file's `.json` holds.
fn compare(name: &str, figures: &Figures) -> usize {
    let expected: Value =
        serde_json::from_slice(&std::fs::read(data(&format!("{name}.json"))).unwrap()).unwrap();
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let mut compared = 0;
    for (key, value) in expected.as_object().unwrap() {
        match (key.as_str(), value) {
            ("numbers", Value::Object(columns)) => {
                for (column, stats) in columns {
                    for (stat, value) in stats.as_object().unwrap() {
                        let got = &figures.all(stat, column)[0];
                        match value.as_f64() {
                            None => assert_eq!(got, "", "{name} {column} {stat}"),
                            Some(v) => {
                                let got: f64 = got.parse().unwrap();
                                let off = (got - v).abs();
                                assert!(
                                    off <= 1e-9 * v.abs().max(1.0),
                                    "{name} column {column} {stat}: {got}, expected {v}"
                                );
                            }
                        }
                        compared += 1;
                    }
                }
            }
            // A list a column: the figure has the name in the singular.
            (_, Value::Object(columns)) => {
                let figure = match key.as_str() {
                    "months" => "month",
                    "hosts" => "host",
                    "endings" => "ending",
                    other => other,
                };
                for (column, list) in columns {
                    let list: Vec<String> = list
                        .as_array()
                        .map_or_else(|| vec![text(list)], |l| l.iter().map(text).collect());
                    assert_eq!(
                        figures.all(figure, column),
                        list,
                        "{name} column {column} {key}"
                    );
                    compared += list.len();
                }
            }
            (_, Value::Array(columns)) => {
                let figure = match key.as_str() {
                    "names" => "name",
                    "types" => "type",
                    other => other,
                };
                for (i, value) in columns.iter().enumerate() {
                    assert_eq!(
                        figures.all(figure, &(i + 1).to_string())[0],
                        text(value),
                        "{name} column {} {key}",
                        i + 1
                    );
                    compared += 1;
                }
            }
            (_, value) => {
                assert_eq!(figures.all(key, "")[0], text(value), "{name} {key}");
                compared += 1;
            }
        }
    }
    compared
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_are_those_of_an_independent_computation() {
    for (name, least) in [
        ("quotes.csv", 30),
        ("semicolon.csv", 30),
        ("tabs.tsv", 40),
        ("latin1.csv", 15),
        ("ragged.csv", 30),
        ("numbers.csv", 40),
        ("header-only.csv", 10),
        ("one-column.csv", 15),
    ] {
        let sandbox = sandbox_with(std::fs::read(data(name)).unwrap()).await;
        if name == "latin1.csv" {
            let converted = sandbox
                .execute("iconv -f LATIN1 -t UTF-8 in.csv >utf8.csv && mv utf8.csv in.csv")
                .await
                .unwrap();
            assert!(converted.success(), "{}", converted.output());
        }
        let run = analyse(&sandbox, "").await;
        assert!(run.success(), "{name}: {}", run.output());
        let compared = compare(name, &Figures::of(&sandbox).await);
        assert!(
            compared >= least,
            "{name}: only {compared} figures compared"
        );

        let charts: Vec<String> = run
            .output()
            .lines()
            .filter_map(|l| Some(l.strip_prefix("chart\t")?.split('\t').next()?.to_owned()))
            .collect();
        assert!(
            charts.len() >= if name == "header-only.csv" { 0 } else { 4 },
            "{name}: {charts:?}"
        );
        let report = sandbox.download("/workspace/out/report.md").await.unwrap();
        let report = String::from_utf8(report.to_vec()).unwrap();
        for chart in charts {
            assert!(
                report.contains(&format!("]({chart})")),
                "{name}: {chart} is not in the report"
            );
            let svg = sandbox
                .download(format!("/workspace/{chart}"))
                .await
                .unwrap();
            let svg = String::from_utf8(svg.to_vec()).unwrap();
            assert!(svg.contains("font-weight=\"bold\"") && svg.trim_end().ends_with("</svg>"));
            assert!(
                !svg.contains("NaN") && !svg.contains("nan") && !svg.contains("inf"),
                "{name}: {chart}"
            );
        }
        sandbox.kill().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_delimiter_is_told_with_the_right_one() {
    let sandbox = sandbox_with(std::fs::read(data("semicolon.csv")).unwrap()).await;
    let run = analyse(&sandbox, "-v D=,").await;
    assert_eq!(run.exit_code(), Some(6), "{}", run.output());
    assert!(
        run.output().contains("run again with -v D=';'"),
        "{}",
        run.output()
    );
    assert!(analyse(&sandbox, "-v D=';'").await.success());
    // One column is no reason to look for another delimiter.
    let sandbox = sandbox_with(b"a\n1\n2\n".to_vec()).await;
    assert!(analyse(&sandbox, "-v D=,").await.success());
    let sandbox = sandbox_with(b"\n\n\n".to_vec()).await;
    assert_eq!(analyse(&sandbox, "").await.exit_code(), Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_cells_stay_text() {
    let csv = "<script>alert(1)</script>,\"a|b `c`\",n\n<img src=x>,\"![x](http://evil)\",1\n<img src=x>,\"]]>&\",2\n<img src=x>,\"]]>&\",4\n";
    let sandbox = sandbox_with(csv.as_bytes().to_vec()).await;
    let run = analyse(&sandbox, "").await;
    assert!(run.success(), "{}", run.output());
    let report = sandbox.download("/workspace/out/report.md").await.unwrap();
    let report = String::from_utf8(report.to_vec()).unwrap();
    assert!(!report.contains("<script>") && !report.contains("<img") && !report.contains("![x]"));
    let svg = sandbox
        .download("/workspace/out/top-values.svg")
        .await
        .unwrap();
    let svg = String::from_utf8(svg.to_vec()).unwrap();
    assert!(!svg.contains("<img") && !svg.contains("<script"), "{svg}");
}

/// The promise is 30 s on a quiet machine; the test only asks that it ends, and prints the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_rows() {
    let csv = sandbox_examples::customers::csv(100_000, 7);
    let sandbox = sandbox_with(csv.into_bytes()).await;
    let started = Instant::now();
    let run = analyse(&sandbox, "").await;
    eprintln!("100,000 rows in {:.1} s", started.elapsed().as_secs_f64());
    assert!(run.success(), "{}", run.output());
    let figures = Figures::of(&sandbox).await;
    assert_eq!(figures.all("rows", ""), ["100000"]);
    assert_eq!(figures.all("mean", "1"), ["50000.5"]);
    assert_eq!(figures.all("sum", "1"), ["5000050000"]);
    assert_eq!(figures.all("duplicates", ""), ["0"]);
}
