//! A small disc: ISO 9660 with the long names of Joliet, a few files at its top and nothing else. What is on it is what
//! cloud-init looks for on a disc with the label `cidata`.

use zeroize::Zeroizing;

const SECTOR: usize = 2048;
const LABEL: &str = "cidata";
/// Where things are, in sectors.
const PRIMARY: usize = 16;
const JOLIET: usize = 17;
const END: usize = 18;
const TABLES: usize = 19;
const JOLIET_TABLES: usize = 21;
const ROOT: usize = 23;
const JOLIET_ROOT: usize = 24;
const FILES: usize = 25;
/// The length of the table with the one folder that there is.
const TABLE: u32 = 10;
const FOLDER: u8 = 2;

/// A file on the disc: its short name, its name, and what is in it.
pub(super) struct File<'a> {
    /// As ISO 9660 has it: eight letters in upper case at most.
    pub(super) short: &'static str,
    pub(super) name: &'static str,
    pub(super) bytes: &'a [u8],
}

/// The disc. It is wiped when it is no longer needed, for there are keys on it.
pub(super) fn disc(files: &[File<'_>]) -> Zeroizing<Vec<u8>> {
    let mut places = Vec::with_capacity(files.len());
    let mut next = FILES;
    for file in files {
        places.push(next);
        next += file.bytes.len().div_ceil(SECTOR).max(1);
    }
    let mut disc = Zeroizing::new(vec![0_u8; next * SECTOR]);
    put(&mut disc, PRIMARY, &descriptor(1, next, TABLES, ROOT, plain));
    put(&mut disc, JOLIET, &descriptor(2, next, JOLIET_TABLES, JOLIET_ROOT, wide));
    put(&mut disc, END, b"\xffCD001\x01");
    for (tables, root) in [(TABLES, ROOT), (JOLIET_TABLES, JOLIET_ROOT)] {
        put(&mut disc, tables, &table(number(root).to_le_bytes(), 1_u16.to_le_bytes()));
        put(&mut disc, tables + 1, &table(number(root).to_be_bytes(), 1_u16.to_be_bytes()));
    }
    let records = |root: usize, name: &dyn Fn(&File<'_>) -> Vec<u8>| {
        let mut folder = [record(root, SECTOR, FOLDER, &[0]), record(root, SECTOR, FOLDER, &[1])].concat();
        for (file, place) in files.iter().zip(&places) {
            folder.extend(record(*place, file.bytes.len(), 0, &name(file)));
        }
        folder
    };
    put(&mut disc, ROOT, &records(ROOT, &|file| format!("{}.;1", file.short).into_bytes()));
    put(&mut disc, JOLIET_ROOT, &records(JOLIET_ROOT, &|file| wide(file.name)));
    for (file, place) in files.iter().zip(&places) {
        put(&mut disc, *place, file.bytes);
    }
    disc
}

fn put(disc: &mut [u8], sector: usize, bytes: &[u8]) {
    disc[sector * SECTOR..][..bytes.len()].copy_from_slice(bytes);
}

fn number(value: usize) -> u32 {
    u32::try_from(value).expect("the disc is small")
}

/// A number in both orders of bytes, as most numbers are there.
fn both(value: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&value.to_le_bytes());
    bytes[4..].copy_from_slice(&value.to_be_bytes());
    bytes
}

fn both_short(value: u16) -> [u8; 4] {
    let [a, b] = value.to_le_bytes();
    [a, b, b, a]
}

