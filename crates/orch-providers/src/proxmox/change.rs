//! Changing a machine that is there: its configuration, its size.

use orch_model::Size;
use orch_plan::MachineRef;
use orch_run::{Done, Order};
use uuid::Uuid;

use super::call::Pairs;
use super::config::Config;
use super::guest::{GuestKind, Spot, Status};
use super::maker::Maker;
use super::mark::{self, Bears};
use super::read::Fields;
use super::trouble::Trouble;
use crate::cloud::Written;

impl Maker {
    /// Changes the configuration of a machine that bears the mark, and no other: where it was changed since it was read, it is
    /// read again, and so is its mark.
    pub(super) async fn write(
        &self,
        spot: &Spot,
        uuid: Uuid,
        mut config: Config,
        change: impl Fn(&Config) -> Option<Pairs> + Send,
    ) -> Result<Done, Trouble> {
        let mut tries = self.tries();
        let mut is_fresh = true;
        loop {
            if !is_fresh {
                (_, config) = self.verified(&spot.id.to_string(), uuid).await?;
            }
            is_fresh = false;
            let Some(mut pairs) = change(&config) else { return Ok(Done::Unchanged) };
            pairs.extend(config.digest().map(|digest| ("digest", digest.to_owned())));
            match self.caller.put(&spot.path("/config"), &pairs).await {
                Ok(_) => return Ok(Done::Changed),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }

    /// Lets the disk of a machine grow where it has to; its configuration afterwards.
    pub(super) async fn grow_disk(
        &self,
        spot: &Spot,
        uuid: Uuid,
        config: Config,
        wanted: u32,
    ) -> Result<Config, Trouble> {
        let id = spot.id.to_string();
        let mut config = config;
        let mut tries = self.tries();
        loop {
            let none = || Trouble::Refused(format!("machine `{id}` has no disk to start from"));
            let (disk, size) = config.boot_disk(spot.id.kind).ok_or_else(none)?;
            let bytes = u64::from(wanted) << 30;
            match size {
                Some(size) if size == bytes => return Ok(config),
                Some(size) if size > bytes => {
                    let has = size.div_ceil(1 << 30);
                    return Err(Trouble::Refused(format!(
                        "the disk of `{id}` has {has} GB and cannot shrink to {wanted}: give the node a larger one"
                    )));
                }
                _ => {}
            }
            let mut pairs: Pairs = vec![("disk", disk), ("size", format!("{wanted}G"))];
            pairs.extend(config.digest().map(|digest| ("digest", digest.to_owned())));
            let grown = async {
                let _lane = self.lanes.acquire().await.expect("the lanes are never closed");
                let answer = self.caller.put(&spot.path("/resize"), &pairs).await?;
                self.done(&answer, &format!("growing the disk of `{id}`")).await
            };
            let is_done = match grown.await {
                Ok(()) => true,
                Err(trouble) => {
                    tries.again(trouble).await?;
                    false
                }
            };
            (_, config) = self.verified(&id, uuid).await?;
            if is_done {
                return Ok(config);
            }
        }
    }

    /// Gives a machine another size.
    pub(super) async fn resize(
        &self,
        order: &Order,
        machine: &MachineRef,
        to: Size,
    ) -> Result<Done, Trouble> {
        let (spot, config) = self.verified(&machine.id, order.uuid).await?;
        let was = config.extent(spot.id.kind);
        let mut done = Done::Unchanged;
        let mut config = config;
        if was.disk.is_none_or(|disk| disk < u64::from(to.disk) << 30) {
            order.progress.say("growing the disk");
            config = self.grow_disk(&spot, order.uuid, config, to.disk).await?;
            done = Done::Changed;
        }
        let is_other = was.cores != Some(u64::from(to.cores)) || was.memory != Some(u64::from(to.memory));
        if is_other || resized_tags(to, &config).is_some() {
            order.progress.say("changing cores and memory");
            self.write(&spot, order.uuid, config, |config| Some(sized(spot.id.kind, to, config))).await?;
            done = Done::Changed;
        }
        if self.has_pending(&spot).await? {
            let is_on = self.current(&spot).await?.is_some_and(|current| current.status == Status::Running);
            if is_on {
                self.restart(&spot, &order.progress).await?;
                self.remember_address(order.uuid, None);
                self.reach(order, &spot).await?;
            }
            done = Done::Changed;
        }
        Ok(done)
    }

    /// Whether a change of size waits for the next start.
    async fn has_pending(&self, spot: &Spot) -> Result<bool, Trouble> {
        let path = spot.path("/pending");
        let answer = self.caller.get(&path).await?;
        let entries = Fields::each(&path, &answer)?;
        let is_size = |entry: &Fields<'_>| {
            let key = entry.text("key").unwrap_or_default();
            matches!(key.as_str(), "cores" | "sockets" | "memory")
                && (entry.raw("pending").is_some() || entry.is_set("delete"))
        };
        Ok(entries.iter().any(is_size))
    }
}

fn sized(kind: GuestKind, to: Size, config: &Config) -> Pairs {
    let mut pairs: Pairs = vec![("cores", to.cores.to_string()), ("memory", to.memory.to_string())];
    pairs.extend(resized_tags(to, config).map(|tags| ("tags", tags)));
    if kind == GuestKind::Qemu && config.word("sockets").is_some_and(|sockets| sockets != "1") {
        pairs.push(("sockets", "1".into()));
    }
    pairs.extend(config.balloon_for(to.memory));
    pairs
}

/// The tags of a machine that has the size on it that was asked for, where that was another one.
fn resized_tags(to: Size, config: &Config) -> Option<String> {
    let Bears::Made(written) = config.bears() else { return None };
    written.size.filter(|size| *size != to)?;
    let written = Written { size: Some(to), ..*written };
    Some(mark::tags(&written, &config.tags()))
}

#[cfg(test)]
mod tests {
    use orch_plan::Marks;
    use serde_json::json;

