//! The name of the node: in `/etc/hostname`, in the kernel, and as its own address in `/etc/hosts`.

use std::path::Path;
use std::rc::Rc;

use orch_model::Config;

use super::{Claims, Look, Resource};
use crate::error::ApplyError;
use crate::lines::Lines;
use crate::node::Node;
use crate::settings_file::SettingsFile;

const HOSTS: &str = "/etc/hosts";

pub(super) struct Hostname {
    name: String,
    /// The line of `/etc/hosts` by which the node knows itself.
    line: String,
    claims: Rc<Claims>,
}

impl Hostname {
    pub(super) fn new(config: &Config, claims: Rc<Claims>) -> Self {
        let name = config.hostname.to_string();
        let line = match &config.role.domain {
            Some(domain) => format!("127.0.1.1 {name}.{domain} {name}"),
            None => format!("127.0.1.1 {name}"),
        };
        Self { name, line, claims }
    }

    fn file(&self) -> SettingsFile<'static> {
        SettingsFile::new("/etc/hostname", format!("{}\n", self.name))
    }

    /// `/etc/hosts` as it should be; nothing where it already is, or where the configuration brings its own.
    fn hosts(&self, node: &Node) -> Result<Option<SettingsFile<'static>>, ApplyError> {
        if self.claims.hold(node, HOSTS) {
            return Ok(None);
        }
        let old = node.read(Path::new(HOSTS))?.unwrap_or_else(|| b"127.0.0.1 localhost\n".to_vec());
        let mut lines = Lines::of(&old);
        lines.set(self.line.as_bytes(), |line| {
            line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()) == Some(b"127.0.1.1")
        });
        let new = lines.into_bytes();
        Ok((node.read(Path::new(HOSTS))?.as_ref() != Some(&new)).then(|| SettingsFile::new(HOSTS, new)))
    }

    fn kernel_differs(&self, node: &Node) -> bool {
        node.is_real() && rustix::system::uname().nodename().to_bytes() != self.name.as_bytes()
    }
}

impl Resource for Hostname {
    fn kind(&self) -> &'static str {
        "hostname"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        let words = [
            self.file().difference(node)?.map(|how| format!("/etc/hostname: {how}")),
            self.kernel_differs(node).then(|| "the kernel has another name".into()),
            self.hosts(node)?.map(|_| "/etc/hosts does not name the node".into()),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        Ok(Look::of((!words.is_empty()).then(|| words.join("; "))))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        self.file().write(node)?;
        if self.kernel_differs(node) {
            rustix::system::sethostname(self.name.as_bytes())
                .map_err(ApplyError::file("set the kernel's", Path::new("hostname")))?;
        }
        // Last: until then the node may be asked for by its old name.
        self.hosts(node)?.map_or(Ok(()), |hosts| hosts.write(node))
    }
}