fn plain(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// Text as Joliet has it.
fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// What says where everything is: the primary one, or that of Joliet.
fn descriptor(kind: u8, sectors: usize, tables: usize, root: usize, text: fn(&str) -> Vec<u8>) -> Vec<u8> {
    let mut sector = vec![0_u8; SECTOR];
    let mut set = |at: usize, bytes: &[u8]| sector[at..at + bytes.len()].copy_from_slice(bytes);
    // Text is filled up with spaces.
    let blank = |length: usize| text(&" ".repeat(length)).into_iter().take(length).collect::<Vec<_>>();
    for (at, length) in [(8, 32), (40, 32), (190, 128), (318, 128), (446, 128), (574, 128), (702, 111)] {
        set(at, &blank(length));
    }
    set(0, &[kind]);
    set(1, b"CD001\x01");
    set(40, &text(LABEL));
    set(80, &both(number(sectors)));
    if kind == 2 {
        set(88, b"%/E");
    }
    set(120, &both_short(1));
    set(124, &both_short(1));
    set(128, &both_short(2048));
    set(132, &both(TABLE));
    set(140, &number(tables).to_le_bytes());
    set(148, &number(tables + 1).to_be_bytes());
    set(156, &record(root, SECTOR, FOLDER, &[0]));
    for at in [813, 830, 847, 864] {
        set(at, b"0000000000000000\0");
    }
    set(881, &[1]);
    sector
}

/// The table with the one folder that there is.
fn table(root: [u8; 4], parent: [u8; 2]) -> Vec<u8> {
    [&[1, 0][..], &root, &parent, &[0, 0]].concat()
}

fn record(place: usize, length: usize, flags: u8, name: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0];
    record.extend(both(number(place)));
    record.extend(both(number(length)));
    // The first day of 1980: the same files are the same disc.
    record.extend([80, 1, 1, 0, 0, 0, 0, flags, 0, 0]);
    record.extend(both_short(1));
    record.push(u8::try_from(name.len()).expect("names are short"));
    record.extend(name);
    if record.len() % 2 == 1 {
        record.push(0);
    }
    record[0] = u8::try_from(record.len()).expect("names are short");
    record
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn files() -> [File<'static>; 3] {
        static LONG: [u8; 5000] = [b'x'; 5000];
        [
            File { short: "USERDATA", name: "user-data", bytes: b"#cloud-config\n" },
            File { short: "METADATA", name: "meta-data", bytes: b"" },
            File { short: "NETWORK", name: "network-config", bytes: &LONG },
        ]
    }

    #[test]
    fn a_disc_is_where_it_says_that_things_are() {
        let disc = disc(&files());
        assert_eq!(disc.len(), (FILES + 1 + 1 + 3) * SECTOR);
        let at = |sector: usize, place: usize, length: usize| &disc[sector * SECTOR + place..][..length];
        assert_eq!(at(PRIMARY, 0, 7), b"\x01CD001\x01");
        assert_eq!(at(PRIMARY, 40, 8), b"cidata  ");
        assert_eq!(at(JOLIET, 88, 3), b"%/E");
        assert_eq!(at(JOLIET, 40, 14), b"\0c\0i\0d\0a\0t\0a\0 ");
        assert_eq!(at(END, 0, 7), b"\xffCD001\x01");
        assert_eq!(at(FILES, 0, 14), b"#cloud-config\n");
        let folder = at(JOLIET_ROOT, 0, SECTOR);
        assert!(folder.windows(18).any(|name| name == wide("user-data")));
        assert!(at(ROOT, 0, SECTOR).windows(11).any(|name| name == b"USERDATA.;1"));
    }

    #[test]
    fn the_kernel_reads_the_disc() {
        let folder = tempfile::tempdir().unwrap();
        let (image, place) = (folder.path().join("seed.iso"), folder.path().join("mounted"));
        fs::write(&image, &*disc(&files())).unwrap();
        fs::create_dir(&place).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "iso9660", "-o", "loop,ro"]).arg(&image).arg(&place).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            return println!("skipped: nothing can be mounted here");
        }
        let read: Vec<_> = files().iter().map(|file| fs::read(place.join(file.name)).ok()).collect();
        let label = Command::new("blkid").args(["-o", "value", "-s", "LABEL"]).arg(&image).output();
        Command::new("umount").arg(&place).status().unwrap();
        let expected: Vec<_> = files().iter().map(|file| Some(file.bytes.to_vec())).collect();
        assert_eq!(read, expected);
        if let Ok(label) = label {
            assert_eq!(String::from_utf8_lossy(&label.stdout).trim(), LABEL);
        }
    }
}
