//! Who lives inside of whom, as the manifest says it.

use std::collections::{BTreeMap, BTreeSet};

use orch_model::{ManifestName, Node, NodeName, SiteName};
use orch_plan::Marks;

/// Who lives inside of whom on one host.
#[derive(Debug, Clone)]
pub(crate) struct Kinship {
    site: SiteName,
    manifest: Option<ManifestName>,
    parents: BTreeMap<NodeName, NodeName>,
}

impl Kinship {
    /// What these nodes say.
    pub(crate) fn of<'n>(site: &SiteName, nodes: impl Iterator<Item = &'n Node>) -> Self {
        let (mut manifest, mut parents) = (None, BTreeMap::new());
        for node in nodes {
            manifest = Some(node.identity.manifest.clone());
            if let Some(parent) = &node.parent {
                parents.insert(node.name().clone(), parent.clone());
            }
        }
        Self { site: site.clone(), manifest, parents }
    }
}

/// The same, as one level sees it.
#[derive(Debug, Clone)]
pub(super) struct Kin {
    kinship: Kinship,
    /// The node that this level is inside of; none where it is the host itself.
    level: Option<NodeName>,
}

impl Kin {
    pub(super) const fn of_host(kinship: Kinship) -> Self {
        Self { kinship, level: None }
    }

    pub(super) fn inside(&self, node: &NodeName) -> Self {
        Self { kinship: self.kinship.clone(), level: Some(node.clone()) }
    }

    /// The node of this level that another one lives inside of, however deep; none where that is of this level itself.
    pub(super) fn towards<'k>(&'k self, node: &'k NodeName) -> Option<&'k NodeName> {
        let mut seen = BTreeSet::new();
        let mut at = node;
        loop {
            let parent = self.kinship.parents.get(at);
            if parent == self.level.as_ref() {
                return (at != node).then_some(at);
            }
            // Whoever is not below this level is not known here, and manifests have no cycles.
            at = parent.filter(|parent| seen.insert(*parent))?;
        }
    }

    /// Whether others live inside of the node that bears these marks.
    pub(super) fn hosts(&self, marks: &Marks) -> bool {
        let is_ours =
            marks.site == self.kinship.site && Some(&marks.manifest) == self.kinship.manifest.as_ref();
        is_ours && self.kinship.parents.values().any(|parent| *parent == marks.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_knows_which_of_its_nodes_leads_to_another() {
        let name = |text: &str| -> NodeName { text.parse().unwrap() };
        let parents = BTreeMap::from([(name("b"), name("a")), (name("c"), name("b"))]);
        let kinship = Kinship { site: "s".parse().unwrap(), manifest: Some("m".parse().unwrap()), parents };
        let (a, b, c, d) = (name("a"), name("b"), name("c"), name("d"));
        let host = Kin::of_host(kinship);
        assert_eq!([&a, &b, &c, &d].map(|node| host.towards(node)), [None, Some(&a), Some(&a), None]);
        let inside = host.inside(&a);
        assert_eq!([&b, &c].map(|node| inside.towards(node)), [None, Some(&b)]);
        assert_eq!(inside.inside(&b).towards(&c), None);
    }
}
