//! The same data key for other recipients: nothing changes but the metadata.

use super::SopsFile;
use super::cipher::DataKey;
use super::edit::Edits;
use super::encrypt::wrap;
use super::error::SopsError;
use super::metadata::Wrapped;
use crate::keyring::Keyring;
use crate::reader::{Reader, ReaderKind};

const UPDATE: &str = "use `sops updatekeys` for this file";

impl SopsFile {
    /// The file for these age recipients and no others. Those that it has keep what is wrapped for them; recipients that
    /// are not age's stay, whether they are named or not. Every value stays byte for byte, and so does the MAC.
    ///
    /// Whoever is taken away has seen the data key: [`renew`](Self::renew) makes another.
    pub fn rewrap(&self, keyring: &Keyring, wanted: &[Reader]) -> Result<Vec<u8>, SopsError> {
        let group = self.only_group(UPDATE)?;
        if !wanted.iter().any(Reader::is_writable) {
            return Err(SopsError::NobodyCanRead { file: self.file.clone() });
        }
        // Opened as a whole: nobody is let into a file that is not what was written.
        let opened = self.open(keyring)?;
        let kept = |one: &&Wrapped| wanted.iter().any(|reader| reader.is_same(&one.reader));
        let ages: Vec<&Wrapped> = group.iter().filter(|one| is_age(&one.reader)).collect();
        let mut listed: Vec<Wrapped> = ages.iter().copied().filter(kept).cloned().collect();
        let is_unchanged = listed.len() == ages.len();
        let before = listed.len();
        // Those that are not age's and are in the file stay where they are; a new one cannot be let in here.
        let stays = |reader: &Reader| !is_age(reader) && group.iter().any(|one| one.reader.is_same(reader));
        for reader in wanted.iter().filter(|reader| !stays(reader)) {
            if !listed.iter().any(|one| one.reader.is_same(reader)) {
                listed.push(wrap(&self.file, &opened.key[..], reader)?);
            }
        }
        if is_unchanged && listed.len() == before {
            return Ok(self.text.clone());
        }
        let mut edits = Edits::default();
        self.edit_recipients(&mut edits, &listed)?;
        let key = DataKey::clone(&opened.key);
        let (text, _) = self.finish(edits, key, &opened.roots)?;
        self.check_recipients(&text, &listed)?;
        Ok(text)
    }

    /// The one group of recipients. Shares for others than the groups of a file cannot be made without all of them.
    pub(super) fn only_group(&self, instead: &'static str) -> Result<&[Wrapped], SopsError> {
        let has_groups = self
            .places
            .iter()
            .flatten()
            .any(|place| !place.value.field("key_groups").is_none_or(|groups| groups.items().is_empty()));
        match self.metadata.groups.as_slice() {
            [group] if !has_groups => Ok(group),
            _ => Err(self.left_to_sops("its key is shared out among groups of recipients", instead)),
        }
    }

    /// What was written must name whom it was written for.
    pub(super) fn check_recipients(&self, text: &[u8], listed: &[Wrapped]) -> Result<(), SopsError> {
        let again = SopsFile::parse_as(&self.file, self.format, text)?;
        let found = again.metadata.groups.iter().flatten().filter(|one| is_age(&one.reader));
        let pairs = |one: &Wrapped| (one.reader.clone(), one.enc.trim_end().to_owned());
        let is_meant = found.map(pairs).eq(listed.iter().map(pairs));
        if is_meant { Ok(()) } else { Err(self.spoiled("its recipients would be others")) }
    }
}

pub(super) fn is_age(reader: &Reader) -> bool {
    !matches!(reader.kind(), ReaderKind::Other(_))
}
