//! The fuzzing target for answers of APIs without nightly: random and mutated bytes for a short time, repeatable by the seed.
//! `ORCH_FUZZ_SEEDS` names a folder that what it begins with is written to, for libFuzzer to begin with the same.

#[path = "../../../fuzz/answers.rs"]
mod answers;
#[path = "../../../fuzz/driver.rs"]
mod driver;

use std::time::Duration;

const TIME: Duration = Duration::from_millis(500);

#[test]
fn random_and_mutated_answers_never_break_a_promise() {
    let seeds = seeds();
    if let Some(folder) = std::env::var_os("ORCH_FUZZ_SEEDS") {
        for (number, seed) in seeds.iter().enumerate() {
            std::fs::write(std::path::Path::new(&folder).join(number.to_string()), seed)
                .expect("a seed can be written");
        }
    }
    driver::drive(&seeds, TIME, answers::answers);
}

/// Answers, a disc and user data, behind the byte that says what they are.
fn seeds() -> Vec<Vec<u8>> {
    let marks = "orch-site=home orch-manifest=m orch-node=n orch-host=h orch-uuid=0b7c8e2a-5d5f-4b4e-9a53-0c6f6a1f2d11";
    let tags = marks.replace('=', ".").replace(' ', ";");
    let labels = marks.replace('=', "\":\"").replace(' ', "\",\"");
    let kind = r#"{"name":"cx22","cores":2,"memory":4.0,"disk":40,"architecture":"x86"}"#;
    let server = format!(
        r#"{{"id":7,"name":"web-1","status":"running","labels":{{"{labels}","orch-size":"1-512-10"}},"server_type":{kind},"primary_disk_size":40,"public_net":{{"ipv4":{{"ip":"192.0.2.7"}}}},"private_net":[{{"ip":"10.0.0.2"}}]}}"#
    );
    let action = r#"{"id":1,"command":"create_server","status":"error","error":{"code":"action_failed","message":"no"}}"#;
    let texts = [
        (0, format!(r#"{{"server":{server},"action":{action},"next_actions":[{action}]}}"#)),
        (0, format!(r#"{{"servers":[{server}],"server_types":[{kind}],"actions":[{action}]}}"#)),
        (0, String::from(r#"{"error":{"code":"locked","message":"it is","details":{}}}"#)),
        (
            1,
            format!(
                r#"{{"data":[{{"type":"qemu","vmid":"101","node":"pve","tags":"{tags}","status":"running","maxcpu":2}}]}}"#
            ),
        ),
        (
            1,
            format!(
                r#"{{"data":{{"cores":2,"sockets":"2","memory":"current=512","boot":"order=ide2;scsi0","scsi0":"local:vm-1-disk-0,size=2.5G","net0":"virtio=BC:24:11:AA:BB:01,bridge=vmbr0","description":"orch: {marks}\n","tags":"{tags}"}}}}"#
            ),
        ),
        (
            1,
            String::from(
                r#"{"data":{"result":[{"name":"eth0","hardware-address":"BC:24:11:AA:BB:01","ip-addresses":[{"ip-address":"10.0.0.5"}]}]}}"#,
            ),
        ),
        (1, String::from(r#"{"data":"UPID:pve:0000C530:001C9BEC:4F5A1B22:qmclone:9000:root@pam!orch:"}"#)),
        (
            2,
            String::from(
                r#"{"errors":{"bogus":"is not defined"},"message":"Parameter verification failed.\n","data":null}"#,
            ),
        ),
        (
            4,
            String::from(
                "#cloud-config\nusers:\n- {name: ops, sudo: false}\nwrite_files:\n- {path: /a, content: |\n   b\n  }\nruncmd: [[a, b], c]\n",
            ),
        ),
        (4, String::from("#!/bin/sh\ntrue\n")),
    ];
    let texts = texts.into_iter().map(|(choice, text)| [&[choice], text.as_bytes()].concat());
    texts.chain([[&[3], answers::disc(b"#cloud-config\n{}\n").as_slice()].concat()]).collect()
}
