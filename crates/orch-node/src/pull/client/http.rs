//! As much of HTTP/1.1 as one question and its answer need. Nothing that is answered is believed to be short.

use std::io::{self, Read, Write};
use std::time::Duration;

/// No head of an answer is longer.
const LONGEST_HEAD: usize = 16 << 10;
/// No body is larger, because no configuration is.
const LARGEST_BODY: usize = 16 << 20;
const MOST_HEADERS: usize = 64;

/// What is asked. It holds a token, and so cannot be printed.
pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    pub(super) host: &'a str,
    pub(super) token: &'a str,
    /// What is said besides.
    pub(super) headers: &'a [(&'static str, String)],
    pub(super) body: Option<&'a [u8]>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
    /// Whether the connection is good for another question.
    pub(super) stays: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum HttpError {
    /// The connection did not carry it. Whether anything of an answer was seen.
    Io { error: io::Error, begun: bool },
    /// What came is not what an answer may be.
    Nonsense(&'static str),
}

/// Asks, and reads the whole answer.
pub(super) fn ask(stream: &mut (impl Read + Write), request: &Request<'_>) -> Result<Answer, HttpError> {
    let failed = |error| HttpError::Io { error, begun: false };
    stream.write_all(&request.bytes()).map_err(failed)?;
    stream.flush().map_err(failed)?;
    let (head, rest) = read_head(stream)?;
    let body = read_body(stream, rest, head.length)?;
    let stays = head.stays && body.len() == head.length;
    Ok(Answer { status: head.status, retry_after: head.retry_after, body, stays })
}

impl Request<'_> {
    fn bytes(&self) -> Vec<u8> {
        let Self { method, path, host, token, headers, body } = self;
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: orch-node\r\nAccept: application/json\r\n\
             Authorization: Bearer {token}\r\n"
        );
        for (name, value) in *headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            let length = body.len();
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
        }
        text.push_str("\r\n");
        [text.as_bytes(), body.unwrap_or_default()].concat()
    }
}

struct Head {
    status: u16,
    retry_after: Option<Duration>,
    length: usize,
    stays: bool,
}

/// Reads the head, and what came with it of the body.
fn read_head(stream: &mut impl Read) -> Result<(Head, Vec<u8>), HttpError> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let begun = !bytes.is_empty();
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Err(HttpError::Io { error: io::ErrorKind::UnexpectedEof.into(), begun }),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(HttpError::Io { error, begun }),
        };
        bytes.extend_from_slice(&buffer[..count]);
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|place| place + 4);
        if end.unwrap_or(bytes.len()) > LONGEST_HEAD {
            return Err(HttpError::Nonsense("its head is longer than 16 KiB"));
        }
        if let Some(end) = end {
            let body = bytes.split_off(end);
            return Ok((parse_head(&bytes)?, body));
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Head, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let is_whole = head.parse(bytes).is_ok_and(|parsed| parsed.is_complete());
    let (Some(status), Some(version), true) = (head.code, head.version, is_whole) else {
        return Err(HttpError::Nonsense("it is not HTTP"));
    };
    let all = |name: &str| -> Vec<&[u8]> {
        let named = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value.trim_ascii()).collect()
    };
    let length = match (all("content-length").as_slice(), all("transfer-encoding").is_empty()) {
        ([], true) if matches!(status, 204 | 304) => 0,
        ([one], true) => number(one).ok_or(HttpError::Nonsense("its length is not a number"))?,
        _ => return Err(HttpError::Nonsense("it does not say how long it is")),
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > LARGEST_BODY {
        return Err(HttpError::Nonsense("it is larger than 16 MiB"));
    }
    let closes = all("connection").iter().any(|value| value.eq_ignore_ascii_case(b"close"));
    let retry_after = all("retry-after").first().and_then(|value| number(value)).map(Duration::from_secs);
    Ok(Head { status, retry_after, length, stays: version == 1 && !closes })
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

fn read_body(stream: &mut impl Read, mut body: Vec<u8>, length: usize) -> Result<Vec<u8>, HttpError> {
    let mut buffer = vec![0; 16 << 10];
    while body.len() < length {
        let most = buffer.len().min(length - body.len());
        match stream.read(&mut buffer[..most]) {
            Ok(0) => {
                return Err(HttpError::Io { error: io::ErrorKind::UnexpectedEof.into(), begun: true });
            }
            Ok(count) => body.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(HttpError::Io { error, begun: true }),
        }
    }
    if body.len() > length { Err(HttpError::Nonsense("it is longer than it says")) } else { Ok(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what it was told to, however it is asked.
    struct Said<'a>(&'a [u8]);

    impl Read for Said<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Said<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn hear(answer: &[u8]) -> Result<Answer, HttpError> {
        let request = Request { method: "GET", path: "/", host: "h", token: "t", headers: &[], body: None };
        ask(&mut Said(answer), &request)
    }

    #[test]
    fn an_answer_is_read_whole() {
        let answer = hear(b"HTTP/1.1 429 No\r\nRetry-After: 7\r\ncontent-length: 2\r\n\r\nhi").unwrap();
        assert_eq!((answer.status, answer.body.as_slice(), answer.stays), (429, &b"hi"[..], true));
        assert_eq!(answer.retry_after, Some(Duration::from_secs(7)));
        let answer = hear(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
        assert_eq!((answer.status, answer.stays), (204, false));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let long = [&b"HTTP/1.1 200 OK\r\n"[..], &b"X: y\r\n".repeat(4000), b"\r\n"].concat();
        let many = [&b"HTTP/1.1 200 OK\r\n"[..], &b"X: y\r\n".repeat(65), b"\r\n"].concat();
        for answer in [
            &b"SSH-2.0-OpenSSH\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\na",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
            &long,
            &many,
        ] {
            let heard = hear(answer);
            assert!(matches!(heard, Err(HttpError::Nonsense(_))), "{heard:?}");
        }
        for answer in [&b""[..], b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"] {
            let heard = hear(answer);
            assert!(
                matches!(heard, Err(HttpError::Io { begun, .. }) if begun != answer.is_empty()),
                "{heard:?}"
            );
        }
    }
}
