//! Where a server is: `https://host:port`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

use orch_model::pull::SERVER_PORT;
use rustls::pki_types::ServerName;

use super::stream::Until;

/// How often is looked whether the system's resolver is still worth waiting for.
const TICK: Duration = Duration::from_millis(50);

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    host: String,
    port: u16,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is not the address of a server: write it as `https://host:port`");
        let rest = text.strip_prefix("https://").ok_or_else(refused)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| refused())?),
            _ => (authority, SERVER_PORT),
        };
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_v6 = inner.is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
        let host = if is_v6 { inner.unwrap_or(host) } else { host };
        // A name or an address is all that can be shown to the server as its name.
        let is_name = !host.contains(':') && ServerName::try_from(host).is_ok();
        if is_v6 || is_name { Ok(Self { host: host.into(), port }) } else { Err(refused()) }
    }

    /// How a request names it.
    pub(super) fn authority(&self) -> String {
        let (host, port) = (&self.host, self.port);
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    pub(super) fn server_name(&self) -> io::Result<ServerName<'static>> {
        ServerName::try_from(self.host.clone()).map_err(io::Error::other)
    }

    /// The addresses behind the name. The system's resolver knows neither deadline nor signal: another thread asks
    /// it, and may do so for longer.
    pub(super) fn resolve(&self, until: Until<'_>) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, self.port)]);
        }
        let (sender, receiver) = mpsc::channel();
        let name = (self.host.clone(), self.port);
        thread::spawn(move || {
            let found = name.to_socket_addrs().map(Iterator::collect::<Vec<SocketAddr>>);
            // Nobody listens any more once the deadline is over.
            let _ = sender.send(found);
        });
        loop {
            until.check()?;
            match receiver.recv_timeout(TICK) {
                Ok(found) => return found,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_or_refused() {
        for (text, authority) in [
            ("https://10.0.0.1:8443", "10.0.0.1:8443"),
            ("https://[fd00::1]:8443/", "[fd00::1]:8443"),
            ("https://[fd00::1]", "[fd00::1]:44443"),
            ("https://father.core", "father.core:44443"),
        ] {
            assert_eq!(Address::parse(text).unwrap().authority(), authority, "{text}");
        }
        for text in [
            "",
            "http://a:1",
            "https://",
            "https://a:b",
            "https://a:99999",
            "https://a/b",
            "https://a b",
            "https://fd00::1:8443",
            "https://[x]:1",
            "https://a\r\nX: y",
            "https://u@a:1",
        ] {
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
    }
}
