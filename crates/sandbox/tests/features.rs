//! What `connect` answers in this set of features. `cargo xtask test` runs it with none, each
//! alone, and all.

use sandbox::{ErrorKind, SCHEMES, connect};

const ALL: [&str; 2] = ["mock", "docker"];

#[tokio::test]
async fn a_backend_without_its_feature_names_the_feature() {
    for scheme in ALL.iter().filter(|s| !SCHEMES.contains(s)) {
        let error = connect(&format!("{scheme}:")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let wanted = format!("features = [\"{scheme}\"]");
        assert!(error.message().contains(&wanted), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_scheme_lists_what_exists_and_there_is_no_fallback() {
    for url in ["firecracker://x", "mocks:", "file:///tmp"] {
        let error = connect(url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        for scheme in ALL {
            assert!(error.message().contains(scheme), "{error}");
        }
    }
    for url in ["", "mock", "MOCK:"] {
        assert_eq!(connect(url).await.unwrap_err().kind(), ErrorKind::Config);
    }
}

#[test]
fn blocking_answers_the_same() {
    let error = sandbox::blocking::connect("firecracker://x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}
