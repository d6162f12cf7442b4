//! What a sandbox may reach, where the server has an egress sidecar.

use serde::Serialize;

/// Whether something may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Access {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// What a sandbox may reach. The first rule that matches holds.
///
/// ```
/// use sandbox_opensandbox::NetworkPolicy;
///
/// let policy = NetworkPolicy::deny().allow("pypi.org").allow("*.pythonhosted.org");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicy {
    default_action: Access,
    egress: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Rule {
    action: Access,
    target: String,
}

impl NetworkPolicy {
    /// Nothing but what is allowed.
    pub fn deny() -> Self {
        Self::new(Access::Deny)
    }

    /// Everything but what is denied.
    pub fn open() -> Self {
        Self::new(Access::Allow)
    }

    fn new(default_action: Access) -> Self {
        Self {
            default_action,
            egress: Vec::new(),
        }
    }

    /// Adds a domain, or `*.` and one, that may be reached.
    pub fn allow(self, target: impl Into<String>) -> Self {
        self.rule(Access::Allow, target)
    }

    /// Adds a domain, or `*.` and one, that may not be reached.
    pub fn refuse(self, target: impl Into<String>) -> Self {
        self.rule(Access::Deny, target)
    }

    fn rule(mut self, action: Access, target: impl Into<String>) -> Self {
        self.egress.push(Rule {
            action,
            target: target.into(),
        });
        self
    }

    /// Whether anything outside can be reached.
    pub(crate) fn reaches(&self) -> bool {
        self.default_action == Access::Allow
            || self.egress.iter().any(|rule| rule.action == Access::Allow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_the_server_reads_it() {
        let policy = NetworkPolicy::deny().allow("pypi.org").refuse("x.org");
        assert_eq!(
            serde_json::to_string(&policy).unwrap(),
            r#"{"defaultAction":"deny","egress":[{"action":"allow","target":"pypi.org"},{"action":"deny","target":"x.org"}]}"#
        );
        assert!(policy.reaches() && !NetworkPolicy::deny().reaches());
    }
}
