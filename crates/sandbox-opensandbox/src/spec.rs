//! A spec in terms of the server's API.

use std::collections::BTreeMap;
use std::time::Duration;

use sandbox_core::{Error, ErrorKind, Mount, Network, Result, SandboxPath, SandboxSpec, defaults};

use crate::config::{DEFAULT_ENTRYPOINT, DEFAULT_IMAGE, OpenSandboxConfig};
use crate::model::{CreateRequest, Image, ImageAuth, Volume, VolumeSource};
use crate::policy::NetworkPolicy;

/// Every sandbox of this library has it.
pub(crate) const MANAGED: &str = "rs.sandbox/managed";

/// Names the call that made it.
pub(crate) const TOKEN: &str = "rs.sandbox/token";

/// What ours begin with.
const OURS: &str = "rs.sandbox/";

/// The server's shortest lifetime.
const SHORTEST: Duration = Duration::from_mins(1);

/// The longest name and the longest value of a label: Kubernetes' rule.
const LABEL: usize = 63;

/// What the server is asked to make for a spec that was filled in.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`] and [`ErrorKind::Unsupported`] naming the field that the server
/// would refuse.
pub(crate) fn request(
    config: &OpenSandboxConfig,
    spec: &SandboxSpec,
    token: &str,
) -> Result<CreateRequest> {
    let image = spec.image.as_deref().unwrap_or(DEFAULT_IMAGE);
    let memory = spec.memory.unwrap_or(defaults::MEMORY);
    let milli_cpus = spec.milli_cpus.unwrap_or(defaults::MILLI_CPUS);
    let auth = config.image_auth.as_ref();
    Ok(CreateRequest {
        image: Image {
            uri: image.to_owned(),
            auth: auth.map(|(user, password)| ImageAuth {
                username: user.clone(),
                password: password.reveal().to_owned(),
            }),
        },
        entrypoint: entrypoint(image),
        timeout: timeout(config, spec)?,
        resource_limits: BTreeMap::from([
            ("cpu", format!("{milli_cpus}m")),
            ("memory", format!("{}Mi", memory.div_ceil(1 << 20))),
        ]),
        env: spec.env.clone(),
        metadata: metadata(&spec.labels, token)?,
        network_policy: network(config, spec),
        volumes: spec
            .mounts
            .iter()
            .enumerate()
            .map(|(at, mount)| volume(at, mount))
            .collect::<Result<_>>()?,
        extensions: config.extensions.clone(),
    })
}

/// What keeps a sandbox up. OpenSandbox's own image has a program for it; any other has `tail`.
fn entrypoint(image: &str) -> Vec<String> {
    let own = DEFAULT_IMAGE.split(':').next().unwrap_or_default();
    let argv: &[&str] = if image.split([':', '@']).next() == Some(own) {
        &[DEFAULT_ENTRYPOINT]
    } else {
        &["tail", "-f", "/dev/null"]
    };
    argv.iter().map(ToString::to_string).collect()
}

/// The lifetime in seconds; `None` for no end.
fn timeout(config: &OpenSandboxConfig, spec: &SandboxSpec) -> Result<Option<u64>> {
    if spec.lifetime.is_none() && config.no_expiry {
        return Ok(None);
    }
    let lifetime = spec.effective_lifetime();
    if lifetime < SHORTEST {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "the lifetime is shorter than OpenSandbox's shortest, a minute",
        )
        .with("field", "lifetime")
        .with("seconds", lifetime.as_secs()));
    }
    Ok(Some(
        lifetime.as_secs() + u64::from(lifetime.subsec_nanos() > 0),
    ))
}

/// The policy for what the spec asks for; the server's own, unless something is asked for.
pub(crate) fn network(config: &OpenSandboxConfig, spec: &SandboxSpec) -> Option<NetworkPolicy> {
    match spec.network {
        Some(Network::None) => Some(NetworkPolicy::deny()),
        _ => config.network_policy.clone(),
    }
}

/// The labels of a spec and ours.
fn metadata(labels: &BTreeMap<String, String>, token: &str) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::from([
        (MANAGED.to_owned(), "1".to_owned()),
        (TOKEN.to_owned(), token.to_owned()),
    ]);
    for (name, value) in labels {
        check_label(name, value)?;
        all.insert(name.clone(), value.clone());
    }
    Ok(all)
}

