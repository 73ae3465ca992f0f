//! Packages. All that are missing are installed in one call, and each is reported for itself.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use orch_model::Package;

use super::{Look, Resource};
use crate::error::ApplyError;
use crate::node::Node;
use crate::package_manager::PackageManager;

/// Where this exists, the node runs its machine's programs and can have no others.
pub(crate) const SHARES_PROGRAMS: &str = "/run/orch/shares-programs";

pub(super) fn all(packages: &[Package]) -> impl Iterator<Item = Box<dyn Resource>> {
    let shelf = Rc::new(Shelf::new(packages));
    packages.iter().map(move |package| -> Box<dyn Resource> {
        Box::new(OnePackage {
            package: package.clone(),
            shelf: Rc::clone(&shelf),
            is_tried: Cell::new(false),
        })
    })
}

struct OnePackage {
    package: Package,
    shelf: Rc<Shelf>,
    is_tried: Cell<bool>,
}

/// All packages that are asked for, and which of them are there.
struct Shelf {
    wanted: Vec<Package>,
    /// Before anything was installed: a package that came with another one is still told as changed.
    before: OnceCell<BTreeSet<Package>>,
    after: RefCell<Option<BTreeSet<Package>>>,
}

impl Shelf {
    fn new(packages: &[Package]) -> Self {
        Self { wanted: packages.to_vec(), before: OnceCell::new(), after: RefCell::new(None) }
    }

    fn before(&self, manager: &PackageManager) -> Result<&BTreeSet<Package>, ApplyError> {
        if let Some(before) = self.before.get() {
            return Ok(before);
        }
        let before = manager.installed(&self.wanted)?;
        Ok(self.before.get_or_init(|| before))
    }

    /// Installs everything that is missing, once.
    fn fill(&self, manager: &PackageManager) -> Result<(), ApplyError> {
        if self.after.borrow().is_some() {
            return Ok(());
        }
        let before = self.before(manager)?;
        let missing: Vec<Package> =
            self.wanted.iter().filter(|one| !before.contains(*one)).cloned().collect();
        // Where all at once fails, each is tried alone, and says for itself why it cannot be had.
        let done = manager.install(&missing);
        let now = manager.installed(&self.wanted)?;
        self.after.replace(Some(now));
        match done {
            Err(error) if missing.len() == 1 => Err(error),
            _ => Ok(()),
        }
    }

    fn has(&self, package: &Package) -> bool {
        self.after.borrow().as_ref().is_some_and(|after| after.contains(package))
    }

    fn add(&self, manager: &PackageManager, package: &Package) -> Result<(), ApplyError> {
        manager.install(std::slice::from_ref(package))?;
        let now = manager.installed(&self.wanted)?;
        self.after.replace(Some(now));
        Ok(())
    }
}

impl Resource for OnePackage {
    fn kind(&self) -> &'static str {
        "package"
    }

    fn name(&self) -> String {
        self.package.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        let shares = node.has(SHARES_PROGRAMS);
        let Some(manager) = PackageManager::of(node) else {
            return if shares { Ok(Look::skip("not installable here")) } else { Err(no_manager()) };
        };
        let is_there = if self.is_tried.get() {
            self.shelf.has(&self.package)
        } else {
            self.shelf.before(&manager)?.contains(&self.package)
        };
        Ok(match (is_there, shares) {
            (true, _) => Look::AsWanted,
            (false, true) => Look::skip("not installable here"),
            (false, false) => Look::Differs("it is not installed".into()),
        })
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let manager = PackageManager::of(node).ok_or_else(no_manager)?;
        self.is_tried.set(true);
        self.shelf.fill(&manager)?;
        if self.shelf.has(&self.package) { Ok(()) } else { self.shelf.add(&manager, &self.package) }
    }
}

fn no_manager() -> ApplyError {
    ApplyError::Impossible("no package manager that orch knows is here: it knows apt, dnf and pacman".into())
}
