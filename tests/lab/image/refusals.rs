//! Images that no machine can be made from.

use std::fs;
use std::process::Command;

use super::{WEB, host};
use crate::common::{Lab, Need, ORCH, Outcome, TIMEOUTS, assert_nothing_is_left, lacks};

#[test]
fn an_image_that_cannot_be_used_is_named_with_its_host_file_before_anything_is_touched() {
    if lacks(&[Need::Root]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[WEB]);
    fs::create_dir_all(lab.site.join("bare/etc")).unwrap();
    for (image, why) in
        [("gone.tar", "neither `this-machine` nor a folder or archive"), ("bare", "has no init")]
    {
        lab.write("hosts/father.yaml", &host(&[("debian", image.as_ref())]));
        let told = lab.orch("create -M lab -H father").ends_with(3);
        told.says(&format!("image `{image}`")).says(why).says("mend `images` in hosts/father.yaml");
        assert!(lab.machines().is_empty());
    }
}

#[test]
fn an_archive_without_an_init_is_told_when_its_machine_is_started() {
    if lacks(&[Need::Root, Need::Program("tar"), Need::Program("mkfs.ext4")]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[WEB]);
    let archive = lab.site.join("bare.tar");
    let folder = lab.site.join("bare");
    fs::create_dir_all(folder.join("etc")).unwrap();
    fs::write(folder.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
    let mut tar = Command::new("tar");
    assert!(tar.arg("-cf").arg(&archive).arg("-C").arg(&folder).arg("etc").status().unwrap().success());
    lab.write("hosts/father.yaml", &host(&[("debian", &archive)]));
    lab.orch("create -M lab -H father").ends_with(1).says("its image has no init").says("/sbin/init");
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(&lab);
}

#[test]
fn an_image_that_cannot_run_what_configures_it_is_told_what_to_bring() {
    if lacks(&[Need::Root, Need::Program("mkfs.ext4")]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[WEB]);
    // An init, and none of the libraries that this program is linked with.
    fs::create_dir_all(lab.site.join("foreign/sbin")).unwrap();
    fs::write(lab.site.join("foreign/sbin/init"), "").unwrap();
    lab.write("hosts/father.yaml", &host(&[("debian", "foreign".as_ref())]));
    let words = "create -M lab -H father";
    let told = Outcome::of(lab.command(words).env("ORCH_NODE", ORCH), words).ends_with(1);
    told.says("with the libraries of its image").says("in ORCH_NODE");
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(&lab);
}
