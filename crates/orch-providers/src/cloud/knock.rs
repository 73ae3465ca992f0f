//! Whether the SSH server of a machine answers yet.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long one try may take: one lost packet is waited for longer and longer, and asking anew is quicker.
const ONE_TRY: Duration = Duration::from_secs(3);
/// The pause between two tries, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Waits until an SSH server at this address says who it is; in words, what was seen instead when the time was over.
pub async fn knock(address: SocketAddr, deadline: Instant) -> Result<(), String> {
    let mut pause = FIRST_PAUSE;
    loop {
        let answered = match timeout_at(deadline, timeout(ONE_TRY, greeting(address))).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) | Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "nothing answers")),
        };
        match answered {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() + pause >= deadline => {
                return Err(format!("no SSH server answers at {address}: {error}"));
            }
            Err(_) => sleep(pause).await,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn greeting(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let mut words = [0_u8; 4];
    stream.read_exact(&mut words).await?;
    if &words == b"SSH-" { Ok(()) } else { Err(io::Error::other("what answers is no SSH server")) }
}
