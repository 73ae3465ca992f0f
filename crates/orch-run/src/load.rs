//! Reads the files of a site from disk. Only this module does; what the files mean is decided elsewhere.
//!
//! A file that cannot be read is handed on with the reason, so that it is told together with every other problem.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use orch_model::{FileKind, MAX_FILE_BYTES, Place, Source, Sources};
use thiserror::Error;

/// A site cannot be found or listed.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No folder above this one is a site.
    #[error("`{0}` is not in a site: neither it nor a folder above it holds `manifests/`")]
    NoSite(PathBuf),
    /// The folder given is no site.
    #[error("`{0}` is not a site: it holds no `manifests/`")]
    NotASite(PathBuf),
    /// A folder cannot be listed.
    #[error("`{path}` cannot be listed")]
    List {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file given by name is no manifest by its name.
    #[error("`{0}` is not a manifest: its name must end in .yaml, .yml, .json, .toml or .nix")]
    NotAManifest(PathBuf),
}

impl LoadError {
    /// What to try next.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoSite(_) => "name a site with --site DIR or ORCH_SITE, or make one with `orch init DIR`",
            Self::NotASite(_) => "make one there with `orch init DIR`",
            Self::List { .. } => "see whether the folder exists and can be read",
            Self::NotAManifest(_) => "rename the file",
        }
    }
}

/// Finds the site: the folder given, or the nearest folder at or above `from` that holds `manifests/`.
pub fn find(given: Option<&Path>, from: &Path) -> Result<PathBuf, LoadError> {
    let is_site = |folder: &Path| folder.join("manifests").is_dir();
    match given {
        Some(folder) if is_site(folder) => Ok(folder.to_owned()),
        Some(folder) => Err(LoadError::NotASite(folder.to_owned())),
        None => from
            .ancestors()
            .find(|folder| is_site(folder))
            .map(Path::to_owned)
            .ok_or_else(|| LoadError::NoSite(from.to_owned())),
    }
}

/// Reads every file of the site.
pub fn site(root: &Path) -> Result<Sources, LoadError> {
    let mut paths = Vec::new();
    for folder in FileKind::ALL.map(FileKind::folder) {
        paths.extend(paths_in(root, folder)?);
    }
    for (folder, _) in entries(root, "hosts")?.into_iter().filter(|(_, is_folder)| *is_folder) {
        paths.extend(paths_in(root, &folder)?);
    }
    let sources = paths.into_iter().filter_map(|path| {
        let place = Place::of(&path)?;
        let content = read(&root.join(&path));
        Some(Source { path, place, content })
    });
    Ok(Sources::new(sources.collect()))
}

/// Puts a manifest from elsewhere among the files of a site, in place of the site's own of that name.
pub fn with_manifest(site: &Sources, path: &Path) -> Result<Sources, LoadError> {
    let not_a_manifest = || LoadError::NotAManifest(path.to_owned());
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(not_a_manifest)?;
    let place = Place::of(&format!("manifests/{name}")).ok_or_else(not_a_manifest)?;
    let is_other = |source: &&Source| (source.place.kind, &source.place.stem) != (place.kind, &place.stem);
    let mut sources: Vec<Source> = site.iter().filter(is_other).cloned().collect();
    sources.push(Source { path: path.display().to_string(), place, content: read(path) });
    Ok(Sources::new(sources))
}

/// What lies directly in a folder, as paths relative to the site; a folder that is not there holds nothing. Folders are
/// not left out: one that is named like a file of the site is a mistake, and is told when it is read.
fn paths_in(root: &Path, folder: &str) -> Result<Vec<String>, LoadError> {
    Ok(entries(root, folder)?.into_iter().map(|(path, _)| path).collect())
}

/// Everything directly in a folder, as paths relative to the site, and whether it is a folder itself.
fn entries(root: &Path, folder: &str) -> Result<Vec<(String, bool)>, LoadError> {
    let path = root.join(folder);
    let listed = match fs::read_dir(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let listed = listed.map_err(|source| LoadError::List { path, source })?;
    let relative = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    // Following links, so that a linked folder of a host counts; what cannot be followed is told when it is read.
    let entry = |entry: fs::DirEntry| {
        let is_folder = fs::metadata(entry.path()).is_ok_and(|found| found.is_dir());
        (relative(&entry.file_name().to_string_lossy()), is_folder)
    };
    Ok(listed.into_iter().map(entry).collect())
}

/// Reads at most as much as is ever parsed. Only regular files are opened: a pipe would never end.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a regular file".into());
    }
    if found.len() > MAX_FILE_BYTES as u64 {
        return Err(format!("it is larger than {} MiB", MAX_FILE_BYTES / 1024 / 1024));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_FILE_BYTES as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}
