//! The files of a site as they were read: path, kind, name and bytes.
//!
//! Reading them from a disk is somebody else's work; this module only says which paths belong to a site and
//! what each of them is.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The largest file that is parsed. A manifest of 100,000 nodes needs about 15 MiB.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;

/// What a file of a site describes. The folder decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// `site.yaml`: what holds for every host and node.
    Site,
    /// `hosts/<name>.yaml` or `hosts/<name>/host.yaml`: a place for nodes.
    Host,
    /// `manifests/<name>.yaml`: nodes and how they hang together.
    Manifest,
    /// `specs/<name>.yaml`: what a node becomes.
    Spec,
    /// `presets/<name>.yaml`: how large a node is.
    Preset,
    /// `postures/<name>.yaml`: how a node is secured.
    Posture,
}

impl FileKind {
    /// Every kind, in the order in which problems of equal paths are told.
    pub const ALL: [Self; 6] =
        [Self::Site, Self::Host, Self::Manifest, Self::Spec, Self::Preset, Self::Posture];

    /// The folder that holds files of this kind; the site file lies beside the folders.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Site => "",
            Self::Host => "hosts",
            Self::Manifest => "manifests",
            Self::Spec => "specs",
            Self::Preset => "presets",
            Self::Posture => "postures",
        }
    }

    /// The word for one of them, as people say it.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Host => "host",
            Self::Manifest => "manifest",
            Self::Spec => "spec",
            Self::Preset => "preset",
            Self::Posture => "posture",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.noun())
    }
}

/// The language a file is written in. The ending decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.yaml`, `.yml`
    Yaml,
    /// `.json`
    Json,
    /// `.toml`
    Toml,
    /// `.nix`: known, so that it can be named in a message; evaluated elsewhere.
    Nix,
}

impl Format {
    fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            "nix" => Some(Self::Nix),
            _ => None,
        }
    }
}

/// Where a path stands in a site: its kind, its name and its language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What the file describes.
    pub kind: FileKind,
    /// The file's key: its stem, or for `hosts/<name>/host.yaml` the folder's name.
    pub stem: String,
    /// The language it is written in.
    pub format: Format,
}

impl Place {
    /// Says what the file at `path`, relative to the site and with `/` between parts, is; `None` for files that
    /// are not part of a site, such as a README or a host's NixOS module.
    pub fn of(path: &str) -> Option<Self> {
        let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
        let (stem, extension) = file.rsplit_once('.')?;
        let format = Format::of_extension(extension)?;
        if stem.is_empty() || stem.starts_with('.') {
            return None;
        }
        let place = |kind, stem: &str| Some(Self { kind, stem: stem.to_owned(), format });
        match folders {
            "" if stem == "site" && format != Format::Nix => place(FileKind::Site, stem),
            "manifests" => place(FileKind::Manifest, stem),
            _ if format == Format::Nix => None,
            "hosts" => place(FileKind::Host, stem),
            "specs" => place(FileKind::Spec, stem),
            "presets" => place(FileKind::Preset, stem),
            "postures" => place(FileKind::Posture, stem),
            _ => match folders.strip_prefix("hosts/") {
                Some(host) if stem == "host" && !host.contains('/') => place(FileKind::Host, host),
                _ => None,
            },
        }
    }
}

/// One file of a site, with what was read of it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path to show, relative to the site where it lies inside.
    pub path: String,
    /// What it is.
    pub place: Place,
    /// Its bytes, or why they could not be had.
    pub content: Result<Vec<u8>, String>,
}

/// All files of a site, in the order of their paths, whatever order the disk gave.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Puts the files into their order.
    pub fn new(mut files: Vec<Source>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// Builds a site from paths and texts; paths that are not part of a site are left out.
    pub fn from_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = texts.into_iter().filter_map(|(path, text)| {
            let place = Place::of(path)?;
            Some(Source { path: path.to_owned(), place, content: Ok(text.as_bytes().to_vec()) })
        });
        Self::new(files.collect())
    }

    /// The same files, each as `turn` has it.
    pub fn map(self, turn: impl FnMut(Source) -> Source) -> Self {
        Self::new(self.files.into_iter().map(turn).collect())
    }

    /// Every file, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// Whether there is a file of this kind and name.
    pub fn holds(&self, kind: FileKind, name: &str) -> bool {
        self.of_kind(kind).any(|source| source.place.stem == name)
    }

    /// The files of one kind, in order.
    pub fn of_kind(&self, kind: FileKind) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(move |source| source.place.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<(FileKind, &str)>) {
        let place = Place::of(path);
        assert_eq!(place.as_ref().map(|p| (p.kind, p.stem.as_str())), expected, "{path}");
    }

    #[test]
    fn the_folder_decides_what_a_file_is() {
        check("site.yaml", Some((FileKind::Site, "site")));
        check("hosts/father.yaml", Some((FileKind::Host, "father")));
        check("hosts/father/host.toml", Some((FileKind::Host, "father")));
        check("manifests/edge.json", Some((FileKind::Manifest, "edge")));
        check("manifests/edge.nix", Some((FileKind::Manifest, "edge")));
        check("specs/base.yml", Some((FileKind::Spec, "base")));
    }

    #[test]
    fn other_files_are_not_part_of_a_site() {
        for path in ["README.md", "hosts/web/default.nix", "hosts/a/b/host.yaml", "specs/.base.yaml.swp"] {
            check(path, None);
        }
        for path in ["manifests/.yaml", "manifests/..yaml", "secrets/api.yaml", "manifests/old/x.yaml"] {
            check(path, None);
        }
    }
}
