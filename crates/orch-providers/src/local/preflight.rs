//! What would stand in the way of machines on this computer, and what would be less than was asked for.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use orch_plan::MachineSpec;

use super::advice::advice;
use super::boot::{PROBE, Trouble};
use super::child::helper;
use super::image::Image;
use super::limits::Hierarchies;
use super::machine::Ids;
use super::make::Maker;
use super::seed::shared_around;
use crate::finish::finish;
use crate::preflight::{Obstacle, Preflight};

/// What a machine made from this machine's programs takes before anything is written to it, with room to begin.
const LEAST_BYTES: u64 = 32 << 20;

/// How long the kernel may take to say what it allows.
const PROBING: Duration = Duration::from_secs(30);

impl Maker {
    /// Says what would stand in the way of making these machines.
    pub(crate) fn preflight(&self, wanted: &[MachineSpec]) -> Preflight {
        let mut found = Preflight { caveats: self.caveats(), ..Preflight::default() };
        if wanted.is_empty() {
            return found;
        }
        found.obstacles.extend(self.forbidden());
        found.obstacles.extend(self.exposed(wanted));
        found.obstacles.extend(self.full(wanted));
        let mut images: Vec<&str> = wanted.iter().map(|machine| machine.image.as_str()).collect();
        images.sort_unstable();
        images.dedup();
        found.obstacles.extend(images.into_iter().filter_map(|image| self.unusable(image)));
        found
    }

    /// What machines here will have less of than was asked for.
    fn caveats(&self) -> Vec<String> {
        let host = &self.host;
        let mut caveats = Vec::new();
        if self.means.disk.is_none() {
            let why =
                if self.means.is_root() { "needs mkfs.ext4, mount and loop devices" } else { "needs root" };
            caveats.push(format!("disks on `{host}` have no limit: a disk with a size {why}"));
        }
        let missing = Hierarchies::look().missing();
        if !missing.is_empty() {
            let what = missing.join(" and ");
            caveats.push(format!("{what} on `{host}` has no limit: no control group may be made for it"));
        }
        match self.means.ids {
            Ids::One => caveats.push(format!(
                "nodes on `{host}` have one user alone and no SSH server: /etc/subuid and /etc/subgid grant no range of ids"
            )),
            _ if self.means.ssh.is_none() => {
                caveats.push(format!("nodes on `{host}` have no SSH server: this computer has no sshd"));
            }
            _ => {}
        }
        caveats
    }

    /// What the kernel does not allow.
    fn forbidden(&self) -> Option<Obstacle> {
        match finish(&mut helper(&self.program, PROBE, Path::new("-")), PROBING) {
            Ok(ended) if ended.status.success() => None,
            Ok(ended) => {
                let trouble = Trouble::of_helper(&ended);
                Some(Obstacle {
                    what: format!("this computer does not allow what a machine needs: {}", trouble.words),
                    hint: advice(&trouble),
                })
            }
            Err(error) => {
                let what = format!("`{}` cannot be run: {error}", self.program.display());
                Some(Obstacle { what, hint: "see whether the program is still where it was".into() })
            }
        }
    }

    /// What nodes could read that is nobody's but ours: the keys that open all of them, and their disks.
    fn exposed(&self, wanted: &[MachineSpec]) -> Option<Obstacle> {
        let shares = |machine: &MachineSpec| {
            Image::named(&machine.image, &self.site).is_ok_and(|image| image.shares_programs())
        };
        if !wanted.iter().any(shares) {
            return None;
        }
        let kept = [self.identity.clone(), self.store.images()];
        let (path, around) = kept.iter().find_map(|path| Some((path, shared_around(path)?)))?;
        Some(Obstacle {
            what: format!(
                "`{}` would lie in `{}`, which nodes made from this computer's programs can read",
                path.display(),
                around.display()
            ),
            hint: "name another folder with --state".into(),
        })
    }

    /// Whether there is room for what the machines begin with. Disks are sparse: what is promised may be more than there is.
    fn full(&self, wanted: &[MachineSpec]) -> Option<Obstacle> {
        let images = self.store.images();
        let there = images.ancestors().find(|path| path.exists())?;
        let space = rustix::fs::statvfs(there).ok()?;
        let free = space.f_bavail * space.f_frsize;
        let mut weights = BTreeMap::new();
        for machine in wanted {
            let image = Image::named(&machine.image, &self.site).ok();
            weights.entry(&machine.image).or_insert_with(|| image.map_or(0, |image| image.weight()));
        }
        // Each image is prepared once, and then copied for each machine.
        let prepared: u64 = weights.values().sum();
        let copies: u64 = wanted.iter().map(|machine| LEAST_BYTES + weights[&machine.image]).sum();
        let (needed, count) = (prepared + copies, wanted.len());
        let plural = if count == 1 { "" } else { "s" };
        (free < needed).then(|| Obstacle {
            what: format!(
                "`{}` has {} MB left, and {count} machine{plural} take {} MB to begin with",
                there.display(),
                free >> 20,
                needed >> 20
            ),
            hint: "make room, or name another folder with --state".into(),
        })
    }

    fn unusable(&self, image: &str) -> Option<Obstacle> {
        match Image::named(image, &self.site) {
            Err(what) => Some(Obstacle { what, hint: format!("mend `images` in hosts/{}.yaml", self.host) }),
            Ok(Image::ThisMachine) => None,
            Ok(_) if self.means.is_root() => None,
            Ok(_) => Some(Obstacle {
                what: format!("image `{image}` is a root file system, which only root can start here"),
                hint: "run as root, or use the image `this-machine`".into(),
            }),
        }
    }
}
