//! Whatever is asked, there is an answer.

use serde_json::{Value as Json, json};

use crate::lab::Lab;

/// Numbers that look like chance and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    fn value(&mut self, depth: usize) -> Json {
        match self.below(if depth == 0 { 8 } else { 11 }) {
            0 => Json::Null,
            1 => json!(true),
            2 => json!(-1),
            3 => json!(u64::MAX),
            4 => json!(self.below(1100)),
            5 => json!(1.5),
            6 => json!(self.of::<str>(&[
                "",
                "a",
                "cx22",
                "debian-13",
                "10.0.0.0/8",
                "server",
                "spread",
                "ipv4",
                "é\0",
                "in",
                "tcp"
            ])),
            7 => json!("10.0.0.0/16"),
            8 => Json::Array((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: usize) -> Json {
        let fields = [
            "name",
            "server_type",
            "image",
            "labels",
            "networks",
            "network",
            "ip_range",
            "type",
            "size",
            "server",
            "id",
            "rules",
            "apply_to",
            "remove_from",
            "subnets",
            "routes",
            "destination",
            "gateway",
            "public_key",
            "public_net",
            "ipv4",
            "network_zone",
            "placement_group",
            "volumes",
            "firewalls",
            "firewall",
            "direction",
            "protocol",
            "port",
            "ip",
        ];
        let count = self.below(8);
        Json::Object((0..count).map(|_| (self.of::<str>(&fields).to_owned(), self.value(depth))).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn no_question_goes_without_an_answer() {
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    for with_description in [true, false] {
        let lab = Lab::with(|settings| {
            settings.description = settings.description.take().filter(|_| with_description);
        });
        let parts = [
            "servers",
            "networks",
            "firewalls",
            "volumes",
            "images",
            "ssh_keys",
            "primary_ips",
            "placement_groups",
            "actions",
            "pricing",
            "1",
            "1001",
            "1002",
            "1003",
            "101",
            "x",
            "%ff",
            "poweron",
            "rebuild",
            "change_type",
            "attach_to_network",
            "create_image",
            "add_subnet",
            "add_route",
            "set_rules",
            "apply_to_resources",
            "attach",
            "resize",
            "change_protection",
        ];
        for _ in 0..1500 {
            let method = chance.of::<str>(&["GET", "POST", "POST", "PUT", "DELETE", "PATCH"]);
            let collection = chance.of::<str>(&parts);
            let path = match chance.below(4) {
                0 => format!("/{collection}"),
                1 => format!("/{collection}/{}", chance.of::<str>(&parts)),
                2 => {
                    format!("/{collection}/{}/actions/{}", chance.of::<str>(&parts), chance.of::<str>(&parts))
                }
                _ => format!(
                    "/{collection}?{}={}",
                    chance.of::<str>(&["page", "sort", "label_selector", "id"]),
                    chance.below(9)
                ),
            };
            let body = chance.object(3);
            let said = lab.ask(method, &path, body).await;
            assert!((200..600).contains(&said.status) && said.status != 500);
        }
        // After all of that, an ordinary server is an ordinary server.
        lab.server("ordinary", json!({})).await;
    }
}
