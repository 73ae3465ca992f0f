//! Going into nodes by SSH: looking, running a program, and what people need to do so by hand.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use orch_model::system::Inventory;
use orch_model::{Config, Inspection};
use orch_run::{Door, Ended, Target, TransportError};

use super::client::Ssh;
use super::config::{self, Entry, Jump};
use super::doors::Doors;
use super::quote;
use super::refusal::Refusal;
use super::way::{Hop, Way};
use crate::exec::exec;
use crate::push;

#[async_trait]
impl Door for Ssh {
    async fn inspect(&self, target: &Target, config: &Config) -> Result<Inspection, TransportError> {
        let way = self.way(target).await?;
        let connection = self.reach_by(target, &way).await?;
        push::inspect(&connection, &way.program, target, config, &self.settings().limits).await
    }

    async fn inventory(&self, target: &Target) -> Result<Inventory, TransportError> {
        let way = self.way(target).await?;
        let connection = self.reach_by(target, &way).await?;
        push::inventory(&connection, &way.program, target, &self.settings().limits).await
    }

    async fn exec(&self, target: &Target, argv: &[String], limit: Duration) -> Result<Ended, TransportError> {
        let name = argv.first().cloned().unwrap_or_default();
        quote::command(&[&name]).map_err(|why| Refusal::unusable(why).of(&target.identity))?;
        let connection = self.reach(target).await?;
        exec(&connection, target, argv, limit).await
    }

    fn session(&self, target: &Target, argv: &[String]) -> Result<Vec<OsString>, TransportError> {
        let way = self.way_now(target)?;
        let refuse = |why| Refusal::unusable(why).of(&target.identity);
        let Some(alias) = way.hops.last().map(|hop| hop.alias.clone()) else {
            return Err(refuse("no way leads there".into()));
        };
        let doors = self.doors();
        let file = doors.config(&way.hops);
        let text = self.written_for_people(&[way], &Jump::Through(file.clone())).map_err(refuse)?;
        doors.keep(&file, &text).map_err(refuse)?;
        let mut words: Vec<OsString> = vec![self.settings().ssh.clone().into(), "-F".into(), file.into()];
        if !argv.is_empty() && io::stdin().is_terminal() && io::stdout().is_terminal() {
            words.push("-t".into());
        }
        words.extend(["--".into(), alias.into()]);
        if !argv.is_empty() {
            let program: Vec<&str> = argv.iter().map(String::as_str).collect();
            words.push(quote::command(&program).map_err(refuse)?.into());
        }
        Ok(words)
    }

    fn ssh_config(&self, targets: &[Target]) -> Result<Option<String>, TransportError> {
        let Some(first) = targets.first() else { return Ok(None) };
        let ways = targets.iter().map(|target| self.way_now(target)).collect::<Result<Vec<_>, _>>()?;
        let text = self.written_for_people(&ways, &Jump::ByName);
        text.map(Some).map_err(|why| Refusal::unusable(why).of(&first.identity))
    }
}

impl Ssh {
    /// The way to a node, for callers that cannot wait. Finding it may need a runtime, and the one that the caller is in
    /// cannot be waited for from inside, so it gets a small one in a thread of its own.
    fn way_now(&self, target: &Target) -> Result<Way, TransportError> {
        let failed = |error: io::Error| TransportError::Unreachable {
            node: target.identity.clone(),
            why: format!("the way to it cannot be looked for: {error}"),
            evidence: Vec::new(),
        };
        let find = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(failed)?.block_on(self.way(target))
        };
        std::thread::scope(|scope| scope.spawn(find).join()).expect("finding the way does not panic")
    }

    fn doors(&self) -> Doors {
        Doors::under(&self.settings().folder)
    }

    /// A configuration for these ways that does not need this program. The pinned keys lie in files that stay.
    fn written_for_people(&self, ways: &[Way], jump: &Jump) -> Result<String, String> {
        let doors = self.doors();
        doors.sweep();
        let mut listed: BTreeMap<&str, (&Hop, Option<&str>, PathBuf)> = BTreeMap::new();
        for way in ways {
            let mut before = None;
            for hop in &way.hops {
                hop.check()?;
                let known_hosts = doors.pin(hop)?;
                listed.insert(&hop.alias, (hop, before.replace(hop.alias.as_str()), known_hosts));
            }
        }
        let entries = listed.values().map(|(hop, before, known_hosts)| Entry {
            hop,
            before: *before,
            known_hosts,
            control: None,
        });
        config::render(&entries.collect::<Vec<_>>(), jump, self.settings())
    }
}
