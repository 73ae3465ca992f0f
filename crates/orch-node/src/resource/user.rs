//! An account. One that is there is kept as it is; `root` is on every machine and is never made.

use orch_model::UserName;

use super::{Look, Resource};
use crate::accounts;
use crate::error::ApplyError;
use crate::node::Node;

pub(super) struct Account(UserName);

impl Account {
    pub(super) const fn new(name: UserName) -> Self {
        Self(name)
    }
}

impl Resource for Account {
    fn kind(&self) -> &'static str {
        "user"
    }

    fn name(&self) -> String {
        self.0.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        if self.0.as_str() == "root" {
            return Ok(Look::AsWanted);
        }
        if !accounts::is_possible(node, &self.0) {
            return Ok(Look::skip(accounts::NO_ACCOUNTS));
        }
        let difference = match accounts::find(node, &self.0)? {
            None => Some("there is no such account"),
            Some(account) if accounts::has_home(node, &account)? => None,
            Some(_) => Some("it has no home"),
        };
        Ok(Look::of(difference.map(String::from)))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let account = accounts::make(node, &self.0)?;
        if accounts::has_home(node, &account)? { Ok(()) } else { accounts::make_home(node, &account) }
    }
}
