//! Which question is answered by what.

use serde_json::{Value as Json, json};

use super::call::{Call, Reply};
use super::list::{page, values};
use super::refusal::Refusal;
use super::state::{Action, Kind, State};
use super::{catalog, view};
use crate::faults::Fault;

/// Collections that are always empty here; what the real API has in them, the lab does not know.
const EMPTY: [&str; 3] = ["floating_ips", "load_balancers", "certificates"];

pub(super) fn route(call: &Call<'_>, path: &[String], state: &mut State) -> Reply {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (call.asked.method.as_str(), path.as_slice()) {
        ("GET", path) => read(call, path, state),
        (_, [collection, ..]) if Kind::of_collection(collection).is_none() => {
            Err(if EMPTY.contains(collection) { Refusal::unsupported() } else { Refusal::no_such_path() })
        }
        (method, [collection, rest @ ..]) => {
            let kind = Kind::of_collection(collection).ok_or_else(Refusal::no_such_path)?;
            write(call, method, kind, rest, state)
        }
        _ => Err(Refusal::no_such_path()),
    }
}

fn write(call: &Call<'_>, method: &str, kind: Kind, rest: &[&str], state: &mut State) -> Reply {
    if method == "POST" && rest.is_empty() {
        return call.create(state, kind);
    }
    let id = number(kind, rest.first().copied().unwrap_or_default())?;
    if call.strikes(Fault::LockTimeout) {
        return Err(Refusal::locked(kind.name()));
    }
    match (method, rest) {
        ("PUT", [_]) => call.update(state, kind, id),
        ("DELETE", [_]) => call.delete(state, kind, id),
        ("POST", [_, "actions", command]) => call.order(state, kind, id, command),
        _ => Err(Refusal::no_such_path()),
    }
}

fn read(call: &Call<'_>, path: &[&str], state: &State) -> Reply {
    match path {
        ["pricing"] => Ok((200, catalog::pricing())),
        ["actions"] => some_actions(call, state),
        ["actions", id] => one_action(call, state, id, |_| true),
        [collection] => {
            let items = match Kind::of_collection(collection) {
                Some(kind) => view::all(state, kind),
                None => catalog::offered(collection).ok_or_else(Refusal::no_such_path)?,
            };
            let mut list = page(collection, items, call.query)?;
            if *collection == "datacenters" {
                list["recommendation"] = json!(4);
            }
            Ok((200, list))
        }
        [collection, "actions", rest @ ..] => {
            let kind = Kind::of_collection(collection);
            if kind.is_none() && !EMPTY.contains(collection) {
                return Err(Refusal::no_such_path());
            }
            actions(call, state, rest, |action| kind.is_some_and(|kind| is_of(action, kind)))
        }
        [collection, id] => one(state, collection, id),
        [collection, id, "actions", rest @ ..] => {
            let kind = Kind::of_collection(collection).ok_or_else(Refusal::no_such_path)?;
            let id = number(kind, id)?;
            view::one(state, kind, id).ok_or_else(|| Refusal::absent(kind.name(), id))?;
            actions(call, state, rest, |action| action.is_about(kind, id))
        }
        _ => Err(Refusal::no_such_path()),
    }
}

fn is_of(action: &Action, kind: Kind) -> bool {
    action.subject.0 == kind || action.others.iter().any(|(other, _)| *other == kind)
}

fn one(state: &State, collection: &str, id: &str) -> Reply {
    let Some(kind) = Kind::of_collection(collection) else {
        let offered = catalog::offered(collection).ok_or_else(Refusal::no_such_path)?;
        let what = collection.trim_end_matches('s');
        let number: Option<u64> = id.parse().ok();
        let found = offered.into_iter().find(|item| item["id"].as_u64().is_some_and(|id| Some(id) == number));
        return found.map(|item| (200, json!({what: item}))).ok_or_else(|| Refusal::absent(what, id));
    };
    let id = number(kind, id)?;
    let found = view::one(state, kind, id).ok_or_else(|| Refusal::absent(kind.name(), id))?;
    Ok((200, json!({kind.name(): found})))
}

fn number(kind: Kind, text: &str) -> Result<u64, Refusal> {
    text.parse().map_err(|_| Refusal::absent(kind.name(), text))
}

/// The actions of a thing or a kind: all of them, or one.
fn actions(call: &Call<'_>, state: &State, rest: &[&str], is_meant: impl Fn(&Action) -> bool) -> Reply {
    match rest {
        [] => {
            let meant = state.actions.iter().filter(|(_, action)| is_meant(action));
            let shown: Vec<Json> = meant.map(|(id, action)| view::action(*id, action, call.takes)).collect();
            Ok((200, page("actions", shown, call.query)?))
        }
        [id] => one_action(call, state, id, is_meant),
        _ => Err(Refusal::no_such_path()),
    }
}

fn one_action(call: &Call<'_>, state: &State, id: &str, is_meant: impl Fn(&Action) -> bool) -> Reply {
    let found = id.parse().ok().and_then(|id: u64| Some((id, state.actions.get(&id)?)));
    let found = found.filter(|(_, action)| is_meant(action)).ok_or_else(|| Refusal::absent("action", id))?;
    Ok((200, json!({"action": view::action(found.0, found.1, call.takes)})))
}

/// Actions by their ids, which have to be named: all there ever were would be too many.
fn some_actions(call: &Call<'_>, state: &State) -> Reply {
    let wanted = values(call.query, "id");
    if wanted.is_empty() {
        return Err(Refusal::invalid("id", "at least one id is needed"));
    }
    let ids: Result<Vec<u64>, _> = wanted.iter().map(|id| id.parse()).collect();
    let ids = ids.map_err(|_| Refusal::invalid("id", "is no number"))?;
    let found = state.actions.iter().filter(|(id, _)| ids.contains(id));
    let shown: Vec<Json> = found.map(|(id, action)| view::action(*id, action, call.takes)).collect();
    Ok((200, json!({ "actions": shown })))
}
