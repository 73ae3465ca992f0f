//! A real SSH server with a host key, a configuration and a log of its own. Nothing that it started outlives it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use orch_model::PublicKey;
use orch_providers::ssh::{Hop, make_host_key};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Where the server is on Debian and everywhere else.
const SSHD: &str = "/usr/sbin/sshd";

/// A server that runs.
pub(crate) struct Sshd {
    pub(crate) plan: Plan,
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

/// A server that may or may not run yet: its files and its port.
pub(crate) struct Plan {
    folder: TempDir,
    pub(crate) port: u16,
    pub(crate) host_key: PublicKey,
}

/// Whether there is a server to be had. Says so where there is none.
pub(crate) fn is_there() -> bool {
    let is_there = Path::new(SSHD).exists() && Command::new("ssh").arg("-V").output().is_ok();
    if !is_there {
        println!("skipped: there is no OpenSSH server or client here");
    }
    is_there
}

/// The account that these tests run as.
pub(crate) fn account() -> String {
    let shown = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(shown.stdout).unwrap().trim().to_owned()
}

/// Whether these tests run as root. Says so where they do not.
pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: needs root");
    }
    is_root
}

impl Plan {
    /// Lays out a server that `authorized` opens.
    pub(crate) fn new(authorized: &PublicKey) -> Self {
        let folder = tempfile::Builder::new().prefix("100% ssh d").tempdir().unwrap();
        let (_, host_key) = make_host_key(folder.path()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::write(folder.path().join("authorized_keys"), format!("{authorized}\n")).unwrap();
        let plan = Self { folder, port, host_key };
        plan.configure("ssh_host_ed25519_key");
        plan
    }

    /// Lets the server show another key than the one that is pinned.
    pub(crate) fn show_other_key(&self, kind: &str) {
        let file = self.folder.path().join("other_key");
        let made =
            Command::new("ssh-keygen").args(["-q", "-t", kind, "-N", "", "-f"]).arg(&file).status().unwrap();
        assert!(made.success());
        self.configure("other_key");
    }

    fn configure(&self, key: &str) {
        let folder = self.folder.path().display();
        let text = format!(
            "ListenAddress 127.0.0.1:{}\nHostKey \"{folder}/{key}\"\nAuthorizedKeysFile \"{}\"\nPidFile none\nStrictModes \
             no\nUsePAM no\nLogLevel VERBOSE\nMaxStartups 200\nSubsystem sftp internal-sftp\n\
             SetEnv \"HOME={folder}\"\n",
            self.port,
            format!("{folder}/authorized_keys").replace('%', "%%"),
        );
        fs::write(self.file(), text).unwrap();
    }

    /// Its configuration.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("sshd_config")
    }

    /// The way to it.
    pub(crate) fn hop(&self, alias: &str) -> Hop {
        Hop {
            alias: alias.into(),
            address: "127.0.0.1".into(),
            port: self.port,
            user: account(),
            host_keys: vec![self.host_key.clone()],
            proxy: None,
            generation: String::new(),
        }
    }

    /// The way to it by a program whose input and output are the server itself.
    pub(crate) fn hop_by_program(&self, alias: &str) -> Hop {
        make_separation_folder();
        let program = [SSHD.into(), "-i".into(), "-f".into(), self.file().into()];
        Hop { address: "nowhere.invalid".into(), port: 1, proxy: Some(program.into()), ..self.hop(alias) }
    }

    /// Starts it and waits until it listens.
    pub(crate) fn start(self) -> Sshd {
        let command = Command::new(SSHD);
        self.start_by(command)
    }

    /// The same in a world of its own: what is changed there is not this machine's.
    pub(crate) fn start_apart(self) -> Sshd {
        const SETUP: &str = "set -e
            mount --make-rprivate /
            mount -t tmpfs none /mnt
            for part in etc var home root; do
                mkdir /mnt/$part /mnt/$part.work
                mount -t overlay none -o lowerdir=/$part,upperdir=/mnt/$part,workdir=/mnt/$part.work /$part
            done
            mount -t tmpfs none /run
            mkdir /run/sshd
            rm -rf /var/lib/orch
            exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--uts", "--", "sh", "-c", SETUP, "sh", SSHD]);
        self.start_by(command)
    }

    fn start_by(self, mut command: Command) -> Sshd {
        make_separation_folder();
        let mut child = command
            .args(["-D", "-e", "-f"])
            .arg(self.file())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lines, kept) = (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        let sshd = Sshd { plan: self, child, log };
        until("the server listens", || !sshd.lines("Server listening").is_empty());
        sshd
    }
}

impl Sshd {
    /// The lines of its log that hold these words.
    pub(crate) fn lines(&self, words: &str) -> Vec<String> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|line| line.contains(words)).cloned().collect()
    }

    /// How often somebody was let in.
    pub(crate) fn accepted(&self) -> usize {
        self.lines("Accepted publickey").len()
    }

    /// Cuts every connection: the server's end of it is gone without a word.
    pub(crate) fn cut(&self) {
        let is_child = |pid: &u32| parent(*pid) == Some(self.child.id());
        for pid in processes().into_iter().filter(is_child) {
            kill(pid);
        }
    }

    /// Programs that it started for somebody, also those that were left alone.
    fn programs(&self) -> Vec<u32> {
        let end = format!(" 127.0.0.1 {}", self.plan.port);
        let is_its = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut values = environment.split(|byte| *byte == 0);
            values.any(|value| value.starts_with(b"SSH_CONNECTION=") && value.ends_with(end.as_bytes()))
        };
        processes().into_iter().filter(is_its).collect()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.cut();
        for pid in self.programs() {
            kill(pid);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds, and fails where it does not come true.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within 20s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every process that there is.
pub(crate) fn processes() -> Vec<u32> {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// The processes that have these words in their command line.
pub(crate) fn processes_with(words: &str) -> Vec<u32> {
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(words)
    };
    processes().into_iter().filter(has).collect()
}

pub(crate) fn kill(pid: u32) {
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Debian's server wants this folder when it is root's, and its unit makes it when it starts.
fn make_separation_folder() {
    if rustix::process::geteuid().is_root() {
        fs::create_dir_all("/run/sshd").unwrap();
    }
}