/// The labels of the spec, of all that a sandbox has.
pub(crate) fn of_spec(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let of_spec = metadata.iter().filter(|(name, _)| !name.starts_with(OURS));
    of_spec.map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// # Errors
///
/// [`ErrorKind::Unsupported`] for a label that the server does not take.
pub(crate) fn check_label(name: &str, value: &str) -> Result<()> {
    let (prefix, word) = match name.split_once('/') {
        Some((prefix, word)) => (Some(prefix), word),
        None => (None, name),
    };
    let prefix_fits = prefix.is_none_or(|prefix| {
        prefix.len() <= 253
            && prefix.split('.').all(|part| {
                let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
                !part.is_empty() && part.bytes().all(plain)
            })
            && prefix != "opensandbox.io"
    });
    if prefix_fits
        && !name.starts_with(OURS)
        && is_label(word)
        && (value.is_empty() || is_label(value))
    {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        "a label of OpenSandbox is 1 to 63 letters, digits, `-`, `_` or `.`, with a letter or digit \
         at both ends; its value too, or empty",
    )
    .with("field", "labels")
    .with("label", crate::error::shorten(name)))
}

fn is_label(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= LABEL
        && ends(text.chars().next())
        && ends(text.chars().last())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn volume(at: usize, mount: &Mount) -> Result<Volume> {
    let target = SandboxPath::new(&mount.target).map_err(|e| e.with("field", "mounts"))?;
    let source = if mount.source.starts_with('/') {
        VolumeSource::Host {
            path: mount.source.clone(),
        }
    } else {
        VolumeSource::Pvc {
            claim_name: mount.source.clone(),
        }
    };
    Ok(Volume {
        name: format!("mount-{at}"),
        mount_path: target.as_str().to_owned(),
        read_only: mount.read_only,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(config: &OpenSandboxConfig, spec: &SandboxSpec) -> serde_json::Value {
        serde_json::to_value(request(config, &config.fill(spec), "t0k").unwrap()).unwrap()
    }

    #[test]
    fn a_spec_is_written_as_the_server_reads_it() {
        let config = OpenSandboxConfig::new("h:1")
            .image("python:3.12")
            .image_auth("u", "p4ss");
        let spec = SandboxSpec::new()
            .env("A", "1")
            .memory(512 << 20)
            .milli_cpus(1500)
            .lifetime(Duration::from_millis(60_500))
            .label("team", "t1");
        assert_eq!(
            json(&config, &spec),
            serde_json::json!({
                "image": {"uri": "python:3.12", "auth": {"username": "u", "password": "p4ss"}},
                "entrypoint": ["tail", "-f", "/dev/null"],
                "timeout": 61,
                "resourceLimits": {"cpu": "1500m", "memory": "512Mi"},
                "env": {"A": "1"},
                "metadata": {"rs.sandbox/managed": "1", "rs.sandbox/token": "t0k", "team": "t1"},
            })
        );
        let shown = format!("{:?}", request(&config, &config.fill(&spec), "t").unwrap());
        assert!(!shown.contains("p4ss"), "{shown}");
    }

    #[test]
    fn defaults_are_the_servers_own_pair_and_a_lifetime() {
        let config = OpenSandboxConfig::new("h:1");
        let made = json(&config, &SandboxSpec::new());
        assert_eq!(made["image"]["uri"], DEFAULT_IMAGE);
        assert_eq!(made["entrypoint"], serde_json::json!([DEFAULT_ENTRYPOINT]));
        assert_eq!(made["timeout"], 1800);
        let made = json(&config.lifetime(None), &SandboxSpec::new());
        assert!(made.get("timeout").is_none());
    }

    #[test]
    fn what_the_server_would_refuse_is_refused_before_the_call() {
        let config = OpenSandboxConfig::new("h:1");
        for (spec, field) in [
            (
                SandboxSpec::new().lifetime(Duration::from_secs(59)),
                "lifetime",
            ),
            (SandboxSpec::new().label("a b", ""), "labels"),
            (SandboxSpec::new().label("a", "-b"), "labels"),
            (SandboxSpec::new().label("opensandbox.io/x", "b"), "labels"),
            (SandboxSpec::new().label("rs.sandbox/token", "b"), "labels"),
            (
                SandboxSpec::new().mount(Mount::writable("v", "rel")),
                "mounts",
            ),
        ] {
            let e = request(&config, &spec, "t").unwrap_err();
            assert_eq!(e.context("field"), Some(field), "{e}");
        }
    }
}