    use super::*;

    fn config(size: Option<Size>) -> Config {
        let marks = Marks {
            site: "home.example".parse().unwrap(),
            manifest: "workers".parse().unwrap(),
            node: "worker-1".parse().unwrap(),
            host: "father".parse().unwrap(),
            uuid: Uuid::from_u128(7),
        };
        let written = Written { marks, first: None, own: None, applied: None, port: 22, image: None, size };
        let tags = mark::tags(&written, &["mine".into()]);
        Config::read("GET /x", &json!({ "cores": 1, "memory": 1024, "tags": tags })).unwrap()
    }

    #[test]
    fn a_machine_that_gets_less_memory_than_it_is_to_keep_keeps_all_of_that() {
        let config = Config::read("GET /x", &json!({ "memory": "2048", "balloon": 1024 })).unwrap();
        let size = |memory| Size { cores: 1, memory, disk: 10 };
        let has = |memory| {
            let pairs = sized(GuestKind::Qemu, size(memory), &config);
            pairs.into_iter().find(|(name, _)| *name == "balloon").map(|(_, balloon)| balloon)
        };
        assert_eq!((has(512).as_deref(), has(1024), has(4096)), (Some("512"), None, None));
    }

    #[test]
    fn a_container_that_gets_another_size_has_that_one_on_it() {
        let size = |disk| Size { cores: 1, memory: 1024, disk };
        let pairs = sized(GuestKind::Lxc, size(110), &config(Some(size(100))));
        let tags = pairs.iter().find(|(name, _)| *name == "tags").map(|(_, tags)| tags.as_str());
        let tags = tags.expect("its tags are written");
        assert!(tags.contains("orch-size.1-1024-110") && tags.starts_with("mine;"), "{tags}");
        assert_eq!(resized_tags(size(100), &config(Some(size(100)))), None);
        assert_eq!(resized_tags(size(100), &config(None)), None);
    }
}
