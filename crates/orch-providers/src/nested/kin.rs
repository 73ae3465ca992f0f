//! Who lives inside of whom, as the manifest says it.

use std::collections::{BTreeMap, BTreeSet};

use orch_model::{Identity, ManifestName, Node, NodeName, SiteName};
use orch_plan::Marks;

/// Who lives inside of whom on one host.
#[derive(Debug, Clone)]
pub(crate) struct Kinship {
    site: SiteName,
    parents: BTreeMap<(ManifestName, NodeName), NodeName>,
}

impl Kinship {
    /// What these nodes say.
    pub(crate) fn of<'n>(site: &SiteName, nodes: impl Iterator<Item = &'n Node>) -> Self {
        let parent = |node: &Node| {
            let child = (node.identity.manifest.clone(), node.name().clone());
            Some((child, node.parent.clone()?))
        };
        Self::new(site, nodes.filter_map(parent).collect())
    }

    /// By the parent of each.
    pub(crate) fn new(site: &SiteName, parents: BTreeMap<(ManifestName, NodeName), NodeName>) -> Self {
        Self { site: site.clone(), parents }
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
    pub(super) fn towards(&self, node: &Identity) -> Option<NodeName> {
        let mut seen = BTreeSet::new();
        let mut at = node.node.clone();
        loop {
            let parent = self.kinship.parents.get(&(node.manifest.clone(), at.clone()));
            if parent == self.level.as_ref() {
                return (at != node.node).then_some(at);
            }
            // Whoever is not below this level is not known here, and manifests have no cycles.
            let parent = parent.filter(|parent| seen.insert((*parent).clone()))?.clone();
            at = parent;
        }
    }

    /// Whether others live inside of the node that bears these marks.
    pub(super) fn hosts(&self, marks: &Marks) -> bool {
        let is_parent = |((manifest, _), parent): (&(ManifestName, NodeName), &NodeName)| {
            *manifest == marks.manifest && *parent == marks.node
        };
        marks.site == self.kinship.site && self.kinship.parents.iter().any(is_parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_knows_which_of_its_nodes_leads_to_another() {
        let name = |text: &str| -> NodeName { text.parse().unwrap() };
        let manifest: ManifestName = "m".parse().unwrap();
        let child = |text: &str| (manifest.clone(), name(text));
        let parents = BTreeMap::from([(child("b"), name("a")), (child("c"), name("b"))]);
        let host = Kin::of_host(Kinship::new(&"s".parse().unwrap(), parents));
        let towards = |kin: &Kin, node: &str| {
            let identity =
                Identity { manifest: manifest.clone(), node: name(node), host: "h".parse().unwrap() };
            kin.towards(&identity)
        };
        let shown = ["a", "b", "c", "d"].map(|node| towards(&host, node));
        assert_eq!(shown, [None, Some(name("a")), Some(name("a")), None]);
        let inside = host.inside(&name("a"));
        assert_eq!(["b", "c"].map(|node| towards(&inside, node)), [None, Some(name("b"))]);
        assert_eq!(towards(&inside.inside(&name("b")), "c"), None);
    }
}
