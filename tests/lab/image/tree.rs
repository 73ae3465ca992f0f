//! The files of an image arrive on its machines as they are.

use super::{DebianLab, host};
use crate::common::{debian, debian_archive};

#[test]
fn an_archive_makes_the_same_machine_as_its_folder() {
    let nodes =
        ["folder", "archive"].map(|image| format!("name: {image}, type: vm, image: {image}, preset: tiny"));
    let Some(lab) = DebianLab::with_nodes(&[&nodes[0], &nodes[1]]) else { return };
    let root = debian().unwrap();
    lab.write("hosts/father.yaml", &host(&[("folder", root), ("archive", &debian_archive(root))]));
    lab.all("create").ends_with(0);
    let [folder, archive] = ["lab-folder", "lab-archive"].map(|machine| {
        lab.assert_all_is_up(machine);
        // Whose each file is, what may be done with it, and where a link leads.
        lab.says(
            machine,
            &["find", "/", "/usr", "/etc/pam.d", "-xdev", "-maxdepth", "3", "-printf", "%p %M %U:%G %l\n"],
        )
    });
    let (mut folder, mut archive): (Vec<&str>, Vec<&str>) =
        (folder.lines().collect(), archive.lines().collect());
    for lines in [&mut folder, &mut archive] {
        lines.retain(|line| line.starts_with("/usr") || line.starts_with("/etc"));
        lines.sort_unstable();
    }
    assert!(folder.len() > 1000, "{} files", folder.len());
    assert_eq!(folder, archive);
    assert!(folder.contains(&"/usr/bin/sudo -rwsr-xr-x 0:0 "), "sudo may become root");
    assert!(folder.contains(&"/etc/shadow -rw-r----- 0:42 "), "the group of shadow is its own");
    lab.destroy();
}
