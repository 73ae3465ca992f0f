//! Which function answers which call.

use super::call::Call;
use super::reply::Outcome;
use super::state::State;
use super::{
    agent, clone, cloud_init, cluster, config, content, create, destroy, node, permissions, pools, power,
    resize, snapshot, status, tasks, upload,
};

/// One call that is answered.
pub(super) struct Route {
    method: &'static str,
    /// With its places, as the description of the API writes it.
    pub(super) path: &'static str,
    pub(super) answer: fn(&Call, &mut State) -> Outcome,
}

const fn route(method: &'static str, path: &'static str, answer: fn(&Call, &mut State) -> Outcome) -> Route {
    Route { method, path, answer }
}

impl Route {
    /// The route of a path, and what stands in its places.
    pub(super) fn find(
        method: &str,
        path: &[String],
    ) -> Option<(&'static Self, Vec<(&'static str, String)>)> {
        let routes = ROUTES.iter().chain(GUESTS).filter(|route| route.method == method);
        routes.into_iter().find_map(|route| Some((route, route.places(path)?)))
    }

    fn places(&self, path: &[String]) -> Option<Vec<(&'static str, String)>> {
        let parts: Vec<&str> = self.path.split('/').skip(1).collect();
        // The name of a volume may hold slashes, and stands last.
        let takes_rest = self.path.ends_with("{volume}") && path.len() > parts.len();
        if path.len() != parts.len() && !takes_rest {
            return None;
        }
        let mut places = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some("volume") => places.push(("volume", path[number..].join("/"))),
                Some(name) => places.push((name, path[number].clone())),
                None if *part == path[number] => {}
                None => return None,
            }
        }
        Some(places)
    }

    /// Whether anybody may ask.
    pub(super) fn is_open(&self) -> bool {
        ["/access/ticket", "/access/domains"].contains(&self.path)
    }

    pub(super) fn is_about_guests(&self) -> bool {
        ["/qemu", "/lxc", "/cluster/resources", "/status"].iter().any(|part| self.path.contains(part))
    }
}

const ROUTES: &[Route] = &[
    route("GET", "/version", cluster::version),
    route("GET", "/access/domains", permissions::domains),
    route("POST", "/access/ticket", permissions::ticket),
    route("GET", "/access/users", permissions::users),
    route("GET", "/access/users/{userid}/token", permissions::tokens),
    route("GET", "/access/users/{userid}/token/{tokenid}", permissions::token),
    route("POST", "/access/users/{userid}/token/{tokenid}", permissions::make_token),
    route("DELETE", "/access/users/{userid}/token/{tokenid}", permissions::remove_token),
    route("GET", "/access/acl", permissions::acl),
    route("PUT", "/access/acl", permissions::change_acl),
    route("GET", "/access/permissions", permissions::permissions),
    route("GET", "/access/roles", permissions::roles),
    route("POST", "/access/roles", permissions::make_role),
    route("DELETE", "/access/roles/{roleid}", permissions::remove_role),
    route("GET", "/cluster/resources", cluster::resources),
    route("GET", "/cluster/nextid", cluster::next_id),
    route("GET", "/cluster/status", cluster::status),
    route("GET", "/cluster/tasks", tasks::recent),
    route("GET", "/nodes", node::nodes),
    route("GET", "/nodes/{node}/status", node::status),
    route("GET", "/nodes/{node}/version", cluster::version),
    route("GET", "/nodes/{node}/network", node::network),
    route("GET", "/nodes/{node}/tasks", tasks::list),
    route("GET", "/nodes/{node}/tasks/{upid}/status", tasks::status),
    route("GET", "/nodes/{node}/tasks/{upid}/log", tasks::log),
    route("DELETE", "/nodes/{node}/tasks/{upid}", tasks::stop),
    route("GET", "/storage", node::storages),
    route("GET", "/storage/{storage}", node::storage),
    route("GET", "/nodes/{node}/storage", content::storages),
    route("GET", "/nodes/{node}/storage/{storage}/status", content::status),
    route("GET", "/nodes/{node}/storage/{storage}/content", content::list),
    route("GET", "/nodes/{node}/storage/{storage}/content/{volume}", content::volume),
    route("DELETE", "/nodes/{node}/storage/{storage}/content/{volume}", content::remove),
    route("POST", "/nodes/{node}/storage/{storage}/upload", upload::upload),
    route("POST", "/nodes/{node}/storage/{storage}/download-url", upload::download),
    route("GET", "/pools", pools::list),
    route("POST", "/pools", pools::make),
    route("PUT", "/pools", pools::change),
    route("DELETE", "/pools", pools::remove),
    route("GET", "/pools/{poolid}", pools::show),
    route("PUT", "/pools/{poolid}", pools::change),
    route("DELETE", "/pools/{poolid}", pools::remove),
];

