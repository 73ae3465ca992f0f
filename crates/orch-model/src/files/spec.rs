//! `specs/<name>.yaml`: what a node becomes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::decode::{
    Decode, Fields, Located, Property, Version, Within, choice, properties_schema, record, refuse,
};
use crate::files::host::{Install, Rollout};
use crate::text::{Reporter, Value};
use crate::unit::{Cidr, SecretRef, Timespan};
use crate::word::{
    Domain, FileMode, KeyName, NodeName, NodePath, Package, PostureName, TimeZone, Unit, UserName,
};

choice! {
    /// The software with which a node hosts others.
    pub enum Hypervisor as "hypervisor" {
        /// Proxmox VE.
        Proxmox = "proxmox",
    }
}

choice! {
    /// When a node that pulls converges again.
    pub enum Trigger as "trigger" {
        /// When it is told to.
        Manual = "manual",
        /// Every interval.
        Schedule = "schedule",
    }
}

record! {
    /// Who the node is.
    pub(crate) struct IdentitySection as "identity section" {
        /// Its host name. Default: the node's name.
        hostname: Option<NodeName>,
        /// Its domain. Default: the host's or the site's.
        domain: Option<Domain>,
    }
}

record! {
    /// A fixed address; without this section the node asks by DHCP.
    pub(crate) struct NetworkSection as "network section" {
        /// The address with its prefix, such as `10.0.0.5/24`.
        ip: Located<Cidr>,
        /// The gateway. Default: the host's or the site's.
        gateway: Option<IpAddr>,
        /// Name servers. Default: the host's or the site's.
        dns: Vec<IpAddr>,
    }
}

record! {
    /// An account on the node.
    pub(crate) struct SpecUser as "user" {
        /// Its name.
        name: Located<UserName>,
        /// Whether it may use sudo.
        sudo: bool = false,
        /// Names of the site's SSH keys that open it. Default: every key of the site.
        ssh_keys: Option<Vec<Located<KeyName>>>,
    }
}

record! {
    /// Who gets in, and how.
    pub(crate) struct AccessSection as "access section" {
        /// How the node is secured: a name under postures/. Default: `dev`.
        posture: Option<Located<PostureName>>,
        /// Accounts; ones that are not named are left alone.
        users: Vec<SpecUser>,
    }
}

record! {
    /// Services to run and not to run; ones that are not named are left alone.
    pub(crate) struct ServicesSection as "services section" {
        /// Services that run, now and after a reboot.
        enable: Vec<Unit>,
        /// Services that do not.
        disable: Vec<Located<Unit>>,
    }
}

record! {
    /// What is installed and what runs.
    pub(crate) struct PlatformSection as "platform section" {
        /// Packages; ones that are not named are left alone.
        packages: Vec<Package>,
        /// Services to run and not to run.
        services: ServicesSection,
        /// The software with which this node hosts others.
        hypervisor: Option<Hypervisor>,
    }
}

/// The `config` section: the time zone, and free keys that are handed to the node as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ConfigSection {
    pub(crate) timezone: Option<TimeZone>,
    pub(crate) free: BTreeMap<String, Json>,
}

impl Decode for ConfigSection {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, "config section", cx)?;
        let timezone = fields.take("timezone", cx);
        let free =
            fields.rest().filter_map(|e| Some((String::from(e.key.as_ref()), Json::decode(&e.value, cx)?)));
        Some(Self { timezone, free: free.collect() })
    }

    fn placeholder() -> Self {
        Self::default()
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }

    fn schema() -> Json {
        json!({
            "type": "object",
            "properties": { "timezone": Option::<TimeZone>::schema() },
            "additionalProperties": true,
        })
    }
}

record! {
    /// A file on the node.
    pub(crate) struct SpecFile as "file" {
        /// Where it lies.
        path: Located<NodePath>,
        /// What it holds.
        content: String,
        /// Its permission bits.
        mode: FileMode = default_file_mode(),
        /// Who owns it.
        owner: UserName = UserName::root(),
    }
}

record! {
    /// NixOS modules that make up the node.
    pub(crate) struct NixosSpec as "nixos section" {
        /// Modules, as paths relative to the site.
        modules: Vec<String>,
        /// How a new system reaches the node.
        rollout: Rollout = Rollout::Closure,
        /// How a machine without NixOS gets it.
        install: Option<Install>,
    }
}

