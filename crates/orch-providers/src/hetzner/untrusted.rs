//! What is read of the answers of Hetzner Cloud, by itself: for those who feed it what none would answer.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::answer::{Action, Begun, Failure, Made, Pricing, Server, ServerType, Thing};
use super::decode::{decode, list_of};
use super::trouble::CallError;

/// Reads an answer in every way in which one is read, and gives what would be told of it.
pub fn read(body: &[u8]) -> Vec<String> {
    let mut told = Vec::new();
    let _ = Failure::read(body);
    told.extend(decode::<Begun>("POST /x", body).and_then(|begun| ended(&begun.action)).err());
    match decode::<Made>("POST /x", body) {
        Ok(made) => seen(&made.server),
        Err(error) => told.push(error),
    }
    told.extend(decode::<Pricing>("GET /x", body).err());
    if let Ok(answer) = serde_json::from_slice::<Json>(body) {
        match list_of::<Server>("GET /x", "servers", &answer) {
            Ok(servers) => servers.iter().for_each(seen),
            Err(error) => told.push(error),
        }
        told.extend(list_of::<ServerType>("GET /x", "server_types", &answer).err());
        told.extend(list_of::<Thing>("GET /x", "networks", &answer).err());
        match list_of::<Action>("GET /x", "actions", &answer) {
            Ok(actions) => told.extend(actions.iter().filter_map(|action| ended(action).err())),
            Err(error) => told.push(error),
        }
    }
    told.iter().map(ToString::to_string).collect()
}

fn ended(action: &Action) -> Result<(), CallError> {
    action.end().unwrap_or(Ok(()))
}

fn seen(server: &Server) {
    let _ = (server.address(), server.state(), server.machine(&BTreeMap::new()));
}
