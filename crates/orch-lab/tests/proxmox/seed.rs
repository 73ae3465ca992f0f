//! What a machine is given at its first start: by options, by files of one's own, by an image that was sent.

use orch_lab::FirstBoot;

use crate::storage::upload;
use crate::world::{World, world, world_with};

const SECTOR: usize = 2048;

/// How long names are written.
#[derive(Clone, Copy, PartialEq)]
enum Names {
    RockRidge,
    Joliet,
    Short,
}

fn record(name: &[u8], extra: &[u8], sector: u32, length: u32, flags: u8) -> Vec<u8> {
    let mut record = vec![0; 33];
    record[2..6].copy_from_slice(&sector.to_le_bytes());
    record[6..10].copy_from_slice(&sector.to_be_bytes());
    record[10..14].copy_from_slice(&length.to_le_bytes());
    record[14..18].copy_from_slice(&length.to_be_bytes());
    record[25] = flags;
    record[32] = u8::try_from(name.len()).unwrap();
    record.extend_from_slice(name);
    if name.len().is_multiple_of(2) {
        record.push(0);
    }
    record.extend_from_slice(extra);
    if !record.len().is_multiple_of(2) {
        record.push(0);
    }
    record[0] = u8::try_from(record.len()).unwrap();
    record
}

fn wide(name: &str) -> Vec<u8> {
    name.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// An image as small as it can be: descriptors, two roots, then the files.
fn image(label: &str, names: Names, files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut plain, mut long) = (Vec::new(), Vec::new());
    let mut data = vec![0; 21 * SECTOR];
    for (number, (name, bytes)) in files.iter().enumerate() {
        let sector = u32::try_from(data.len() / SECTOR).unwrap();
        let length = u32::try_from(bytes.len()).unwrap();
        let mut extra = vec![b'N', b'M', u8::try_from(5 + name.len()).unwrap(), 1, 0];
        extra.extend_from_slice(name.as_bytes());
        let extra = if names == Names::RockRidge { extra } else { Vec::new() };
        plain.extend(record(format!("FILE{number}.;1").as_bytes(), &extra, sector, length, 0));
        long.extend(record(&wide(name), &[], sector, length, 0));
        data.extend_from_slice(bytes);
        data.resize(data.len().next_multiple_of(SECTOR), 0);
    }
    let mut descriptor = |number: usize, kind: u8, root: u32| {
        let sector = &mut data[number * SECTOR..(number + 1) * SECTOR];
        sector[0] = kind;
        sector[1..6].copy_from_slice(b"CD001");
        sector[40..72].fill(b' ');
        sector[40..40 + label.len()].copy_from_slice(label.as_bytes());
        if kind == 2 {
            sector[88..91].copy_from_slice(b"%/E");
        }
        sector[156..190].copy_from_slice(&record(&[0], &[], root, 2048, 2));
    };
    descriptor(16, 1, 19);
    if names == Names::Joliet {
        descriptor(17, 2, 20);
        descriptor(18, 255, 0);
    } else {
        descriptor(17, 255, 0);
    }
    for (sector, own) in [(19, plain), (20, long)] {
        let root = [record(&[0], &[], 19, 2048, 2), record(&[1], &[], 19, 2048, 2), own].concat();
        data[sector * SECTOR..sector * SECTOR + root.len()].copy_from_slice(&root);
    }
    data
}

async fn started_with(world: &World, name: &str, image: &[u8]) -> FirstBoot {
    let said = upload(world, "iso", name, image).await;
    assert_eq!(world.end_of(said.body["data"].as_str().unwrap()).await, "OK");
    let pairs = [
        ("vmid", "101"),
        ("name", "web"),
        ("scsi0", "local-zfs:1"),
        ("ide2", &format!("local:iso/{name},media=cdrom")),
    ];
    assert_eq!(world.task("POST", "/nodes/pve1/qemu", &pairs).await, "OK");
    world.start(101).await;
    world.machines.given.lock().unwrap()[0].clone()
}

