//! Ways into a running machine: a program run inside of it, and a connection to one of its ports.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space};
use thiserror::Error;

use super::boot::{BootError, UPLINK, drop_powers, join};
use super::inside::Outside;
use super::limits;
use super::machine::is_root;
use super::process::Process;
use super::record::Folder;

/// The word for running a program inside of a machine.
pub(crate) const ENTER: &str = "enter";
/// The word for connecting to a port of a machine.
pub(crate) const CONNECT: &str = "connect";

/// The word for waiting until the SSH server of a machine answers.
pub(crate) const KNOCK: &str = "knock";

/// Why there is no way in.
#[derive(Debug, Error)]
pub(crate) enum EnterError {
    #[error("machine `{0}` does not run")]
    Off(String),
    #[error(transparent)]
    Namespace(#[from] BootError),
    #[error("the network that it is attached to cannot be entered")]
    Network(#[source] io::Error),
    #[error("the control groups of the machine cannot be entered")]
    Group(#[source] io::Error),
    #[error("`{0}` cannot be run there")]
    Run(String, #[source] io::Error),
    #[error("nothing answers at {0}")]
    Connect(SocketAddr, #[source] io::Error),
    #[error("its SSH server did not answer within {0:?}")]
    Silent(Duration, #[source] io::Error),
    #[error("{0} cannot be listened at")]
    Listen(SocketAddr, #[source] io::Error),
    #[error("what it is cannot be read")]
    Record(#[source] io::Error),
}

/// Runs a program inside of a machine, as its root, and ends as it does.
pub(crate) fn enter(folder: &Folder, argv: &[OsString]) -> Result<ExitCode, EnterError> {
    let init = folder.running().ok_or_else(|| EnterError::Off(folder.name()))?;
    if let Some(boot) = folder.boot().filter(|boot| !boot.cgroups.is_empty()) {
        limits::enter_as_guest(&boot.cgroups, std::process::id()).map_err(EnterError::Group)?;
    }
    let all = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::CONTROL_GROUP;
    join(&init, if is_root() { all } else { all | ThreadNameSpaceType::USER })?;
    // What is run here is of the machine, and can do no more than what the machine runs itself.
    drop_powers()?;
    let [program, rest @ ..] = argv else { return Ok(ExitCode::SUCCESS) };
    let mut command = Command::new(program);
    command.args(rest).current_dir("/").env_clear();
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    command.env("USER", "root").env("TERM", std::env::var_os("TERM").unwrap_or_else(|| "dumb".into()));
    let failed = |error| EnterError::Run(program.to_string_lossy().into_owned(), error);
    let status = match command.status() {
        // What a shell answers for a program that is not there.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ExitCode::from(127)),
        status => status.map_err(failed)?,
    };
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(255)))
}

/// Waits until the SSH server of a machine says who it is.
pub(crate) fn knock(folder: &Folder, port: u16, within: Duration) -> Result<(), EnterError> {
    let init = folder.running().ok_or_else(|| EnterError::Off(folder.name()))?;
    let record = folder.record().map_err(EnterError::Record)?;
    join_bridge(folder, &init, record.inside.as_deref())?;
    let address = SocketAddr::from((record.place.address(), port));
    let deadline = Instant::now() + within;
    loop {
        // One lost packet is waited for longer and longer; asking anew is quicker.
        match greeting(address, deadline.min(Instant::now() + Duration::from_secs(1))) {
            Ok(()) => return Ok(()),
            Err(_) if !init.is_alive() => return Err(EnterError::Off(folder.name())),
            Err(error) if Instant::now() >= deadline => return Err(EnterError::Silent(within, error)),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Connects, and hears the first words of an SSH server.
fn greeting(address: SocketAddr, deadline: Instant) -> io::Result<()> {
    // A timeout of nothing would be none at all.
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream = TcpStream::connect_timeout(&address, left())?;
    stream.set_read_timeout(Some(left()))?;
    let mut words = [0_u8; 4];
    stream.read_exact(&mut words)?;
    if &words == b"SSH-" { Ok(()) } else { Err(io::Error::other("what answers is no SSH server")) }
}

/// Connects standard input and output with a port of a machine, over the bridge that it is attached to.
pub(crate) fn connect(folder: &Folder, port: u16) -> Result<(), EnterError> {
    let init = folder.running().ok_or_else(|| EnterError::Off(folder.name()))?;
    let record = folder.record().map_err(EnterError::Record)?;
    join_bridge(folder, &init, record.inside.as_deref())?;
    let address = SocketAddr::from((record.place.address(), port));
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10));
    let stream = stream.map_err(|error| EnterError::Connect(address, error))?;
    // Answers are short, and waited for.
    let _ = stream.set_nodelay(true);
    relay(&stream).map_err(|error| EnterError::Connect(address, error))
}

/// Enters the network of the bridge that a machine is attached to: the host's, or that of the machine it lives in.
pub(super) fn join_bridge(folder: &Folder, init: &Process, within: Option<&str>) -> Result<(), EnterError> {
    if !is_root() {
        join(init, ThreadNameSpaceType::USER)?;
    }
    let outside = Outside::look();
    let network = match within {
        Some(parent) => {
            let init = folder.sibling(parent).running();
            let init = init.ok_or_else(|| EnterError::Off(parent.to_owned()))?;
            outside.and_then(|outside| outside.network_of(&init))
        }
        None => outside.and_then(|outside| outside.network_at(init, UPLINK)),
    };
    let network = network.map_err(EnterError::Network)?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| EnterError::Network(error.into()))
}

/// Carries bytes both ways until the machine has no more to say.
fn relay(stream: &TcpStream) -> io::Result<()> {
    let mut there = stream.try_clone()?;
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut there);
        let _ = there.shutdown(Shutdown::Write);
    });
    let mut out = Unbuffered(io::stdout().lock());
    io::copy(&mut &*stream, &mut out).map(|_| ())
}

/// Standard output waits for whole lines; what is spoken here has none.
struct Unbuffered<'o>(io::StdoutLock<'o>);

impl Write for Unbuffered<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.0.write(bytes)?;
        self.0.flush()?;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
