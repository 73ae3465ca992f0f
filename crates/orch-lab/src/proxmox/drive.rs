//! Disks and drives of a guest, as its configuration names them, and the volumes behind them.

use super::guest::{Guest, Kind};
use super::settings::{ProxmoxSettings, ProxmoxStorage};
use super::state::{State, Volume, seconds, storage_of};

/// A drive: what is in it, and its options.
pub(super) struct Drive<'a> {
    pub(super) source: &'a str,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Drive<'a> {
    pub(super) fn parse(value: &'a str) -> Self {
        let (mut source, mut options) = ("", Vec::new());
        for part in value.split(',') {
            match part.split_once('=') {
                Some(("file" | "volume", given)) => source = given,
                Some(pair) => options.push(pair),
                None => source = part,
            }
        }
        Self { source, options }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.options.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    pub(super) fn is_cdrom(&self) -> bool {
        self.get("media") == Some("cdrom")
    }

    pub(super) fn is_cloud_init(&self) -> bool {
        self.source.ends_with(":cloudinit") || self.source.contains("-cloudinit")
    }

    /// The same drive with this in it and of this size; what only mattered when it was made is left out.
    pub(super) fn with(&self, source: &str, bytes: u64) -> String {
        let mut text = source.to_owned();
        for (name, value) in &self.options {
            if !["size", "import-from", "format"].contains(name) {
                text.push_str(&format!(",{name}={value}"));
            }
        }
        format!("{text},size={}", show_size(bytes))
    }
}

/// Whether an option of a configuration is a drive.
pub(super) fn is_drive(key: &str) -> bool {
    let buses = ["ide", "sata", "scsi", "virtio", "mp", "unused", "efidisk", "tpmstate"];
    key == "rootfs" || buses.iter().any(|bus| numbered(key, bus))
}

/// Whether a key is this word and a number.
pub(super) fn numbered(key: &str, word: &str) -> bool {
    key.strip_prefix(word)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Bytes of a size such as `8G`.
pub(super) fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let shift = match text.get(digits.len()..)? {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let unit = 1_u64 << shift;
    let tenths = part.get(..1)?.parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(unit / 10 * tenths)
}

/// Bytes in the largest unit that divides them.
pub(super) fn show_size(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let unit = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Where volumes are taken from.
pub(super) struct Stock<'a> {
    pub(super) state: &'a mut State,
    pub(super) settings: &'a ProxmoxSettings,
}

impl Stock<'_> {
    /// The storage of this name, which must be able to hold this.
    pub(super) fn storage(&self, id: &str, content: &str) -> Result<&ProxmoxStorage, String> {
        let storage = self.settings.storage(id).ok_or_else(|| format!("storage '{id}' does not exist"))?;
        if storage.holds(content) {
            return Ok(storage);
        }
        Err(format!("storage '{id}' does not support content-type '{content}'"))
    }

    /// The size of a volume, where it exists.
    pub(super) fn look(&self, volume: &str) -> Option<u64> {
        if let Some(known) = self.state.volumes.get(volume) {
            return Some(known.bytes);
        }
        let (id, rest) = volume.split_once(':')?;
        let (kind, name) = rest.split_once('/')?;
        let storage = self.settings.storage(id).filter(|storage| storage.holds(kind))?;
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return None;
        }
        let file = storage.folder.as_ref().map(|folder| folder.join(place(kind)).join(name));
        let found = file.and_then(|file| file.metadata().ok()).map(|data| data.len());
        let is_assumed = !self.settings.strict_volumes && ["import", "vztmpl"].contains(&kind);
        found.or_else(|| is_assumed.then_some(self.settings.image_bytes))
    }

    /// Makes the volume that a new drive asks for, and says what the configuration then has.
    pub(super) fn place(&mut self, kind: Kind, vmid: u32, value: &str) -> Result<String, String> {
        let drive = Drive::parse(value);
        let Some((storage, rest)) = drive.source.split_once(':') else {
            return Ok(value.to_owned());
        };
        let content = if kind == Kind::Qemu { "images" } else { "rootdir" };
        if rest == "cloudinit" {
            self.storage(storage, content)?;
            let name = format!("{storage}:vm-{vmid}-cloudinit");
            self.insert(&name, content, 4 << 20, vmid, None)?;
            return Ok(format!("{name},media=cdrom,size=4M"));
        }
        let Ok(gib) = rest.parse::<f64>() else {
            let bytes =
                self.look(drive.source).ok_or_else(|| format!("volume '{}' does not exist", drive.source))?;
            return Ok(drive.with(drive.source, bytes));
        };
        self.storage(storage, content)?;
        let asked = size(&format!("{gib:.1}G")).ok_or("invalid size")?;
        let bytes = match drive.get("import-from") {
            Some(from) if from.starts_with('/') => self.settings.image_bytes,
            Some(from) => self.look(from).ok_or_else(|| format!("volume '{from}' does not exist"))?,
            None => asked,
        };
        let name = self.free_name(storage, kind, vmid, drive.get("format"));
        self.insert(&name, content, bytes, vmid, None)?;
        Ok(drive.with(&name, bytes))
    }

    /// Copies the volume of a drive for another guest: as a layer above it, or whole.
    pub(super) fn copy(
        &mut self,
        kind: Kind,
        vmid: u32,
        value: &str,
        to: Option<&str>,
        is_full: bool,
    ) -> Result<String, String> {
        let drive = Drive::parse(value);
        let Some(source) =
            self.state.volumes.get(drive.source).cloned().filter(|volume| volume.owner.is_some())
        else {
            return Ok(value.to_owned());
        };
        let storage = to.unwrap_or_else(|| storage_of(drive.source)).to_owned();
        if drive.is_cloud_init() {
            return self.place(kind, vmid, &format!("{storage}:cloudinit"));
        }
        let name = self.free_name(&storage, kind, vmid, None);
        if is_full {
            self.storage(&storage, &source.content)?;
            self.insert(&name, &source.content, source.bytes, vmid, None)?;
            return Ok(drive.with(&name, source.bytes));
        }
        let own = name.split_once(':').map_or("", |(_, own)| own);
        let layered = format!("{}/{own}", drive.source);
        // A layer takes nothing until something is written, but is as large as what is below it to whoever looks.
        self.insert(&layered, &source.content, source.bytes, vmid, Some(drive.source.to_owned()))?;
        Ok(drive.with(&layered, source.bytes))
    }

    fn insert(
        &mut self,
        name: &str,
        content: &str,
        bytes: u64,
        owner: u32,
        parent: Option<String>,
    ) -> Result<(), String> {
        let id = storage_of(name);
        let storage = self.settings.storage(id).ok_or_else(|| format!("storage '{id}' does not exist"))?;
        let taken = if parent.is_some() { 0 } else { bytes };
        if self.state.used(id).saturating_add(taken) > storage.bytes {
            return Err(no_space(storage, name));
        }
        let format = name.rsplit_once('.').map_or("raw", |(_, ending)| ending).to_owned();
        let content = content.to_owned();
        let volume = Volume { content, format, bytes, owner: Some(owner), parent, made: seconds() };
        self.state.volumes.insert(name.to_owned(), volume);
        Ok(())
    }

    /// Makes a volume larger.
    pub(super) fn grow(&mut self, name: &str, bytes: u64) -> Result<(), String> {
        let id = storage_of(name);
        let used = self.state.used(id);
        let storage = self.settings.storage(id).ok_or_else(|| format!("storage '{id}' does not exist"))?;
        let volume =
            self.state.volumes.get_mut(name).ok_or_else(|| format!("volume '{name}' does not exist"))?;
        if (used - volume.bytes.min(used)).saturating_add(bytes) > storage.bytes {
            return Err(no_space(storage, name));
        }
        volume.bytes = bytes;
        Ok(())
    }

    fn free_name(&self, storage: &str, kind: Kind, vmid: u32, format: Option<&str>) -> String {
        let has_files = self.settings.storage(storage).is_some_and(ProxmoxStorage::has_files);
        let word = if kind == Kind::Lxc && !has_files { "subvol" } else { "vm" };
        let names = (0..).map(|number| {
            let ending = format.unwrap_or(if kind == Kind::Qemu { "qcow2" } else { "raw" });
            if has_files {
                format!("{storage}:{vmid}/{word}-{vmid}-disk-{number}.{ending}")
            } else {
                format!("{storage}:{word}-{vmid}-disk-{number}")
            }
        });
        let is_free = |name: &String| {
            let own = name.split_once(':').map_or("", |(_, own)| own);
            !self.state.volumes.keys().any(|taken| taken == name || taken.ends_with(&format!("/{own}")))
        };
        names.into_iter().find(is_free).expect("numbers do not run out before volumes do")
    }

    /// Removes the volumes of a guest, those that its configuration does not name only where that is asked for.
    pub(super) fn clear(&mut self, vmid: u32, guest: &Guest, is_thorough: bool) {
        let named: Vec<String> = guest.drives().map(|(_, drive)| drive.source.to_owned()).collect();
        self.state
            .volumes
            .retain(|name, volume| volume.owner != Some(vmid) || !(is_thorough || named.contains(name)));
    }
}

/// Where files of this kind are below the folder of a storage.
pub(super) fn place(content: &str) -> &'static str {
    match content {
        "iso" => "template/iso",
        "vztmpl" => "template/cache",
        "snippets" => "snippets",
        "backup" => "dump",
        _ => "import",
    }
}

/// What the real one says where a storage is full.
pub(super) fn no_space(storage: &ProxmoxStorage, volume: &str) -> String {
    let own = volume.rsplit(['/', ':']).next().unwrap_or(volume);
    match storage.kind.as_str() {
        "zfspool" => format!("zfs error: cannot create 'rpool/data/{own}': out of space"),
        "lvmthin" => format!("lvcreate '{own}' error: insufficient free space"),
        _ => format!("unable to create image '{own}': No space left on device"),
    }
}
