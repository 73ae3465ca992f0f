//! How an API is reached: over the network, or through something that leads there.

use std::io;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Who knows how to get to an API. Whoever asks has a deadline.
#[async_trait]
pub trait Dial: Send + Sync {
    /// One new connection.
    async fn dial(&self) -> io::Result<Box<dyn Stream>>;
}

/// Over the network.
#[derive(Debug, Clone)]
pub struct Tcp {
    /// The name or address.
    pub host: String,
    /// The port.
    pub port: u16,
}

#[async_trait]
impl Dial for Tcp {
    async fn dial(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        // Questions are short, and waited for.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}