const USER: &[u8] = b"#cloud-config\n";
const META: &[u8] = b"instance-id: i-1\nlocal-hostname: \"web01\"\n";

#[tokio::test]
async fn a_seed_is_read_by_both_kinds_of_long_names() {
    for names in [Names::RockRidge, Names::Joliet] {
        let files = [("meta-data", META), ("network-config", b"" as &[u8]), ("user-data", USER)];
        let given = started_with(&world(), "seed.iso", &image("cidata", names, &files)).await;
        assert_eq!((given.instance.as_str(), given.hostname.as_str()), ("i-1", "web01"));
        assert_eq!(given.user_data, USER);
    }
}

#[tokio::test]
async fn an_image_without_the_label_or_the_names_gives_nothing() {
    let files = [("meta-data", META), ("user-data", USER)];
    for (label, names) in [("debian", Names::Joliet), ("cidata", Names::Short)] {
        let given = started_with(&world(), "seed.iso", &image(label, names, &files)).await;
        assert!(given.user_data.is_empty());
        assert_eq!(given.hostname, "web");
    }
}

#[tokio::test]
async fn an_image_that_is_cut_off_anywhere_is_survived() {
    let files = [("meta-data", META), ("user-data", USER)];
    let whole = image("cidata", Names::RockRidge, &files);
    for length in (0..whole.len()).step_by(997) {
        started_with(&world(), "seed.iso", &whole[..length]).await;
    }
}

#[tokio::test]
async fn an_image_of_a_real_tool_is_read() {
    let tool = ["genisoimage", "xorriso", "mkisofs"]
        .into_iter()
        .find(|tool| std::process::Command::new(tool).arg("--version").output().is_ok());
    let Some(tool) = tool else {
        eprintln!("skipped: no tool that makes images is here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("user-data", USER), ("meta-data", META)] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    for long in ["-rock", "-joliet"] {
        let mut command = std::process::Command::new(tool);
        if tool == "xorriso" {
            command.args(["-as", "mkisofs"]);
        }
        let made = folder.path().join("seed.iso");
        let command = command.args(["-quiet", "-volid", "cidata", long, "-o"]).arg(&made);
        let run = command.args(["user-data", "meta-data"]).current_dir(folder.path()).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let given = started_with(&world(), "seed.iso", &std::fs::read(&made).unwrap()).await;
        assert_eq!((given.instance.as_str(), given.user_data.as_slice()), ("i-1", USER), "{long}");
        std::fs::remove_file(&made).unwrap();
    }
}

#[tokio::test]
async fn a_file_of_ones_own_takes_the_place_of_the_options() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    std::fs::create_dir(path.join("snippets")).unwrap();
    let world = world_with(|settings| settings.storages[0].folder = Some(path.clone()));
    world.copy(101, "web").await;
    let pairs =
        [("cicustom", "user=local:snippets/user.yaml"), ("ciuser", "me"), ("sshkeys", "ssh-ed25519%20A")];
    world.data("PUT", "/nodes/pve1/qemu/101/config", &pairs).await;
    let end = world.task("POST", "/nodes/pve1/qemu/101/status/start", &[]).await;
    assert_eq!(end, "volume 'local:snippets/user.yaml' does not exist");
    std::fs::write(path.join("snippets/user.yaml"), USER).unwrap();
    world.start(101).await;
    let first = world.machines.given.lock().unwrap()[0].clone();
    assert_eq!((first.user_data.as_slice(), first.user, first.keys.len()), (USER, None, 0));
    std::fs::write(path.join("snippets/user.yaml"), b"#cloud-config\n#other\n").unwrap();
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/101/status/reboot", &[]).await, "OK");
    let second = world.machines.given.lock().unwrap()[1].clone();
    assert_ne!(first.instance, second.instance, "another file is another life");
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/101/status/reboot", &[]).await, "OK");
    assert_eq!(second.instance, world.machines.given.lock().unwrap()[2].instance);
}