record! {
    /// A secret that the node is given as a file in memory.
    pub(crate) struct SpecSecret as "secret" {
        /// What it is called: with no `from`, also its name in the site's sops files.
        name: Located<KeyName>,
        /// Where its value is: `secret:<file>#<path>` or `secret:<name>`.
        from: Option<SecretRef>,
        /// Where it appears.
        path: Located<NodePath>,
        /// Its permission bits.
        mode: FileMode = secret_file_mode(),
        /// Who owns it.
        owner: UserName = UserName::root(),
    }
}

record! {
    /// When a node that pulls converges again.
    pub(crate) struct RunSection as "run section" {
        /// When it converges again.
        trigger: Trigger = Trigger::Manual,
        /// How often, where the trigger is a schedule.
        interval: Timespan = Timespan::minutes(15),
    }
}

/// One thing that must hold for a node to count as healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// A port answers on the node itself.
    Tcp(u16),
    /// An address answers with success.
    Http(String),
    /// A service runs.
    Unit(Unit),
    /// A program, with its arguments, ends with success.
    Command(Vec<String>),
}

impl Decode for Health {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let before = cx.count();
        let mut fields = Fields::of(value, "health check", cx)?;
        let tcp: Option<Within<1, 65535>> = fields.take("tcp", cx);
        let http: Option<String> = fields.take("http", cx);
        let unit: Option<Unit> = fields.take("unit", cx);
        let command: Option<Vec<String>> = fields.take("command", cx);
        fields.finish(cx);
        let port = |port: Within<1, 65535>| u16::try_from(port.get()).ok();
        let mut given = [
            tcp.and_then(port).map(Self::Tcp),
            http.map(Self::Http),
            unit.map(Self::Unit),
            command.map(Self::Command),
        ]
        .into_iter()
        .flatten();
        match (given.next(), given.next()) {
            (Some(Self::Command(argv)), None) if argv.is_empty() => {
                refuse(value.span, "the command of a health check names a program", cx)
            }
            (Some(check), None) => Some(check),
            (None, _) if cx.count() > before => None,
            _ => refuse(value.span, "a health check is exactly one of tcp, http, unit and command", cx),
        }
    }

    fn placeholder() -> Self {
        Self::Tcp(22)
    }

    fn schema() -> Json {
        let only = |key: &'static str, doc: &str, schema| {
            let property = Property { key, schema, doc: doc.into(), required: true, default: None };
            properties_schema(doc, Vec::from([property]))
        };
        json!({ "oneOf": [
            only("tcp", "A port answers on the node itself.", Within::<1, 65535>::schema()),
            only("http", "An address answers with success.", String::schema()),
            only("unit", "A service runs.", Unit::schema()),
            only("command", "A program, with its arguments, ends with success.", Vec::<String>::schema()),
        ] })
    }
}

record! {
    /// A spec: what a node becomes.
    pub(crate) struct Spec as "spec" {
        /// The layout of this file: 1.
        schema_version: Version<1>,
        /// Who the node is.
        identity: IdentitySection,
        /// A fixed address; DHCP without it.
        network: Option<NetworkSection>,
        /// Who gets in, and how.
        access: AccessSection,
        /// What is installed and what runs.
        platform: PlatformSection,
        /// The time zone, and free keys.
        config: ConfigSection,
        /// Files.
        files: Vec<SpecFile>,
        /// NixOS modules that make up the node.
        nixos: Option<NixosSpec>,
        /// Whether the node reads sops files itself and so becomes a recipient of them.
        enroll_recipient: bool = false,
        /// Secrets that it is given as files in memory.
        secrets: Vec<SpecSecret>,
        /// What must hold for it to count as healthy.
        health: Vec<Health>,
        /// When it converges again, if it pulls.
        run: RunSection,
    }
}

impl Spec {
    /// Every path on the node that the spec writes.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Located<NodePath>> {
        self.files.iter().map(|file| &file.path).chain(self.secrets.iter().map(|secret| &secret.path))
    }

    /// The posture that it asks for, by name.
    pub(crate) fn posture(&self) -> Result<&Located<PostureName>, PostureName> {
        let dev = || "dev".parse().expect("`dev` is a posture name");
        self.access.posture.as_ref().ok_or_else(dev)
    }
}

fn default_file_mode() -> FileMode {
    "0644".parse().expect("0644 is a file mode")
}

fn secret_file_mode() -> FileMode {
    "0400".parse().expect("0400 is a file mode")
}
