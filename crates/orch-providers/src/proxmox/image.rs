//! What a machine is made from: a volume with an image, a template, or for a container a volume with its files.

use orch_plan::MachineSpec;

use super::guest::{GuestKind, Listed};
use super::trouble::Trouble;

/// What a machine is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Image<'a> {
    /// An image on a storage, such as `local:import/debian-13.qcow2`.
    Volume(&'a str),
    /// A template, by its number or name.
    Template(&'a str),
}

impl<'a> Image<'a> {
    /// What an image means. Paths are refused: only a root without token may use them.
    pub(super) fn of(text: &'a str) -> Result<Self, Trouble> {
        if let Some(template) = text.strip_prefix("template:").filter(|name| !name.is_empty()) {
            return Ok(Self::Template(template));
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Template(text));
        }
        // What stands behind a comma or a space would be another option of the disk.
        let is_word = !text.contains([',', ' ', '=']) && !text.chars().any(char::is_control);
        match text.split_once(':') {
            Some((storage, volume)) if is_word && !storage.contains('/') && volume.contains('/') => {
                Ok(Self::Volume(text))
            }
            _ => Err(Trouble::Refused(format!(
                "`{}` is no image here: write `<storage>:import/<file>`, a VMID, or `template:<name>` (in `images` of the host's file)",
                orch_model::printable(text)
            ))),
        }
    }

    /// The storage of a volume.
    pub(super) fn storage(&self) -> Option<&'a str> {
        match self {
            Self::Volume(volume) => volume.split_once(':').map(|(storage, _)| storage),
            Self::Template(_) => None,
        }
    }
}

/// The template of this number or name. A name that two have is none.
pub(super) fn template<'l>(listed: &'l [Listed], wanted: &str) -> Result<&'l Listed, Trouble> {
    let number = wanted.parse::<u32>().ok();
    let is_meant = |machine: &&Listed| {
        // A number alone could be anybody's by now.
        let is_named = number == Some(machine.spot.id.vmid) || machine.name.as_deref() == Some(wanted);
        machine.spot.id.kind == GuestKind::Qemu && machine.is_template && is_named
    };
    let mut found = listed.iter().filter(is_meant);
    let none = || Trouble::Refused(format!("there is no template `{}`", orch_model::printable(wanted)));
    let first = found.next().ok_or_else(none)?;
    if let Some(second) = found.next() {
        let (first, second) = (first.called(), second.called());
        return Err(Trouble::Refused(format!(
            "`{wanted}` is both {first} and {second}: name the VMID instead"
        )));
    }
    Ok(first)
}

/// The kind of machine that a node is here.
pub(super) fn kind(spec: &MachineSpec) -> GuestKind {
    if spec.kind == orch_model::NodeKind::Ct { GuestKind::Lxc } else { GuestKind::Qemu }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_volumes_or_templates_and_never_paths() {
        assert_eq!(Image::of("local:import/x.qcow2"), Ok(Image::Volume("local:import/x.qcow2")));
        assert_eq!(Image::of("9000"), Ok(Image::Template("9000")));
        assert_eq!(Image::of("template:debian-13"), Ok(Image::Template("debian-13")));
        for wrong in
            ["", "/var/lib/x.qcow2", "debian-13", "local:import/x,size=1", "a/b:c/d", "template:", "local:x"]
        {
            assert!(Image::of(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Image::of("nfs:import/x.qcow2").unwrap().storage(), Some("nfs"));
    }
}
