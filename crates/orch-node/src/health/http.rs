//! One HTTP request without encryption, to the node itself: a status of success or of "look there" is healthy.
//!
//! Names are those of the node: `localhost`, and what its `/etc/hosts` says. The system's resolver is not asked, because a
//! statically linked program cannot rely on it.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{ITSELF, connect};
use crate::node::Node;

/// The first line of an answer is no longer than this.
const LONGEST_LINE: u64 = 4096;

/// An address of the form `http://host[:port][/path]`.
#[derive(Debug, PartialEq, Eq)]
struct Address<'a> {
    host: &'a str,
    port: u16,
    path: &'a str,
    authority: &'a str,
}

/// Asks once. What is wrong is said in words.
pub(super) fn get(node: &Node, address: &str, limit: Duration) -> Result<(), String> {
    let address = Address::of(address)?;
    let deadline = Instant::now() + limit;
    let targets: Vec<SocketAddr> =
        resolve(node, address.host)?.into_iter().map(|ip| SocketAddr::new(ip, address.port)).collect();
    let line = ask(&address, &targets, deadline).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it did not answer in time".into(),
        _ => error.to_string(),
    })?;
    judge(&line)
}

impl<'a> Address<'a> {
    fn of(text: &'a str) -> Result<Self, String> {
        let rest = text.strip_prefix("http://").ok_or("only `http://` addresses can be checked")?;
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it is not an address".into());
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| format!("`{port}` is not a port"))?)
            }
            _ => (authority, 80),
        };
        Ok(Self { host: host.trim_start_matches('[').trim_end_matches(']'), port, path, authority })
    }

    fn request(&self) -> String {
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        format!(
            "GET {slash}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: orch-node\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            self.path, self.authority
        )
    }
}

fn resolve(node: &Node, host: &str) -> Result<Vec<IpAddr>, String> {
    if host == "localhost" {
        return Ok(ITSELF.to_vec());
    }
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let hosts = node.read(Path::new("/etc/hosts")).ok().flatten().unwrap_or_default();
    let hosts = String::from_utf8_lossy(&hosts).into_owned();
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let found: Vec<IpAddr> = lines.filter_map(|line| named(line, host)).collect();
    if found.is_empty() { Err(format!("`{host}` is not in /etc/hosts")) } else { Ok(found) }
}

/// The address of a line of `/etc/hosts`, where it is the host's.
fn named(line: &str, host: &str) -> Option<IpAddr> {
    let mut words = line.split_whitespace();
    let address = words.next()?.parse().ok()?;
    words.any(|word| word == host).then_some(address)
}

/// Sends the request and reads the first line of the answer.
fn ask(address: &Address<'_>, targets: &[SocketAddr], deadline: Instant) -> io::Result<String> {
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let mut stream = connect(targets, left()?)?;
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(address.request().as_bytes())?;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < usize::try_from(LONGEST_LINE).unwrap_or(usize::MAX) {
        // Again for every byte: whoever answers drop by drop does not get more time for it.
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut byte)? {
            0 => break,
            _ if byte == *b"\n" => break,
            _ => line.push(byte[0]),
        }
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_string())
}

fn judge(line: &str) -> Result<(), String> {
    let mut words = line.split(' ');
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    let status: Option<u16> = words.next().and_then(|status| status.parse().ok()).filter(|_| is_http);
    match status {
        Some(200..=399) => Ok(()),
        Some(_) => Err(format!("it answered `{line}`")),
        None => Err("what answered does not speak HTTP".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_or_refused() {
        let good = [
            ("http://localhost/", ("localhost", 80, "/")),
            ("http://localhost:8080/a?b#c", ("localhost", 8080, "/a?b")),
            ("http://[::1]:81", ("::1", 81, "")),
            ("http://[::1]", ("::1", 80, "")),
            ("http://10.0.0.1?x=$(id)", ("10.0.0.1", 80, "?x=$(id)")),
        ];
        for (text, wanted) in good {
            let address = Address::of(text).unwrap();
            assert_eq!((address.host, address.port, address.path), wanted, "{text}");
        }
        for text in
            ["https://a/", "ftp://a", "http://a b", "http://a/\r\nX: y", "http://a:99999/", "http://a:x/"]
        {
            assert!(Address::of(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_status_is_judged_by_its_first_digit() {
        for (line, is_healthy) in [
            ("HTTP/1.1 200 OK", true),
            ("HTTP/1.0 302 Found", true),
            ("HTTP/1.1 404 Not Found", false),
            ("HTTP/1.1 500", false),
            ("SSH-2.0-OpenSSH_9.2", false),
            ("", false),
        ] {
            assert_eq!(judge(line).is_ok(), is_healthy, "{line:?}");
        }
    }
}
