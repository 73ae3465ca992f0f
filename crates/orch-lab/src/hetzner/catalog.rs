//! What Hetzner offers and nobody makes: locations, server types with their prices, system images. The ids, sizes and places are
//! like the real ones; the prices are only of their magnitude.

use serde_json::{Value as Json, json};

use crate::machines::Size;

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerType {
    pub(super) id: u64,
    pub(super) name: &'static str,
    category: &'static str,
    pub(super) is_arm: bool,
    is_dedicated: bool,
    pub(super) cores: u32,
    /// In GB.
    pub(super) memory: u32,
    /// In GB.
    pub(super) disk: u32,
    /// In tenths of a cent per month.
    price: u32,
    /// Where it is offered.
    pub(super) places: &'static [&'static str],
}

const EUROPE: &[&str] = &["fsn1", "nbg1", "hel1"];
const EVERYWHERE: &[&str] = &["fsn1", "nbg1", "hel1", "ash", "hil", "sin"];

const fn shared(id: u64, name: &'static str, size: (u32, u32, u32), price: u32) -> ServerType {
    let (cores, memory, disk) = size;
    let category = "cost_optimized";
    ServerType {
        id,
        name,
        category,
        is_arm: false,
        is_dedicated: false,
        cores,
        memory,
        disk,
        price,
        places: EUROPE,
    }
}

const fn amd(id: u64, name: &'static str, size: (u32, u32, u32), price: u32) -> ServerType {
    ServerType { category: "regular_purpose", places: EVERYWHERE, ..shared(id, name, size, price) }
}

const fn arm(id: u64, name: &'static str, size: (u32, u32, u32), price: u32) -> ServerType {
    ServerType { is_arm: true, ..shared(id, name, size, price) }
}

const fn dedicated(id: u64, name: &'static str, size: (u32, u32, u32), price: u32) -> ServerType {
    ServerType { category: "general_purpose", is_dedicated: true, ..amd(id, name, size, price) }
}

pub(super) const SERVER_TYPES: [ServerType; 23] = [
    amd(22, "cpx11", (2, 2, 40), 4350),
    amd(23, "cpx21", (3, 4, 80), 7550),
    amd(24, "cpx31", (4, 8, 160), 13_600),
    amd(25, "cpx41", (8, 16, 240), 25_200),
    amd(26, "cpx51", (16, 32, 360), 54_900),
    arm(45, "cax11", (2, 4, 40), 3790),
    arm(93, "cax21", (4, 8, 80), 6490),
    arm(94, "cax31", (8, 16, 160), 12_490),
    arm(95, "cax41", (16, 32, 320), 24_490),
    dedicated(96, "ccx13", (2, 8, 80), 12_490),
    dedicated(97, "ccx23", (4, 16, 160), 24_490),
    dedicated(98, "ccx33", (8, 32, 240), 48_490),
    dedicated(99, "ccx43", (16, 64, 360), 96_490),
    dedicated(100, "ccx53", (32, 128, 600), 192_490),
    dedicated(101, "ccx63", (48, 192, 960), 288_490),
    shared(104, "cx22", (2, 4, 40), 3790),
    shared(105, "cx32", (4, 8, 80), 6800),
    shared(106, "cx42", (8, 16, 160), 16_400),
    shared(107, "cx52", (16, 32, 320), 32_400),
    shared(114, "cx23", (2, 4, 40), 3490),
    shared(115, "cx33", (4, 8, 80), 5490),
    shared(116, "cx43", (8, 16, 160), 9490),
    shared(117, "cx53", (16, 32, 320), 17_490),
];

