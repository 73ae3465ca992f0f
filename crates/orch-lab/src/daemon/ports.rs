//! Whether the lab can listen where it has to, found out before anything is begun.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use crate::lab_error::LabError;
use crate::listen::listen;
use crate::settings::LabSettings;

/// An address of this computer that no lab gives to anybody: whoever is in the way here is in the way everywhere.
const PROBE: Ipv4Addr = Ipv4Addr::new(127, 63, 255, 10);

/// Listens for a moment at every port that the lab will need: at those of its APIs, and of its machines where these are more
/// than paper.
pub(super) fn check(settings: &LabSettings) -> Result<(), LabError> {
    let apis = settings.hosts.iter().map(|host| host.port).filter(|port| *port != 0);
    let machines = settings.ports.iter().copied().filter(|_| !settings.paper);
    let ports: BTreeSet<u16> = apis.chain(machines).collect();
    ports.into_iter().try_for_each(try_out)
}

fn try_out(port: u16) -> Result<(), LabError> {
    match listen(SocketAddr::from((PROBE, port))) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(LabError::Forbidden(port)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(LabError::Occupied(port)),
        // What else may be wrong, the lab itself says better.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_listens_at_every_address_is_found_before_anything_is_begun() {
        for everywhere in ["0.0.0.0:0", "[::]:0"] {
            // A computer may be without the second.
            let Ok(held) = TcpListener::bind(everywhere) else { continue };
            let port = held.local_addr().expect("it is bound").port();
            let mut settings = LabSettings::new("lab".into(), "orch".into());
            settings.hosts.clear();
            settings.ports = vec![port];
            assert!(
                matches!(check(&settings), Err(LabError::Occupied(taken)) if taken == port),
                "{everywhere}"
            );
            settings.paper = true;
            assert!(check(&settings).is_ok(), "machines on paper listen nowhere");
            settings.paper = false;
            drop(held);
            assert!(check(&settings).is_ok(), "nobody is in the way");
        }
    }
}
