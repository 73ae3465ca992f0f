//! Files of the server's own folder: whole or not there, and for its user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a folder that nobody else can look into.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a whole new file in place of the old one. When this comes back, it outlives a power cut.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    Draft::write(path, content)?.put()?;
    sync_folder_of(path)
}

/// Has it outlive a power cut that a file of this name is there, or is not.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// A whole new file that is on disk, but not yet in the place of the old one. It goes where nobody puts it there.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    place: &'a Path,
    path: PathBuf,
    file: Option<File>,
}

impl<'a> Draft<'a> {
    pub(crate) fn write(place: &'a Path, content: &[u8]) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        let (path, file) = loop {
            let path = draft_of(place);
            match options.open(&path) {
                // Somebody of the same number, in another container or before a power cut, has one of this name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => break (path, file?),
            }
        };
        let mut draft = Self { place, path, file: None };
        let file = draft.file.insert(file);
        file.write_all(content)?;
        file.sync_all()?;
        Ok(draft)
    }

    /// Puts it in the place of the old one, and gives it to whoever goes on writing at its end.
    pub(crate) fn put(mut self) -> io::Result<File> {
        fs::rename(&self.path, self.place)?;
        Ok(self.file.take().expect("it is written to, and put once"))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // Where it was put it has that name no more.
        if self.file.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A name that no other writer in this process has. Its ending tells it from what it is a draft of.
fn draft_of(place: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{count}.new", std::process::id()));
    place.with_file_name(name)
}

/// The content of a file; nothing where there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Holds a lock on a file for as long as what comes back lives. Waits for it.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn of_two_who_write_one_file_at_once_each_writes_a_whole_one() {
        let base = tempfile::TempDir::new().unwrap();
        let path = base.path().join("file");
        std::thread::scope(|scope| {
            for letter in [b'a', b'b', b'c', b'd'] {
                let path = &path;
                scope.spawn(move || {
                    // Of different lengths, so that the end of one is seen behind the other.
                    let content = vec![letter; 1000 * usize::from(letter - b'a' + 1)];
                    for _ in 0..25 {
                        replace(path, &content).unwrap();
                        let found = read(path).unwrap().unwrap();
                        let is_whole = found.len() == 1000 * usize::from(found[0] - b'a' + 1);
                        assert!(is_whole && found.iter().all(|byte| *byte == found[0]));
                    }
                });
            }
        });
        assert_eq!(names_in(base.path()), ["file"]);
    }

    #[test]
    fn what_cannot_be_put_in_its_place_leaves_nothing_behind() {
        let base = tempfile::TempDir::new().unwrap();
        let path = base.path().join("file");
        fs::create_dir_all(path.join("in the way")).unwrap();
        replace(&path, b"content").unwrap_err();
        assert_eq!(names_in(base.path()), ["file"]);
    }

    #[test]
    fn a_draft_that_somebody_else_has_is_left_alone() {
        let base = tempfile::TempDir::new().unwrap();
        let path = base.path().join("file");
        let Some(count) = draft_of(&path)
            .file_stem()
            .and_then(|name| name.to_str()?.rsplit_once('-')?.1.parse::<u64>().ok())
        else {
            panic!("a draft has a number")
        };
        let taken = |count| base.path().join(format!("file.{}-{count}.new", std::process::id()));
        (count..count + 200).for_each(|count| fs::write(taken(count), "somebody else's").unwrap());
        replace(&path, b"content").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"content");
        assert_eq!(names_in(base.path()).len(), 201);
    }
}
