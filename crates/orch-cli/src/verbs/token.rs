//! `orch token`: the tokens with which nodes fetch their configuration.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use orch_model::token::{Chain, Claims, Demand, TokenId, read, verify};
use orch_model::{Identity, KeyName, SecretRef};
use orch_run::{ExitCode, SiteTreasury};
use orch_secrets::{Vault, VaultError};
use orch_server::{Keys, Minter, Revoked, SitePlace, Specs, judge_token, read_ledger, revoke, system_clock};
use serde_json::json;
use uuid::Uuid;

use crate::args::{Cli, TokenArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::block_on;
use crate::verbs::serve::{Served, take_over};

/// No token is nearly as long.
const LONGEST: u64 = 1 << 16;

pub(crate) fn run(cli: &Cli, args: &TokenArgs, output: &Output) -> Result<ExitCode, Failure> {
    let served = Served::of(cli)?;
    match args {
        TokenArgs::Mint { node, spec, ttl } => {
            let spec = match spec {
                Some(spec) => spec.clone(),
                None => spec_of(&served, node)?,
            };
            let minted = Minter::of(&served.folder, system_clock()).mint(node, &spec, Some(ttl.duration()));
            let (claims, token) = minted.map_err(|error| Failure::server(&error))?;
            output.answer(&token.expose(), &json!({ "token": token.expose(), "claims": claims }));
        }
        TokenArgs::Inspect { file } => return inspect(&served, file.as_deref(), output),
        TokenArgs::Revoke { what } => {
            let what = meant(what)?;
            block_on(async { revoke(&served.folder, &what).await.map_err(|error| Failure::server(&error)) })?;
            output.answer(&"revoked", &json!({ "revoked": what }));
        }
        TokenArgs::List => {
            let standings =
                read_ledger(&served.folder.ledger_path()).map_err(|error| Failure::server(&error))?;
            let mut text = String::new();
            for (node, standing) in &standings {
                let alarm =
                    if standing.alarm.is_some() { "  ALARM: one that was used up was shown" } else { "" };
                text += &format!(
                    "{node}  {} since {}{alarm}\n",
                    standing.last,
                    orch_run::told::moment(standing.since)
                );
            }
            let text = if text.is_empty() { "no node has shown a token yet".to_owned() } else { text };
            output.answer(&text, &standings);
        }
        TokenArgs::Rotate { retire } => rotate(&served, retire.as_ref(), output)?,
    }
    Ok(ExitCode::Done)
}

fn spec_of(served: &Served, node: &Identity) -> Result<orch_model::SpecName, Failure> {
    let (root, identities) = (served.root.clone(), served.identities.clone());
    let place = SitePlace { root, manifest: None, identities };
    let specs = Specs::of(place).map_err(|error| Failure::server(&error))?;
    Ok(specs
        .config(node)
        .map_err(|error| Failure::NoSpec { node: node.clone(), why: error.to_string() })?
        .spec)
}

/// Says what a token says; 1 where it is not believed.
fn inspect(served: &Served, file: Option<&Path>, output: &Output) -> Result<ExitCode, Failure> {
    let unread =
        |source| Failure::Unread { path: file.unwrap_or(Path::new("standard input")).into(), source };
    let mut text = String::new();
    let read_all = match file {
        Some(path) => fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text)),
        None => std::io::stdin().take(LONGEST).read_to_string(&mut text),
    };
    read_all.map_err(unread)?;
    let folder = &served.folder;
    let claims: Claims = read(text.trim()).map_err(|refusal| Failure::NotAToken(refusal.to_string()))?;
    let ring = Keys::of(folder).ring().map_err(|error| Failure::server(&error))?;
    let audience = claims.aud.unwrap_or(orch_model::token::Audience::Spec);
    let demand = Demand {
        node: &claims.n,
        audience,
        now: (system_clock())(),
        accept_legacy: served.accepts_legacy_tokens,
    };
    let verdict = match (verify(text.trim(), &ring, &demand), claims.jti) {
        (Ok(_), Some(id)) => {
            judge_token(&folder.ledger_path(), &claims.n, id).map_err(|error| Failure::server(&error))?
        }
        (verified, _) => verified.map(|_| ()),
    };
    let words =
        verdict.map_or_else(|refusal| format!("{} ({})", refusal, refusal.code()), |()| "good".to_owned());
    let shown = serde_json::to_string_pretty(&claims).unwrap_or_default();
    output.answer(&format!("{shown}\n{words}"), &json!({ "claims": claims, "verdict": words }));
    Ok(if verdict.is_ok() { ExitCode::Done } else { ExitCode::Failed })
}

/// What is to be taken back: everything that a node was given until now, or one chain.
fn meant(what: &str) -> Result<Revoked, Failure> {
    if let Ok(node) = what.parse::<Identity>() {
        return Ok(Revoked::Node(node, Chain(Uuid::now_v7().as_u128())));
    }
    let chain = what.parse::<TokenId>().map(|id| id.chain).or_else(|_| what.parse::<Chain>());
    chain
        .map(Revoked::Chain)
        .map_err(|_| Failure::NotAToken(format!("`{what}` is neither a node nor the id of a token")))
}

/// Makes the keys that the site names and that are not in its sops files yet: the last one by its name signs.
fn make_kept(served: &Served, kept: &BTreeMap<KeyName, SecretRef>, output: &Output) -> Result<(), Failure> {
    let vault = Vault::new(&served.root, served.identities.clone());
    let missing: Vec<(&KeyName, &SecretRef)> =
        kept.iter().filter(|(_, mention)| is_missing(&vault, mention)).collect();
    if missing.is_empty() {
        let hint =
            "name another one in `server.signing_keys` of `site.yaml`, later by its name than the others";
        return Err(Failure::Server(format!("every signing key that the site names is there; {hint}")));
    }
    let treasury = SiteTreasury::new(vault);
    for (key, mention) in &missing {
        // Another command may have been quicker, and signed with its own already.
        if treasury.put(mention, &orch_server::new_key().map_err(|error| Failure::server(&error))?)? {
            output::note(&format!("made `{key}` in {mention}"));
        }
    }
    take_over(&served.folder)?;
    let last = kept.keys().next_back();
    let made: Vec<&KeyName> = missing.iter().map(|(key, _)| *key).collect();
    let words = last.map(|key| format!("`{key}` signs from now on")).unwrap_or_default();
    output.answer(&words, &json!({ "key": last, "made": made }));
    Ok(())
}

fn is_missing(vault: &Vault, mention: &SecretRef) -> bool {
    matches!(vault.find(mention), Err(VaultError::NoFile { .. } | VaultError::NoValue { .. }))
}

fn rotate(served: &Served, retire: Option<&KeyName>, output: &Output) -> Result<(), Failure> {
    let folder = &served.folder;
    let keys = Keys::of(folder);
    let kept = keys.kept().map_err(|error| Failure::server(&error))?;
    if !kept.is_empty() && retire.is_none() {
        return make_kept(served, &kept, output);
    }
    if let Some(key) = retire {
        let was_there = keys.retire(key).map_err(|error| Failure::server(&error))?;
        take_over(folder)?;
        let words = if was_there { "retired" } else { "there was no such key" };
        output.answer(&words, &json!({ "retired": was_there }));
        return Ok(());
    }
    let key = keys.rotate().map_err(|error| Failure::server(&error))?;
    take_over(folder)?;
    output.answer(&format!("`{key}` signs from now on"), &json!({ "key": key }));
    Ok(())
}