impl ServerType {
    pub(super) fn find(id_or_name: &str) -> Option<&'static Self> {
        let id = id_or_name.parse().ok();
        SERVER_TYPES.iter().find(|kind| kind.name == id_or_name || Some(kind.id) == id)
    }

    pub(super) const fn architecture(&self) -> &'static str {
        if self.is_arm { "arm" } else { "x86" }
    }

    /// The size of a machine of this type with a disk of its own size, in GB.
    pub(super) const fn size(&self, disk: u32) -> Size {
        Size { cores: self.cores, memory: self.memory * 1024, disk }
    }

    pub(super) fn view(&self) -> Json {
        let places = LOCATIONS.iter().filter(|place| self.places.contains(&place.name));
        let locations: Vec<Json> =
            places.map(|place| json!({"id": place.id, "name": place.name, "deprecation": null, "available": true, "recommended": false})).collect();
        json!({
            "id": self.id, "name": self.name, "description": self.name.to_uppercase(), "category": self.category,
            "architecture": self.architecture(), "cores": self.cores, "memory": f64::from(self.memory), "disk": self.disk,
            "cpu_type": if self.is_dedicated { "dedicated" } else { "shared" }, "storage_type": "local",
            "deprecated": false, "deprecation": null, "locations": locations, "prices": self.prices(),
        })
    }

    fn prices(&self) -> Vec<Json> {
        let hourly = f64::from(self.price) / 1000.0 / 625.0;
        let price = |place: &&str| {
            json!({
                "location": place, "included_traffic": 21_990_232_555_520_u64,
                "price_hourly": price(hourly), "price_monthly": price(f64::from(self.price) / 1000.0),
                "price_per_tb_traffic": price(1.0),
            })
        };
        self.places.iter().map(price).collect()
    }
}

/// A place where servers stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Location {
    id: u64,
    pub(super) name: &'static str,
    city: &'static str,
    country: &'static str,
    at: (f64, f64),
    pub(super) zone: &'static str,
    /// Its datacenter's id, and the number in its name.
    datacenter: (u64, u32),
}

pub(super) const LOCATIONS: [Location; 6] = [
    Location {
        id: 1,
        name: "fsn1",
        city: "Falkenstein",
        country: "DE",
        at: (50.476_12, 12.370_071),
        zone: "eu-central",
        datacenter: (4, 14),
    },
    Location {
        id: 2,
        name: "nbg1",
        city: "Nuremberg",
        country: "DE",
        at: (49.452_102, 11.076_665),
        zone: "eu-central",
        datacenter: (2, 3),
    },
    Location {
        id: 3,
        name: "hel1",
        city: "Helsinki",
        country: "FI",
        at: (60.169_855, 24.938_379),
        zone: "eu-central",
        datacenter: (3, 2),
    },
    Location {
        id: 4,
        name: "ash",
        city: "Ashburn, VA",
        country: "US",
        at: (39.045_821, -77.487_073),
        zone: "us-east",
        datacenter: (5, 1),
    },
    Location {
        id: 5,
        name: "hil",
        city: "Hillsboro, OR",
        country: "US",
        at: (45.542_22, -122.951_924),
        zone: "us-west",
        datacenter: (6, 1),
    },
    Location {
        id: 6,
        name: "sin",
        city: "Singapore",
        country: "SG",
        at: (1.283_33, 103.833_333),
        zone: "ap-southeast",
        datacenter: (7, 1),
    },
];

impl Location {
    pub(super) fn find(id_or_name: &str) -> Option<&'static Self> {
        let id = id_or_name.parse().ok();
        LOCATIONS.iter().find(|place| place.name == id_or_name || Some(place.id) == id)
    }

    /// The location whose datacenter this is.
    pub(super) fn of_datacenter(id_or_name: &str) -> Option<&'static Self> {
        let id = id_or_name.parse().ok();
        LOCATIONS.iter().find(|place| place.datacenter_name() == id_or_name || Some(place.datacenter.0) == id)
    }

    fn datacenter_name(&self) -> String {
        format!("{}-dc{}", self.name, self.datacenter.1)
    }

    pub(super) fn view(&self) -> Json {
        json!({
            "id": self.id, "name": self.name, "description": format!("{} DC Park 1", self.city), "city": self.city,
            "country": self.country, "latitude": self.at.0, "longitude": self.at.1, "network_zone": self.zone,
        })
    }

    pub(super) fn datacenter(&self) -> Json {
        let here = SERVER_TYPES.iter().filter(|kind| kind.places.contains(&self.name));
        let types: Vec<u64> = here.map(|kind| kind.id).collect();
        json!({
            "id": self.datacenter.0, "name": self.datacenter_name(), "location": self.view(),
            "description": format!("{} 1 virtual DC {}", self.city, self.datacenter.1),
            "server_types": {"supported": types, "available": types, "available_for_migration": types},
        })
    }
}

