//! Files of identities that others may read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use orch_secrets::Env;

use super::Findings;

/// Looks at the permission bits of every file that identities are taken from.
pub(super) fn look(env: &Env, findings: &mut Findings) {
    for path in env.files() {
        let Ok(about) = fs::metadata(&path) else { continue };
        if about.is_file() && about.mode() & 0o077 != 0 {
            let what = format!("`{}` holds identities, and others may read or write it", path.display());
            findings.add(what, format!("`chmod 600 {}`", path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_identity_that_others_may_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.txt");
        fs::write(&path, "").unwrap();
        for (mode, count) in [(0o600, 0), (0o400, 0), (0o640, 1), (0o604, 1)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let mut findings = Findings::default();
            look(&Env { key_file: Some(path.clone()), ..Env::default() }, &mut findings);
            assert_eq!(findings.told.len(), count, "{mode:o}");
        }
    }
}
