//! Where the sops program is, for tests and benchmarks.

use std::env;
use std::path::{Path, PathBuf};

/// Where the program is: `ORCH_SOPS`, the search path, or where `.ci/sops` puts it.
pub(crate) fn find() -> Option<PathBuf> {
    let named = env::var_os("ORCH_SOPS").map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join("sops"));
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    named.into_iter().chain(on_path).chain([target.join("tools/sops")]).find(|path| path.is_file())
}
