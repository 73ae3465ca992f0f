//! Reads the files at the top of an ISO 9660 image, by their long names (Rock Ridge, or else Joliet): as much as it takes to
//! find what a machine is given at its first start. Whatever is not in order is not there.

use std::collections::BTreeMap;

const SECTOR: usize = 2048;
/// More files than this at the top of a seed are not looked at.
const MOST: usize = 256;

/// The label and the files of an image.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Iso {
    pub(super) label: String,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Iso {
    /// Reads an image; `None` where it is none.
    pub(super) fn read(image: &[u8]) -> Option<Self> {
        let (mut primary, mut joliet) = (None, None);
        for number in 16..64 {
            let sector = image.get(number * SECTOR..(number + 1) * SECTOR)?;
            if sector.get(1..6)? != b"CD001" {
                return None;
            }
            match sector[0] {
                1 => primary = Some(sector),
                2 if [b"%/@", b"%/C", b"%/E"].iter().any(|level| sector[88..91] == **level) => {
                    joliet = Some(sector);
                }
                255 => break,
                _ => {}
            }
        }
        let primary = primary?;
        let label = String::from_utf8_lossy(&primary[40..72]).trim_end().to_owned();
        let records = records(image, primary)?;
        let has_long_names = records.iter().any(|record| rock_ridge(record).is_some());
        let files = match joliet {
            Some(joliet) if !has_long_names => files(image, &self::records(image, joliet)?, wide),
            _ => files(image, &records, |record| rock_ridge(record).unwrap_or_else(|| plain(record))),
        };
        Some(Self { label, files })
    }
}

/// The directory records of the root.
fn records<'a>(image: &'a [u8], descriptor: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let (start, length) = extent(descriptor.get(156..190)?)?;
    let directory = image.get(start..start.checked_add(length)?)?;
    let mut records = Vec::new();
    for sector in directory.chunks(SECTOR) {
        let mut rest = sector;
        // A record never crosses the end of a sector; a length of nothing ends it.
        while let Some(length) =
            rest.first().map(|&length| usize::from(length)).filter(|&length| length >= 34)
        {
            let Some(record) = rest.get(..length) else { break };
            records.push(record);
            rest = &rest[length..];
            if records.len() >= MOST {
                return Some(records);
            }
        }
    }
    Some(records)
}

fn files(image: &[u8], records: &[&[u8]], name: impl Fn(&[u8]) -> String) -> BTreeMap<String, Vec<u8>> {
    let ordinary = records.iter().filter(|record| record[25] & 2 == 0);
    let read = ordinary.filter_map(|record| {
        let (start, length) = extent(record)?;
        Some((name(record), image.get(start..start.checked_add(length)?)?.to_vec()))
    });
    read.collect()
}

/// Where the bytes of a record are, and how many.
fn extent(record: &[u8]) -> Option<(usize, usize)> {
    let number = |place: usize| -> Option<usize> {
        let bytes: [u8; 4] = record.get(place..place + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    Some((number(2)?.checked_mul(SECTOR)?, number(10)?))
}

fn identifier(record: &[u8]) -> &[u8] {
    let length = usize::from(record[32]);
    record.get(33..33 + length).unwrap_or_default()
}

/// The name in the primary tree: in capitals, with a version behind it.
fn plain(record: &[u8]) -> String {
    let name = String::from_utf8_lossy(identifier(record)).to_lowercase();
    name.split(';').next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// The name in the Joliet tree: two bytes for each character.
fn wide(record: &[u8]) -> String {
    let units: Vec<u16> =
        identifier(record).chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let name = String::from_utf16_lossy(&units);
    name.split(';').next().unwrap_or_default().to_owned()
}

/// The name in the `NM` entries behind the identifier.
fn rock_ridge(record: &[u8]) -> Option<String> {
    let length = usize::from(record[32]);
    let mut rest = record.get(33 + length + usize::from(length.is_multiple_of(2))..)?;
    let mut name = Vec::new();
    while let (Some(kind), Some(&length)) = (rest.get(..2), rest.get(2)) {
        let Some(entry) = rest.get(..usize::from(length)).filter(|entry| entry.len() >= 4) else { break };
        // Flags in the fifth byte: 2 and 4 are `.` and `..`, which have no name of their own.
        if kind == b"NM" && entry.get(4).is_some_and(|flags| flags & 6 == 0) {
            name.extend_from_slice(&entry[5..]);
        }
        rest = &rest[entry.len()..];
    }
    (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned())
}
