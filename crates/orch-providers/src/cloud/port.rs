//! At which port the SSH server of a node answers: where it was written down, or where its configuration puts it. Whoever was cut
//! off between the two has written nothing.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

use super::knock::knock;

/// How long a port may take to answer before the other one is tried. Nothing is decided by this: where neither answers, the one
/// that was written down is used, and waited for.
const GLANCE: Duration = Duration::from_secs(1);

/// The port that answers, of the one that was written down and the one that is wanted.
pub async fn port(address: IpAddr, written: u16, wanted: Option<u16>) -> u16 {
    let Some(wanted) = wanted.filter(|wanted| *wanted != written) else { return written };
    for port in [written, wanted] {
        if knock(SocketAddr::from((address, port)), Instant::now() + GLANCE).await.is_ok() {
            return port;
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_port_that_answers_is_used() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"SSH-2.0-x\r\n").await;
            }
        });
        let here = IpAddr::from([127, 0, 0, 1]);
        // Nobody listens at the first port of all.
        assert_eq!(port(here, 1, Some(open)).await, open);
        assert_eq!(port(here, open, Some(1)).await, open);
        assert_eq!(port(here, 1, None).await, 1, "where there is nothing to choose, nobody is asked");
    }
}
