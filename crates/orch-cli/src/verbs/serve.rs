//! `orch serve`: the spec server in the foreground, or under systemd.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use orch_model::pull::SERVER_PORT;
use orch_model::{HostName, Outline, UserName, outline};
use orch_providers::local::{Local, Setup};
use orch_run::log::{Level, Line, LogFormat, Trace};
use orch_run::{ExitCode, StateDir, load};
use orch_secrets::Identities;
use orch_server::{Certificates, InOffice, Limits, Operator, OperatorError, ServerFolder, SitePlace, Tell};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::args::{Cli, ServeArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::runtime::block_on;
use crate::scene;
use crate::serving::{NOW_AND_THEN, Service};
use crate::site;

pub(crate) fn run(cli: &Cli, args: &ServeArgs, output: &Output) -> Result<ExitCode, Failure> {
    let served = Served::of(cli)?;
    if args.rotate_cert {
        let pins = Certificates::rotate(&served.folder).map_err(|error| Failure::server(&error))?.pins();
        take_over(&served.folder)?;
        output.answer(&format!("shown from now on: {}\nnext: {}", pins[0], pins[1]), &pins);
        return Ok(ExitCode::Done);
    }
    let limits = usize::try_from(args.connections).unwrap_or(usize::MAX);
    let limits = Limits { connections: limits, waiting: limits / 2, ..Limits::default() };
    let service = Service {
        folder: served.folder,
        place: SitePlace { root: served.root, manifest: None, identities: served.identities },
        locals: served.locals,
        limits,
        tell: log(args.log_format.into()),
        look_every: NOW_AND_THEN,
    };
    block_on(async move { serve(&service, &listeners(args)?).await })?;
    Ok(ExitCode::Done)
}

/// Has a server that runs take over what was changed on disk. Where none runs, the next one does.
pub(crate) fn take_over(folder: &ServerFolder) -> Result<(), Failure> {
    block_on(async {
        match Operator::of(folder.clone()).reload().await {
            Err(OperatorError::Absent { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(Failure::server(&error)),
        }
    })
}

/// What is served.
pub(crate) struct Served {
    pub(crate) folder: ServerFolder,
    pub(crate) root: std::path::PathBuf,
    pub(crate) accepts_legacy_tokens: bool,
    pub(crate) identities: Identities,
    locals: BTreeMap<HostName, Local>,
}

impl Served {
    /// The site that the command is about. What else is wrong with it keeps nobody from serving the rest, or from revoking.
    pub(crate) fn of(cli: &Cli) -> Result<Self, Failure> {
        let root = scene::absolute(&site::root(cli)?);
        let state = scene::state(cli)?;
        let sources = load::site(&root)?;
        let Outline { name, hosts_here, accepts_legacy_tokens, .. } = outline(&sources)?;
        let program = scene::program()?;
        let local = |host: HostName| (host.clone(), here(&host, &state, &root, &program));
        let locals = hosts_here.into_iter().map(local).collect();
        let identities = Identities::of_process();
        let folder = ServerFolder::of(&state, &name).of_site(&root, identities.clone());
        Ok(Self { folder, locals, root: root.clone(), accepts_legacy_tokens, identities })
    }
}

/// A host of this computer, to be listened in.
fn here(host: &HostName, state: &StateDir, site: &Path, program: &Path) -> Local {
    Local::new(Setup {
        host: host.clone(),
        state: state.clone(),
        site: site.to_owned(),
        user: UserName::root(),
        program: program.to_owned(),
        reach: None,
    })
}

/// The sockets that systemd hands over, or those that are asked for.
fn listeners(args: &ServeArgs) -> Result<Vec<TcpListener>, Failure> {
    let mut given = listenfd::ListenFd::from_env();
    let mut listeners = Vec::new();
    for place in 0..given.len() {
        let taken = given.take_tcp_listener(place);
        listeners.extend(taken.map_err(|error| Failure::server(&error))?);
    }
    let usual = [SocketAddr::from(([127, 0, 0, 1], SERVER_PORT))];
    let asked = if args.listen.is_empty() && listeners.is_empty() { &usual[..] } else { &args.listen };
    for address in asked {
        let bound = TcpListener::bind(address);
        listeners.push(bound.map_err(|source| Failure::NotListening { address: *address, source })?);
    }
    Ok(listeners)
}

async fn serve(service: &Service, listeners: &[TcpListener]) -> Result<(), Failure> {
    let office = service.enter()?.ok_or(Failure::OfficeTaken)?;
    for listener in listeners {
        let ours = listener.try_clone().and_then(|listener| office.listen(listener));
        ours.map_err(|error| Failure::server(&error))?;
    }
    let orders = Orders::listen()?;
    let (end, mut ended) = watch::channel(false);
    // Where nobody started us who wants to know, nobody is told.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    (service.tell)(Level::Info, "begin", "-", &format!("serving {}", service.place.root.display()));
    tokio::select! {
        () = service.attend(&office, &mut ended) => {}
        () = obey(service, &office, orders) => {}
    }
    end.send_replace(true);
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    office.end().await;
    (service.tell)(Level::Info, "end", "-", "ended");
    Ok(())
}

/// What the server is told by signals, from the moment on that anybody could know that it runs.
struct Orders {
    again: Signal,
    end: Signal,
    interrupt: Signal,
}

impl Orders {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::server(&error));
        Ok(Self {
            again: listen(SignalKind::hangup())?,
            end: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }
}

/// Reads everything anew on `SIGHUP`, and comes back when it is told to end.
async fn obey(service: &Service, office: &InOffice, mut orders: Orders) {
    loop {
        tokio::select! {
            () = heard(&mut orders.again) => match office.reload() {
                Ok(()) => (service.tell)(Level::Info, "reload", "-", "everything was read anew"),
                Err(error) => {
                    let why = format!("everything stays as it was: {}", Failure::server(&error).chain());
                    (service.tell)(Level::Error, "reload", "-", &why);
                }
            },
            () = heard(&mut orders.end) => return,
            () = heard(&mut orders.interrupt) => return,
        }
    }
}

async fn heard(signal: &mut Signal) {
    signal.recv().await;
}

/// An access log on standard error.
fn log(format: LogFormat) -> Tell {
    let trace = Trace::from_env(|name| std::env::var(name).ok());
    Arc::new(move |level, phase, component, message| {
        let line = Line { timestamp: Timestamp::now(), level, action: "serve", phase, component, message };
        // There is nobody to tell that it cannot be told.
        let _ = writeln!(std::io::stderr(), "{}", line.format(format, &trace));
    })
}
