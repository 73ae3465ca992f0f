//! Calls about tickets, tokens, roles, and who may do what where.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::access::{self, Caller, is_token_id};
use super::call::Call;
use super::reply::{Outcome, Refusal, Reply};
use super::roles as known_roles;
use super::state::{Grant, State, Token};

pub(super) fn domains(_: &Call, _: &mut State) -> Outcome {
    Ok(json!([{ "realm": "pam", "type": "pam", "comment": "Linux PAM standard authentication" }]).into())
}

/// A ticket for a password, or for a ticket that is still good.
pub(super) fn ticket(call: &Call, state: &mut State) -> Outcome {
    let params = &call.params;
    let (name, password) = (params.need("username")?, params.need("password")?);
    let user = match params.get("realm") {
        Some(realm) if !name.contains('@') => format!("{name}@{realm}"),
        _ => name.to_owned(),
    };
    let settings = &call.lab.settings;
    let is_known = settings.users.get(&user).is_some_and(|known| known == password)
        || access::by_ticket(settings, state, password).is_some_and(|owner| owner == user);
    if !is_known {
        return Err(Refusal::unknown_caller("authentication failure"));
    }
    let (ticket, csrf) = access::issue(state, &user);
    Ok(json!({ "username": user, "ticket": ticket, "CSRFPreventionToken": csrf, "cap": {} }).into())
}

pub(super) fn users(call: &Call, _: &mut State) -> Outcome {
    let users = call.lab.settings.users.keys();
    Ok(users
        .map(|user| json!({ "userid": user, "enable": 1, "expire": 0, "realm-type": "pam" }))
        .collect::<Json>()
        .into())
}

/// The user whose tokens a call is about: the caller's own, or another's where the caller may.
fn owner<'a>(call: &'a Call, state: &State) -> Result<&'a str, Refusal> {
    let user = call.params.need("userid")?;
    if call.who.token.is_some() || call.who.user != user {
        call.need(state, "/access/groups", &["User.Modify"])?;
    }
    if !call.lab.settings.users.contains_key(user) {
        return Err(Refusal::died(format!("no such user ('{user}')")));
    }
    Ok(user)
}

fn show_token(token: &Token) -> Json {
    let mut shown = json!({ "privsep": i32::from(token.is_separated), "expire": token.expire });
    if let Some(comment) = &token.comment {
        shown["comment"] = comment.as_str().into();
    }
    shown
}

pub(super) fn tokens(call: &Call, state: &mut State) -> Outcome {
    let prefix = format!("{}!", owner(call, state)?);
    let own = state.tokens.iter().filter_map(|(name, token)| Some((name.strip_prefix(&prefix)?, token)));
    let shown = own.map(|(id, token)| {
        let mut shown = show_token(token);
        shown["tokenid"] = id.into();
        shown
    });
    Ok(shown.collect::<Json>().into())
}

fn token_name(call: &Call, state: &State) -> Result<String, Refusal> {
    Ok(format!("{}!{}", owner(call, state)?, call.params.need("tokenid")?))
}

pub(super) fn token(call: &Call, state: &mut State) -> Outcome {
    let name = token_name(call, state)?;
    let token = state.tokens.get(&name).ok_or_else(|| Refusal::died(format!("no such token '{name}'")))?;
    Ok(show_token(token).into())
}

pub(super) fn make_token(call: &Call, state: &mut State) -> Outcome {
    let name = token_name(call, state)?;
    if !is_token_id(call.params.need("tokenid")?) {
        return Err(Refusal::parameter("tokenid", "value does not match the regex pattern"));
    }
    if state.tokens.contains_key(&name) {
        return Err(Refusal::parameter("tokenid", "Token already exists."));
    }
    let token = Token {
        secret: uuid::Uuid::new_v4().to_string(),
        is_separated: call.params.get("privsep").is_none() || call.params.is_on("privsep"),
        expire: call.params.get("expire").and_then(|expire| expire.parse().ok()).unwrap_or(0),
        comment: call.params.get("comment").map(str::to_owned),
    };
    let shown = json!({ "full-tokenid": name, "info": show_token(&token), "value": token.secret });
    state.tokens.insert(name, token);
    Ok(shown.into())
}

pub(super) fn remove_token(call: &Call, state: &mut State) -> Outcome {
    let name = token_name(call, state)?;
    if state.tokens.remove(&name).is_none() {
        return Err(Refusal::died(format!("no such token '{name}'")));
    }
    state.acl.retain(|grant| grant.who != name);
    Ok(Reply::null())
}

