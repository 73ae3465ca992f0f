//! `orch init`: a small, commented site to start from. Nothing that exists is overwritten.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use orch_model::SiteName;
use orch_run::ExitCode;
use serde_json::json;

use crate::failure::Failure;
use crate::output::Output;
use crate::verbs::reference::schema_files;

/// The files of a new site, but for the schemas.
const FILES: [(&str, &str); 6] = [
    ("site.yaml", include_str!("../template/site.yaml")),
    ("hosts/here.yaml", include_str!("../template/hosts/here.yaml")),
    ("manifests/hello.yaml", include_str!("../template/manifests/hello.yaml")),
    ("specs/base.yaml", include_str!("../template/specs/base.yaml")),
    ("presets/small.yaml", include_str!("../template/presets/small.yaml")),
    ("postures/dev.yaml", include_str!("../template/postures/dev.yaml")),
];

pub(crate) fn run(dir: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let name = site_name(dir);
    let text_of = |text: &str| text.replace("name: my-site ", &format!("name: {name} "));
    let mut files: Vec<(PathBuf, String)> =
        FILES.iter().map(|(path, text)| (dir.join(path), text_of(text))).collect();
    files.extend(schema_files().map(|(name, text)| (dir.join(".orch/schema").join(name), text)));
    if let Some((taken, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(Failure::Exists(taken.clone()));
    }
    for (path, text) in &files {
        write_new(path, text).map_err(|source| Failure::Unwritten { path: path.clone(), source })?;
    }
    let shown = dir.display();
    let text = format!(
        "made a site in {shown}\n\n\
         next:\n  cd {shown}\n  orch validate\n  orch plan -M hello -H here\n\n\
         manifests/hello.yaml is the place to start reading."
    );
    let paths: Vec<&PathBuf> = files.iter().map(|(path, _)| path).collect();
    output.answer(&text, &json!({ "site": dir, "written": paths }));
    Ok(ExitCode::Done)
}

/// The folder's name where it can be a site's: two new sites must not take each other's machines for their own.
fn site_name(dir: &Path) -> String {
    let folder = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    name.parse::<SiteName>().map_or_else(|_| "my-site".to_owned(), |name| name.to_string())
}

/// Writes a file that must not be there, so that two `init` at once cannot mix their files unseen.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::File::create_new(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}
