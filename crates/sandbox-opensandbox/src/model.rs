//! What the lifecycle API takes and gives.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize};

use crate::policy::NetworkPolicy;

/// A sandbox as the server describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SandboxObject {
    /// The server's name of it.
    pub id: String,
    /// What it does.
    pub status: SandboxStatus,
    /// Its labels, ours included.
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: BTreeMap<String, String>,
    /// When it ends unless renewed, by the server's clock; `None` for never.
    #[serde(default, deserialize_with = "point_in_time")]
    pub expires_at: Option<SystemTime>,
    /// What process 1 runs.
    #[serde(default, deserialize_with = "or_default")]
    pub entrypoint: Vec<String>,
}

/// What a sandbox does, and why.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct SandboxStatus {
    /// As `Running`, `Paused`, `Terminated`. More may come.
    pub state: String,
    /// Why, for programs.
    #[serde(default)]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default)]
    pub message: Option<String>,
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    pub(crate) items: Vec<SandboxObject>,
    #[serde(default)]
    pub(crate) pagination: Pagination,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pagination {
    #[serde(default)]
    pub(crate) has_next_page: bool,
}

/// Where a port of a sandbox is.
#[derive(Debug, Deserialize)]
pub(crate) struct EndpointObject {
    pub(crate) endpoint: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) headers: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Renewed {
    #[serde(default, deserialize_with = "point_in_time")]
    pub(crate) expires_at: Option<SystemTime>,
}

/// What a new sandbox should be like.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateRequest {
    pub(crate) image: Image,
    pub(crate) entrypoint: Vec<String>,
    /// In seconds; absent for no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<u64>,
    pub(crate) resource_limits: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network_policy: Option<NetworkPolicy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) volumes: Vec<Volume>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) extensions: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Image {
    pub(crate) uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<ImageAuth>,
}

#[derive(Serialize)]
pub(crate) struct ImageAuth {
    pub(crate) username: String,
    pub(crate) password: String,
}

impl std::fmt::Debug for ImageAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) mount_path: String,
    pub(crate) read_only: bool,
    #[serde(flatten)]
    pub(crate) source: VolumeSource,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VolumeSource {
    Host {
        path: String,
    },
    #[serde(rename_all = "camelCase")]
    Pvc {
        claim_name: String,
    },
}

/// The default for what is there and null.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    value: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// A point in time; one that can't be read is none.
fn point_in_time<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SystemTime>, D::Error> {
    let text: Option<String> = Option::deserialize(value)?;
    Ok(text.and_then(|text| crate::time::parse(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_written_as_the_server_reads_it() {
        let volume = Volume {
            name: "m0".into(),
            mount_path: "/data".into(),
            read_only: true,
            source: VolumeSource::Pvc {
                claim_name: "cache".into(),
            },
        };
        assert_eq!(
            serde_json::to_string(&volume).unwrap(),
            r#"{"name":"m0","mountPath":"/data","readOnly":true,"pvc":{"claimName":"cache"}}"#
        );
    }

    #[test]
    fn what_is_missing_or_new_is_no_error() {
        let text = r#"{"id":"a","status":{"state":"Dreaming"},"metadata":null,"allocation":{}}"#;
        let object: SandboxObject = serde_json::from_str(text).unwrap();
        assert_eq!(object.status.state, "Dreaming");
        assert!(object.metadata.is_empty() && object.expires_at.is_none());
    }
}