/// A system image: id, name, flavor, version, whether for ARM.
const IMAGES: [(u64, &str, &str, &str, bool); 14] = [
    (101, "debian-12", "debian", "12", false),
    (102, "debian-12", "debian", "12", true),
    (103, "debian-13", "debian", "13", false),
    (104, "debian-13", "debian", "13", true),
    (105, "ubuntu-22.04", "ubuntu", "22.04", false),
    (106, "ubuntu-22.04", "ubuntu", "22.04", true),
    (107, "ubuntu-24.04", "ubuntu", "24.04", false),
    (108, "ubuntu-24.04", "ubuntu", "24.04", true),
    (109, "fedora-42", "fedora", "42", false),
    (110, "fedora-42", "fedora", "42", true),
    (111, "rocky-9", "rocky", "9", false),
    (112, "rocky-9", "rocky", "9", true),
    (113, "alma-9", "alma", "9", false),
    (114, "alma-9", "alma", "9", true),
];

/// The system images, as they are shown.
pub(super) fn images() -> Vec<Json> {
    let image = |(id, name, flavor, version, is_arm): &(u64, &str, &str, &str, bool)| {
        json!({
            "id": id, "name": name, "description": format!("{} {version}", capital(flavor)), "type": "system",
            "status": "available", "os_flavor": flavor, "os_version": version, "disk_size": 5, "image_size": null,
            "architecture": if *is_arm { "arm" } else { "x86" }, "rapid_deploy": true, "labels": {},
            "created": "2025-08-11T06:00:00+00:00", "created_from": null, "bound_to": null, "deleted": null,
            "deprecated": null, "protection": {"delete": false},
        })
    };
    IMAGES.iter().map(image).collect()
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What is offered in a collection that nobody can add to; none if there is no such collection.
pub(super) fn offered(collection: &str) -> Option<Vec<Json>> {
    match collection {
        "server_types" => Some(SERVER_TYPES.iter().map(ServerType::view).collect()),
        "locations" => Some(LOCATIONS.iter().map(Location::view).collect()),
        "datacenters" => Some(LOCATIONS.iter().map(Location::datacenter).collect()),
        "isos" => Some(vec![json!({
            "id": 201, "name": "debian-13.1.0-amd64-netinst.iso", "description": "Debian 13.1 (amd64/netinstall)",
            "type": "public", "architecture": "x86", "deprecation": null,
        })]),
        "load_balancer_types" | "load_balancers" | "floating_ips" | "certificates" => Some(Vec::new()),
        _ => None,
    }
}

/// What everything costs.
pub(super) fn pricing() -> Json {
    let types =
        SERVER_TYPES.iter().map(|kind| json!({"id": kind.id, "name": kind.name, "prices": kind.prices()}));
    let per_place = |kind: &str, monthly: f64, is_hourly: bool| {
        let prices = LOCATIONS.iter().map(|place| {
            let mut one = json!({"location": place.name, "price_monthly": price(monthly)});
            if is_hourly {
                one["price_hourly"] = price(monthly / 625.0);
            }
            one
        });
        json!({"type": kind, "prices": prices.collect::<Vec<_>>()})
    };
    json!({"pricing": {
        "currency": "EUR", "vat_rate": "19.000000",
        "image": {"price_per_gb_month": price(0.011)}, "volume": {"price_per_gb_month": price(0.044)},
        "floating_ip": {"price_monthly": price(3.0)}, "server_backup": {"percentage": "20.0000000000"},
        "floating_ips": [per_place("ipv4", 3.0, false), per_place("ipv6", 1.0, false)],
        "primary_ips": [per_place("ipv4", 0.5, true), per_place("ipv6", 0.0, true)],
        "server_types": types.collect::<Vec<_>>(), "load_balancer_types": [],
    }})
}

fn price(net: f64) -> Json {
    json!({"net": format!("{net:.10}"), "gross": format!("{:.16}", net * 1.19)})
}
