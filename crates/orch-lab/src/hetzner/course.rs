//! Actions on their way: each takes its time, orders the machine about, and is written down. After it comes the one that waits
//! for it.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use jiff::Timestamp;

use super::Inner;
use super::call::stand;
use super::catalog::ServerType;
use super::effect::{Effect, settle};
use super::state::{Action, Course, Kind, Server, State, Status};
use crate::machines::{FirstBoot, Power, Trouble, Wanted};

/// The running actions that wait for nothing: those that somebody has to carry out after a restart.
pub(super) fn waiting(state: &State) -> Vec<u64> {
    let is_over = |id: &u64| state.actions.get(id).is_none_or(|action| !action.is_running());
    let running = state.actions.iter().filter(|(_, action)| action.is_running());
    running.filter(|(_, action)| action.after.as_ref().is_none_or(is_over)).map(|(id, _)| *id).collect()
}

/// Carries out the actions that nobody carries out yet. They end with what they belong to.
pub(super) fn set_off(inner: &Arc<Inner>, state: &mut State) {
    for id in state.fresh.drain(..) {
        tokio::spawn(carry_out(Arc::downgrade(inner), id, inner.settings.action_time));
    }
}

async fn carry_out(inner: Weak<Inner>, first: u64, takes: std::time::Duration) {
    let mut next = Some(first);
    while let Some(id) = next {
        tokio::time::sleep(takes).await;
        let Some(inner) = inner.upgrade() else { return };
        let action = inner.state().actions.get(&id).filter(|action| action.is_running()).cloned();
        let Some(action) = action.filter(|action| action.effect != Effect::Never) else { return };
        let outcome = inner.order(&action).await;
        next = inner.finish(id, &action, outcome);
        if let Some(Kind::Server) = Some(action.subject.0) {
            inner.see(action.subject.1).await;
        }
    }
}

impl Inner {
    /// Tells the machine what an action does to it.
    async fn order(&self, action: &Action) -> Result<(), Trouble> {
        if action.effect == Effect::Fail {
            return Err(Trouble("Action failed".into()));
        }
        let (Kind::Server, number) = action.subject else { return Ok(()) };
        let (machines, id) = (&self.settings.machines, machine(number));
        if action.effect == Effect::Delete {
            return machines.remove(&id).await;
        }
        let Some(server) = self.state().servers.get(&number).cloned() else { return Ok(()) };
        match &action.effect {
            Effect::Create => machines.make(&wanted(number, &server)?).await,
            Effect::Start => self.start(number, &server).await,
            Effect::Stop => machines.stop(&id).await,
            Effect::Restart(is_forced) => {
                if !is_forced && action.before != Some(Status::Running) {
                    return Ok(());
                }
                machines.stop(&id).await?;
                self.start(number, &server).await
            }
            Effect::Retype(name, grows) => {
                let kind =
                    ServerType::find(name).ok_or_else(|| Trouble("there is no such server type".into()))?;
                machines.resize(&id, kind.size(if *grows { kind.disk } else { server.disk })).await?;
                self.start(number, &Server { kind: name.clone(), ..server }).await
            }
            Effect::Rebuild(image) => {
                machines.stop(&id).await?;
                machines.remove(&id).await?;
                let server = Server { image: image.clone(), rebuilt: server.rebuilt + 1, ..server };
                self.start(number, &server).await
            }
            _ => Ok(()),
        }
    }

    async fn start(&self, number: u64, server: &Server) -> Result<(), Trouble> {
        self.settings.machines.make(&wanted(number, server)?).await?;
        if server.is_silent {
            return Ok(());
        }
        // A rebuilt server lives anew, and is given everything again.
        let instance = match server.rebuilt {
            0 => number.to_string(),
            times => format!("{number}-{times}"),
        };
        let first = FirstBoot {
            vendor_data: Vec::new(),
            instance,
            hostname: server.meta.name.clone(),
            user_data: server.user_data.clone().into_bytes(),
            user: None,
            keys: server.keys.clone(),
        };
        self.settings.machines.start(&machine(number), &first).await
    }

