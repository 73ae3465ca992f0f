//! The disk of a machine: a file with a file system of the machine's size, copied from one that was prepared, or a plain
//! folder where this computer cannot have such disks.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::SeekFrom;
use sha2::{Digest as _, Sha256};

use super::child::run_holding;
use super::image::Image;
use super::machine::{DiskTools, Means};
use super::record::Folder;
use super::seed::{Seed, hash_tree, short};
use super::store::{Store, make, remove};

const GIB: u64 = 1 << 30;

/// Makes sure that a machine that never ran has its disk. One that is there is left, unless it is of another size: the
/// machine was to be another one then. Whoever calls has the machine's lock.
pub(crate) fn make_disk(
    store: &Store,
    folder: &Folder,
    image: &Image,
    gigabytes: u32,
    means: &Means,
    lock: &File,
) -> io::Result<()> {
    let is_of_size = fs::metadata(folder.disk()).is_ok_and(|about| about.len() == u64::from(gigabytes) * GIB);
    match &means.disk {
        _ if is_of_size || folder.root().join("etc").exists() => Ok(()),
        Some(tools) => {
            make(&folder.root())?;
            let prepared = prepare(store, image, gigabytes, means, tools)?;
            let draft = folder.disk().with_extension("new");
            copy_sparse(&prepared, &draft)?;
            fs::rename(draft, folder.disk())?;
            sync(folder.path())
        }
        None => {
            let draft = folder.root().with_extension("new");
            remove(&draft)?;
            make(&draft)?;
            fill(image, &draft, means, lock)?;
            // It has too many files to be asked for one by one.
            rustix::fs::syncfs(File::open(&draft)?)?;
            remove(&folder.root())?;
            fs::rename(draft, folder.root())?;
            sync(folder.path())
        }
    }
}

/// Makes a disk larger. The machine must be off, and whoever calls has its lock.
pub(crate) fn grow(folder: &Folder, gigabytes: u32, lock: &File) -> io::Result<()> {
    let disk = folder.disk();
    if !disk.exists() {
        return Ok(());
    }
    let wanted = u64::from(gigabytes) * GIB;
    let file = OpenOptions::new().write(true).open(&disk)?;
    if file.metadata()?.len() < wanted {
        file.set_len(wanted)?;
    }
    run_holding(Command::new(tool("e2fsck")?).args(["-f", "-p"]).arg(&disk), lock, &[0, 1])?;
    run_holding(Command::new(tool("resize2fs")?).arg(&disk), lock, &[0])?;
    sync(&disk)
}

/// Comes back when a file, or the names in a folder, are on the disk that they are kept on.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// A disk of that size with the image on it, made once and then copied.
fn prepare(
    store: &Store,
    image: &Image,
    gigabytes: u32,
    means: &Means,
    tools: &DiskTools,
) -> io::Result<PathBuf> {
    let images = store.images();
    let lock = store.lock(".images-lock")?;
    make(&images)?;
    let key = match image {
        Image::ThisMachine => Seed::of_this_machine()?.key,
        Image::Folder(path) | Image::Archive(path) => key_of(path)?,
    };
    let prepared = images.join(format!("{key}-{gigabytes}.img"));
    if prepared.exists() {
        return Ok(prepared);
    }
    let (content, draft) = (images.join(".content"), images.join(".draft.img"));
    remove(&content)?;
    make(&content)?;
    let source = if let Image::Folder(path) = image {
        path.clone()
    } else {
        fill(image, &content, means, &lock)?;
        content.clone()
    };
    File::create(&draft)?.set_len(u64::from(gigabytes) * GIB)?;
    let mut mkfs = Command::new(&tools.mkfs);
    mkfs.args(["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]);
    // Whole systems have many small files; what is made from this machine's programs has few.
    let bytes_per_file = if image.shares_programs() { "65536" } else { "16384" };
    mkfs.args(["-J", "size=4", "-i", bytes_per_file]).arg("-d").arg(&source).arg(&draft);
    run_holding(&mut mkfs, &lock, &[0]).map_err(|error| too_small(error, gigabytes))?;
    remove(&content)?;
    // By its name it counts as whole from now on, also after this computer lost its power.
    sync(&draft)?;
    fs::rename(&draft, &prepared)?;
    Ok(prepared)
}

/// Says in plain words that an image does not fit, where that is why its file system cannot be made.
fn too_small(error: io::Error, gigabytes: u32) -> io::Error {
    if error.to_string().contains("ould not allocate") {
        return io::Error::other(format!("its image does not fit on {gigabytes} GB"));
    }
    error
}

/// Puts what an image holds into an empty folder.
fn fill(image: &Image, to: &Path, means: &Means, lock: &File) -> io::Result<()> {
    match image {
        Image::ThisMachine => Seed::lay_out(to, means),
        Image::Folder(path) => {
            run_holding(Command::new(tool("cp")?).arg("-aT").arg(path).arg(to), lock, &[0])
        }
        Image::Archive(path) => {
            // Archives need not say how the root itself is, and everybody has to get through it.
            fs::set_permissions(to, Permissions::from_mode(0o755))?;
            run_holding(
                Command::new(tool("tar")?).arg("-xpf").arg(path).args(["--numeric-owner", "-C"]).arg(to),
                lock,
                &[0],
            )
        }
    }
}

/// What tells one version of an image from another: where each of its files is, how large, and when it was changed.
fn key_of(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash_tree(&mut hash, path)?;
    Ok(short(hash.finalize()))
}

fn tool(name: &str) -> io::Result<PathBuf> {
    super::machine::program(name).ok_or_else(|| io::Error::other(format!("there is no `{name}` here")))
}

/// Copies a file and leaves its holes. The copy is on the disk that it is kept on when this comes back.
fn copy_sparse(from: &Path, to: &Path) -> io::Result<()> {
    let source = File::open(from)?;
    let length = source.metadata()?.len();
    let target = OpenOptions::new().write(true).create(true).truncate(true).open(to)?;
    target.set_len(length)?;
    let mut at = 0;
    while at < length {
        let data = match rustix::fs::seek(&source, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(&source, SeekFrom::Hole(data))?;
        copy_range(&source, &target, data, end)?;
        at = end;
    }
    target.sync_all()
}

fn copy_range(source: &File, target: &File, start: u64, end: u64) -> io::Result<()> {
    let (mut from, mut to) = (start, start);
    while from < end {
        let left = usize::try_from(end - from).unwrap_or(usize::MAX);
        let copied = rustix::fs::copy_file_range(
            source.as_fd(),
            Some(&mut from),
            target.as_fd(),
            Some(&mut to),
            left,
        )?;
        if copied == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_does_not_fit_is_told_in_plain_words() {
        let Ok(mkfs) = tool("mkfs.ext4") else { return };
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (image, disk) = (folder.path().join("image"), folder.path().join("disk"));
        fs::create_dir(&image).expect("a folder can be made");
        fs::write(image.join("large"), vec![1; 2 << 20]).expect("a file can be written");
        File::create(&disk).and_then(|file| file.set_len(1 << 20)).expect("a disk can be made");
        let mut command = Command::new(mkfs);
        let failed = super::super::child::run(command.args(["-q", "-F", "-d"]).arg(&image).arg(&disk), &[0]);
        let error = failed.expect_err("2 MB do not fit on 1 MB");
        assert_eq!(too_small(error, 1).to_string(), "its image does not fit on 1 GB");
        let other = io::Error::other("`mkfs.ext4` ended otherwise");
        assert_eq!(too_small(other, 1).to_string(), "`mkfs.ext4` ended otherwise");
    }
}