const GUESTS: &[Route] = &[
    route("GET", "/nodes/{node}/qemu", status::list),
    route("POST", "/nodes/{node}/qemu", create::create),
    route("DELETE", "/nodes/{node}/qemu/{vmid}", destroy::destroy),
    route("GET", "/nodes/{node}/qemu/{vmid}/config", config::show),
    route("POST", "/nodes/{node}/qemu/{vmid}/config", config::change_in_task),
    route("PUT", "/nodes/{node}/qemu/{vmid}/config", config::change),
    route("GET", "/nodes/{node}/qemu/{vmid}/pending", config::pending),
    route("POST", "/nodes/{node}/qemu/{vmid}/clone", clone::clone),
    route("POST", "/nodes/{node}/qemu/{vmid}/template", clone::template),
    route("PUT", "/nodes/{node}/qemu/{vmid}/resize", resize::resize),
    route("PUT", "/nodes/{node}/qemu/{vmid}/unlink", config::unlink),
    route("GET", "/nodes/{node}/qemu/{vmid}/status/current", status::current),
    route("POST", "/nodes/{node}/qemu/{vmid}/status/start", power::start),
    route("POST", "/nodes/{node}/qemu/{vmid}/status/stop", power::stop),
    route("POST", "/nodes/{node}/qemu/{vmid}/status/shutdown", power::shutdown),
    route("POST", "/nodes/{node}/qemu/{vmid}/status/reboot", power::reboot),
    route("POST", "/nodes/{node}/qemu/{vmid}/status/reset", power::reset),
    route("POST", "/nodes/{node}/qemu/{vmid}/status/suspend", power::suspend),
    route("POST", "/nodes/{node}/qemu/{vmid}/status/resume", power::resume),
    route("GET", "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces", agent::interfaces),
    route("POST", "/nodes/{node}/qemu/{vmid}/agent/ping", agent::ping),
    route("GET", "/nodes/{node}/qemu/{vmid}/agent/info", agent::info),
    route("GET", "/nodes/{node}/qemu/{vmid}/cloudinit", cloud_init::show),
    route("PUT", "/nodes/{node}/qemu/{vmid}/cloudinit", cloud_init::regenerate),
    route("GET", "/nodes/{node}/qemu/{vmid}/snapshot", snapshot::list),
    route("POST", "/nodes/{node}/qemu/{vmid}/snapshot", snapshot::make),
    route("DELETE", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}", snapshot::remove),
    route("POST", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback", snapshot::roll_back),
    route("GET", "/nodes/{node}/lxc", status::list),
    route("POST", "/nodes/{node}/lxc", create::create),
    route("DELETE", "/nodes/{node}/lxc/{vmid}", destroy::destroy),
    route("GET", "/nodes/{node}/lxc/{vmid}/config", config::show),
    route("PUT", "/nodes/{node}/lxc/{vmid}/config", config::change),
    route("GET", "/nodes/{node}/lxc/{vmid}/pending", config::pending),
    route("POST", "/nodes/{node}/lxc/{vmid}/clone", clone::clone),
    route("POST", "/nodes/{node}/lxc/{vmid}/template", clone::template),
    route("PUT", "/nodes/{node}/lxc/{vmid}/resize", resize::resize),
    route("GET", "/nodes/{node}/lxc/{vmid}/status/current", status::current),
    route("POST", "/nodes/{node}/lxc/{vmid}/status/start", power::start),
    route("POST", "/nodes/{node}/lxc/{vmid}/status/stop", power::stop),
    route("POST", "/nodes/{node}/lxc/{vmid}/status/shutdown", power::shutdown),
    route("POST", "/nodes/{node}/lxc/{vmid}/status/reboot", power::reboot),
    route("GET", "/nodes/{node}/lxc/{vmid}/interfaces", agent::container_interfaces),
    route("GET", "/nodes/{node}/lxc/{vmid}/snapshot", snapshot::list),
    route("POST", "/nodes/{node}/lxc/{vmid}/snapshot", snapshot::make),
    route("DELETE", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}", snapshot::remove),
    route("POST", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/rollback", snapshot::roll_back),
];
