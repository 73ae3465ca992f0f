//! What would stand in the way of servers, said before anything is touched.

use std::collections::{BTreeMap, BTreeSet};

use orch_model::NodeName;
use orch_plan::MachineSpec;
use serde_json::Value as Json;
use tokio::time::Instant;

use super::Hetzner;
use super::answer::{ServerType, Thing};
use super::ensure::one_of;
use super::trouble::CallError;
use crate::api::encode;
use crate::preflight::{Obstacle, Preflight};

/// Why a node cannot live inside of another here.
pub(super) fn nested(node: &NodeName, parent: &NodeName) -> String {
    format!(
        "node `{node}` is to live inside `{parent}`: servers of Hetzner Cloud cannot host virtual machines"
    )
}

impl Hetzner {
    /// Says what would stand in the way of making these machines, and what would be less than they ask for.
    pub async fn preflight(&self, wanted: &[(NodeName, MachineSpec)]) -> Preflight {
        let mut found = Preflight::default();
        let inside = wanted.iter().filter_map(|(node, spec)| Some((node, spec.parent.as_ref()?)));
        found.obstacles.extend(inside.map(|(node, parent)| Obstacle {
            what: nested(node, parent),
            hint: "place it on another host, with `host` in the manifest".into(),
        }));
        if wanted.is_empty() {
            return found;
        }
        if let Err(error) = self.look_ahead(wanted, &mut found).await {
            let error = error.told(&self.inner.setup.host);
            found.obstacles.push(Obstacle { what: error.to_string(), hint: error.hint() });
        }
        found
    }

    async fn look_ahead(
        &self,
        wanted: &[(NodeName, MachineSpec)],
        found: &mut Preflight,
    ) -> Result<(), CallError> {
        let caller = &self.inner.caller;
        let until = Instant::now() + caller.pace.look;
        let locations: Vec<Thing> = caller.list("/locations", "locations", "", until).await?;
        found.obstacles.extend(self.places(&locations));
        let types: Vec<ServerType> = caller.list("/server_types", "server_types", "", until).await?;
        let mut images = BTreeSet::new();
        for (node, spec) in wanted {
            match self.offered(node, &types) {
                Ok(kind) => {
                    found.caveats.extend(smaller(node, spec, kind));
                    images.insert((spec.image.clone(), kind.architecture.clone()));
                }
                Err(obstacle) if !found.obstacles.contains(&obstacle) => found.obstacles.push(obstacle),
                Err(_) => {}
            }
        }
        for (image, architecture) in images {
            found.obstacles.extend(self.unusable(&image, &architecture, until).await?);
        }
        Ok(())
    }

    /// What is wrong with the locations.
    fn places(&self, locations: &[Thing]) -> Vec<Obstacle> {
        let hetzner = &self.inner.setup.hetzner;
        let known = |name: &String| locations.iter().find(|location| location.name == *name);
        let names: Vec<&str> = locations.iter().map(|location| location.name.as_str()).collect();
        let all = [&hetzner.location].into_iter().chain(&hetzner.fallback_locations);
        let zone = known(&hetzner.location).map(|location| &location.network_zone);
        let wrong = |name: &String| match known(name) {
            None => Some(Obstacle {
                what: format!("there is no location `{name}`"),
                hint: format!("mend it in {}: there are {}", self.file(), names.join(", ")),
            }),
            Some(place)
                if !hetzner.networks.is_empty() && zone.is_some_and(|zone| *zone != place.network_zone) =>
            {
                Some(Obstacle {
                    what: format!("servers in `{name}` cannot join networks of `{}`", hetzner.location),
                    hint: format!("name locations of one zone in {}", self.file()),
                })
            }
            Some(_) => None,
        };
        all.filter_map(wrong).collect()
    }

    /// The type of a node, where it can be had.
    fn offered<'t>(&self, node: &NodeName, types: &'t [ServerType]) -> Result<&'t ServerType, Obstacle> {
        let hetzner = &self.inner.setup.hetzner;
        let mend = || format!("name another in `server_types` of {}", self.file());
        let Some(name) = self.inner.setup.server_types.get(node) else {
            let what = format!("no server type stands for the preset of `{node}`");
            return Err(Obstacle { what, hint: mend() });
        };
        let Some(kind) = types.iter().find(|kind| kind.name == *name) else {
            let names: Vec<&str> = types.iter().map(|kind| kind.name.as_str()).collect();
            let hint = format!("{}: there are {}", mend(), names.join(", "));
            return Err(Obstacle { what: format!("there is no server type `{name}`"), hint });
        };
        let offers = |place: &&String| {
            let offer = kind.locations.iter().find(|offer| offer.name == **place);
            let is_priced = kind.prices.iter().any(|price| price.location == **place);
            if kind.locations.is_empty() {
                is_priced
            } else {
                offer.is_some_and(|offer| offer.deprecation.is_none())
            }
        };
        let mut places = [&hetzner.location].into_iter().chain(&hetzner.fallback_locations);
        if kind.deprecation.is_some() {
            let what = format!("server type `{name}` is not offered for new servers any more");
            return Err(Obstacle { what, hint: mend() });
        }
        if !places.any(|place| offers(&place)) {
            let what = format!("server type `{name}` is not offered in `{}`", hetzner.location);
            return Err(Obstacle { what, hint: format!("{}, or another location", mend()) });
        }
        Ok(kind)
    }

    /// What is wrong with an image.
    async fn unusable(
        &self,
        image: &str,
        architecture: &str,
        until: Instant,
    ) -> Result<Option<Obstacle>, CallError> {
        let caller = &self.inner.caller;
        let found: Vec<Thing> = if image.parse::<u64>().is_ok() {
            match caller.get::<Json>(&format!("/images/{image}"), until).await {
                Ok(answer) => vec![one_of("GET /images", "image", &answer)?],
                Err(error) if error.is_missing() => Vec::new(),
                Err(error) => return Err(error),
            }
        } else {
            let by = if image.contains('=') { "label_selector" } else { "name" };
            caller.list("/images", "images", &format!("{by}={}", encode(image)), until).await?
        };
        let fits = |image: &Thing| image.architecture.is_empty() || image.architecture == architecture;
        if found.iter().any(fits) {
            return Ok(None);
        }
        let what = match found.first() {
            None => format!("there is no image `{image}`"),
            Some(_) => format!("there is no image `{image}` for the architecture `{architecture}`"),
        };
        Ok(Some(Obstacle { what, hint: format!("mend `images` in {}", self.file()) }))
    }

    fn file(&self) -> String {
        format!("hosts/{}.yaml", self.inner.setup.host)
    }
}

/// What a type has less of than a node asks for.
fn smaller(node: &NodeName, spec: &MachineSpec, kind: &ServerType) -> Option<String> {
    let has = kind.size();
    let lacks = BTreeMap::from([
        ("cores", (spec.size.cores, has.cores)),
        ("MB of memory", (spec.size.memory, has.memory)),
        ("GB of disk", (spec.size.disk, has.disk)),
    ]);
    let less = lacks.iter().filter(|(_, (asked, has))| has < asked);
    let less: Vec<String> = less.map(|(what, (asked, has))| format!("{has} of {asked} {what}")).collect();
    (!less.is_empty())
        .then(|| format!("node `{node}` will be a `{}`, which has {}", kind.name, less.join(" and ")))
}