pub(super) fn acl(_: &Call, state: &mut State) -> Outcome {
    let shown = state.acl.iter().map(|grant| {
        let kind = if grant.who.contains('!') { "token" } else { "user" };
        json!({
            "path": grant.path, "ugid": grant.who, "roleid": grant.role, "type": kind,
            "propagate": i32::from(grant.propagates),
        })
    });
    Ok(shown.collect::<Json>().into())
}

pub(super) fn change_acl(call: &Call, state: &mut State) -> Outcome {
    let params = &call.params;
    let path = params.need("path")?;
    call.need(state, path, &["Permissions.Modify"])?;
    if !path.starts_with('/') {
        return Err(Refusal::parameter("path", "invalid ACL path"));
    }
    let list = |name: &str| {
        params.get(name).unwrap_or_default().split([',', ';', ' ']).filter(|item| !item.is_empty())
    };
    let whom: Vec<&str> = list("users").chain(list("tokens")).collect();
    for role in list("roles") {
        if !known_roles::NAMES.contains(&role) && !state.roles.contains_key(role) {
            return Err(Refusal::died(format!("ACL update failed: role '{role}' does not exist")));
        }
        for who in &whom {
            if who.contains('!') && !state.tokens.contains_key(*who) {
                return Err(Refusal::died(format!("ACL update failed: no such token '{who}'")));
            }
            let propagates = params.get("propagate").is_none() || params.is_on("propagate");
            let (path, who, role) = (path.to_owned(), (*who).to_owned(), role.to_owned());
            state.acl.retain(|grant| !(grant.path == path && grant.who == who && grant.role == role));
            if !params.is_on("delete") {
                state.acl.insert(Grant { path, who, role, propagates });
            }
        }
    }
    Ok(Reply::null())
}

/// What the caller may, where: at the path that is asked for, or wherever something is said.
pub(super) fn permissions(call: &Call, state: &mut State) -> Outcome {
    let who: &Caller = &call.who;
    let known = ["/", "/access", "/nodes", "/pool", "/sdn", "/storage", "/vms"].map(str::to_owned);
    let said = state.acl.iter().map(|grant| grant.path.clone());
    let paths: BTreeSet<String> = match call.params.get("path") {
        Some(path) => BTreeSet::from([path.to_owned()]),
        None => known.into_iter().chain(said).collect(),
    };
    let shown = paths.into_iter().map(|path| {
        let privileges = who.privileges(state, &path).into_iter().map(|privilege| (privilege, 1));
        (path.clone(), privileges.collect::<BTreeMap<_, _>>())
    });
    let shown: BTreeMap<_, _> = shown.filter(|(_, privileges)| !privileges.is_empty()).collect();
    Ok(json!(shown).into())
}

pub(super) fn roles(_: &Call, state: &mut State) -> Outcome {
    let built = known_roles::NAMES.iter().map(|&role| (role, 1));
    let made = state.roles.keys().map(|role| (role.as_str(), 0));
    let shown = built.chain(made).map(|(role, special)| {
        let privileges: Vec<String> = known_roles::privileges(state, role).into_iter().collect();
        json!({ "roleid": role, "privs": privileges.join(","), "special": special })
    });
    Ok(shown.collect::<Json>().into())
}

pub(super) fn make_role(call: &Call, state: &mut State) -> Outcome {
    call.need(state, "/access", &["Sys.Modify"])?;
    let role = call.params.need("roleid")?;
    if known_roles::NAMES.contains(&role) || state.roles.contains_key(role) {
        return Err(Refusal::died(format!("create role failed: role '{role}' already exists")));
    }
    let privileges =
        call.params.get("privs").unwrap_or_default().split([',', ';', ' ']).filter(|item| !item.is_empty());
    let privileges: BTreeSet<String> = privileges.map(str::to_owned).collect();
    let all = known_roles::all();
    if let Some(wrong) = privileges.iter().find(|privilege| !all.contains(*privilege)) {
        return Err(Refusal::parameter("privs", format!("invalid privilege '{wrong}'")));
    }
    state.roles.insert(role.to_owned(), privileges);
    Ok(Reply::null())
}

pub(super) fn remove_role(call: &Call, state: &mut State) -> Outcome {
    call.need(state, "/access", &["Sys.Modify"])?;
    let role = call.params.need("roleid")?;
    match state.roles.remove(role) {
        Some(_) => Ok(Reply::null()),
        None => Err(Refusal::died(format!("role '{role}' does not exist"))),
    }
}
