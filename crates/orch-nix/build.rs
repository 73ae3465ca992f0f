//! Puts the repository's `nix/lib` into the program, so that a program alone can evaluate a site.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to write"));
    let library = here.join("../../nix/lib");
    println!("cargo::rerun-if-changed={}", library.display());
    let mut files = Vec::new();
    if library.is_dir() {
        find(&library, &library, &mut files)?;
    }
    files.sort();
    let mut list = String::from("const FILES: &[(&str, &str)] = &[\n");
    for (name, path) in files {
        list += &format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string());
    }
    fs::write(out.join("library.rs"), list + "];\n")
}

fn find(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            find(root, &path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "nix") {
            let name = path.strip_prefix(root).expect("it was found below the root").display().to_string();
            files.push((name, path.canonicalize()?));
        }
    }
    Ok(())
}
