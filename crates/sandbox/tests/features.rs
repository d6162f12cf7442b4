//! What `connect` answers in this set of features. `cargo xtask test` runs it with none, each
//! alone, and all.

use sandbox::{ErrorKind, SCHEMES, connect};

const ALL: [&str; 3] = ["mock", "docker", "opensandbox"];

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

#[cfg(feature = "mock")]
mod mock {
    use sandbox::{SandboxSpec, blocking, connect, connect_ref};

    #[tokio::test]
    async fn a_sandbox_is_picked_up_by_its_reference() {
        let client = connect("mock:").await.unwrap();
        let owner = client.create(SandboxSpec::new()).await.unwrap();
        owner.upload("/workspace/a", "here").await.unwrap();
        let same = connect_ref(&owner.reference()).await.unwrap();
        assert_eq!(same.download("/workspace/a").await.unwrap(), "here");
        drop(same);
        assert!(owner.execute("true").await.unwrap().success());
    }

    /// Inside a runtime too: that is where a blocking facade of the usual kind panics.
    #[tokio::test]
    async fn blocking_works_inside_a_runtime() {
        let client = blocking::connect("mock:").unwrap();
        let owner = client.create(SandboxSpec::new()).unwrap();
        assert_eq!(owner.execute("echo hi").unwrap().output(), "hi\n");
        let same = blocking::connect_ref(&owner.reference()).unwrap();
        assert!(same.execute("true").unwrap().success());
        owner.kill().unwrap();
    }

    #[tokio::test]
    async fn an_option_that_does_not_exist_is_refused() {
        let error = connect("mock:?colour=red").await.unwrap_err();
        assert_eq!(error.kind(), sandbox::ErrorKind::Config);
        assert!(error.to_string().contains("colour"), "{error}");
    }
}

#[cfg(feature = "opensandbox")]
mod opensandbox {
    use sandbox::{ErrorKind, blocking, connect};

    #[tokio::test]
    async fn a_url_that_names_no_server_is_refused_and_a_key_in_it_too() {
        for bad in [
            "opensandbox:",
            "opensandbox:///python:3.12",
            "opensandbox://127.0.0.1:8080?colour=red",
            "opensandbox://127.0.0.1:8080?api_key=k3y",
            "opensandbox://k3y@127.0.0.1:8080",
        ] {
            let error = connect(bad).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{bad}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_unavailable() {
        // Bound and closed again: nobody listens there.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let error = blocking::connect(&format!("opensandbox://{address}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
