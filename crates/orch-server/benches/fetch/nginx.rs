//! nginx, with a folder of its own, serving one file over TLS 1.3 with a certificate of the same kind as the server's.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::process::Process;

/// Where Debian has it.
pub(crate) const PROGRAM: &str = "/usr/sbin/nginx";

/// nginx at work.
pub(crate) struct Nginx {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    _folder: TempDir,
}

impl Nginx {
    /// Starts it with so many processes; nothing where it is not installed.
    pub(crate) fn start(workers: usize, content: &[u8]) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            return None;
        }
        let folder = TempDir::new().unwrap();
        // Free a moment ago, and nobody else here takes ports by the dozen.
        let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["orch.invalid".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let write = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
        write("certificate.pem", pem("CERTIFICATE", certificate.der()).as_bytes());
        write("key.pem", pem("PRIVATE KEY", &key.serialize_der()).as_bytes());
        write("spec.json", content);
        write("nginx.conf", configuration(workers, address).as_bytes());
        let mut command = Command::new(PROGRAM);
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "error.log"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let nginx = Self { process: Process(child), address, _folder: folder };
        for _ in 0..100 {
            if TcpStream::connect(address).is_ok() {
                return Some(nginx);
            }
            thread::sleep(Duration::from_millis(50));
        }
        unreachable!("nginx is there and does not start")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Killed, it would leave its workers behind; told to, it ends them first.
        let id = rustix::process::Pid::from_child(&self.process.0);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.process.0.wait();
    }
}

/// What it is told: as little as the server does, and the file kept open.
fn configuration(workers: usize, address: SocketAddr) -> String {
    format!(
        "user root; daemon off; pid nginx.pid; worker_processes {workers};
         events {{ worker_connections 4096; }}
         http {{
           access_log off; default_type application/json; root .; keepalive_requests 100000000;
           open_file_cache max=10; open_file_cache_valid 60s;
           client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp;
           server {{
             listen {address} ssl backlog=1024; ssl_protocols TLSv1.3;
             ssl_certificate certificate.pem; ssl_certificate_key key.pem;
             ssl_session_tickets off; ssl_session_cache off;
             location / {{ try_files /spec.json =404; }}
           }}
         }}\n"
    )
}

fn pem(name: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {name}-----\n");
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        writeln!(text, "{}", String::from_utf8_lossy(line)).unwrap();
    }
    text + &format!("-----END {name}-----\n")
}