    /// Writes down how an action ended, and says which one comes next.
    fn finish(&self, id: u64, action: &Action, outcome: Result<(), Trouble>) -> Option<u64> {
        let mut state = self.state();
        let course = match outcome {
            Ok(()) => Course::Success,
            Err(Trouble(why)) => Course::Error(why),
        };
        if course == Course::Success {
            settle(&mut state, action);
        }
        if let (Some(before), true) = (action.before, course != Course::Success || is_idle_reboot(action)) {
            stand(&mut state, action.subject, before);
        }
        let next = end(&mut state, id, &course);
        let waiting = next.and_then(|next| state.actions.get_mut(&next));
        if let Some(action) = waiting {
            action.started = Timestamp::now();
            let (subject, meanwhile) = (action.subject, action.effect.status_meanwhile());
            let before = meanwhile.and_then(|status| stand(&mut state, subject, status));
            if let Some(action) = next.and_then(|next| state.actions.get_mut(&next)) {
                action.before = before;
            }
        }
        self.save(&state);
        next
    }

    /// Looks at a server's machine: whether it runs, and where.
    pub(super) async fn see(&self, number: u64) {
        let looked_at = |state: &State| {
            let server = state.servers.get(&number).filter(|server| !server.is_silent)?;
            (!state.is_locked(Kind::Server, number, false)).then_some(server.revision)
        };
        let Some(revision) = looked_at(&self.state()) else { return };
        let power = self.settings.machines.power(&machine(number)).await;
        let address = self.settings.machines.address(&machine(number)).await;
        let mut state = self.state();
        if looked_at(&state) != Some(revision) {
            return;
        }
        let Some(server) = state.servers.get_mut(&number) else { return };
        server.status = if power == Power::On { Status::Running } else { Status::Off };
        let (ipv4, ipv6) = (server.ipv4, server.ipv6);
        let (id, text) = match address {
            Some(IpAddr::V4(address)) => (ipv4, address.to_string()),
            Some(IpAddr::V6(address)) => (ipv6, format!("{address}/64")),
            None => return,
        };
        if let Some(ip) = id.and_then(|id| state.ips.get_mut(&id)) {
            ip.ip = text;
        }
    }
}

/// Ends an action; if it failed, so do those that wait for it. The next one otherwise.
fn end(state: &mut State, id: u64, course: &Course) -> Option<u64> {
    if let Some(action) = state.actions.get_mut(&id) {
        (action.course, action.finished) = (course.clone(), Some(Timestamp::now()));
    }
    let mut running = state.actions.iter().filter(|(_, action)| action.is_running());
    let next = running.find(|(_, action)| action.after == Some(id)).map(|(id, _)| *id)?;
    match course {
        Course::Success => Some(next),
        course => end(state, next, course),
    }
}

/// Whether this was a reboot of a server that was off, which does nothing.
fn is_idle_reboot(action: &Action) -> bool {
    action.effect == Effect::Restart(false) && action.before == Some(Status::Off)
}

/// What the machine of a server is called.
fn machine(number: u64) -> String {
    format!("server-{number}")
}

fn wanted(number: u64, server: &Server) -> Result<Wanted, Trouble> {
    let kind =
        ServerType::find(&server.kind).ok_or_else(|| Trouble("there is no such server type".into()))?;
    Ok(Wanted {
        id: machine(number),
        name: server.meta.name.clone(),
        size: kind.size(server.disk),
        image: image(server),
        is_container: false,
    })
}

/// What a server is made from. A snapshot holds nothing here but the name of what it was once made from.
fn image(server: &Server) -> String {
    let name = server.image["name"].as_str().map(str::to_owned);
    let flavor = || {
        let part = |field: &str| server.image[field].as_str().unwrap_or("unknown").to_owned();
        format!("{}-{}", part("os_flavor"), part("os_version"))
    };
    name.unwrap_or_else(flavor)
}
