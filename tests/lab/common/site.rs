//! The small site that most tests use: one host, one preset, one spec, and a manifest of the test's own.

use super::Lab;

/// How long things may take where a test waits for a limit to be reached, or for nothing to be.
pub(crate) const TIMEOUTS: &str = "timeouts: { create: 30s, boot: 20s, config: 30s, destroy: 20s }";

const SITE: &str = "name: lab\nnode_user: ops\n";
const HOST: &str = "provider: local\nimages: { \"*\": this-machine }\n";
const TINY: &str = "cores: 1\nmemory: 512\ndisk: 1\n";
const POSTURE: &str = "ssh: { port: 22, permit_root_login: prohibit-password, password_authentication: \"no\" }\n\
                       sudo: { nopasswd: true }\n";

/// A spec with one file of this content, that a node is healthy with if it has SSH.
pub(crate) fn spec(content: &str) -> String {
    format!(
        "schema_version: 1\naccess: {{ users: [{{ name: ops, sudo: true, ssh_keys: [] }}] }}\n\
         files: [{{ path: /etc/motd, content: \"{content}\" }}]\n"
    )
}

impl Lab {
    /// A lab whose manifest `lab` has these settings and nodes, a line each; `plain` is a spec, `tiny` a preset.
    pub(crate) fn with_nodes(settings: &str, nodes: &[&str]) -> Self {
        let lab = Self::with_site(&[
            ("site.yaml", SITE),
            ("hosts/father.yaml", HOST),
            ("presets/tiny.yaml", TINY),
            ("postures/dev.yaml", POSTURE),
            ("specs/plain.yaml", &spec("as wanted")),
        ]);
        lab.write_nodes(settings, nodes);
        lab
    }

    /// Writes the manifest `lab` anew.
    pub(crate) fn write_nodes(&self, settings: &str, nodes: &[&str]) {
        let nodes: Vec<String> = nodes.iter().map(|node| format!("  - {{ {node} }}\n")).collect();
        let nodes = nodes.concat();
        let pattern = if nodes.contains("parent:") { "tiered" } else { "flat" };
        let head = format!("schema_version: 2\nname: lab\npattern: {pattern}\nsettings: {{ {settings} }}\n");
        self.write("manifests/lab.yaml", &format!("{head}nodes:\n{nodes}"));
    }
}

/// A node of the small site.
pub(crate) fn node(name: &str) -> String {
    format!("name: {name}, type: vm, image: any, preset: tiny, spec: plain")
}
