//! What servers would cost, by the API's own prices.

use std::collections::BTreeMap;

use orch_model::{HostName, NodeName};
use orch_plan::MachineSpec;
use orch_run::ProviderError;
use serde::Deserialize;
use tokio::time::Instant;

use super::Hetzner;
use super::answer::{Amount, Price, Priced, Pricing};
use super::trouble::CallError;
use crate::preflight::Cost;

/// Amounts are counted in parts of this size; the API writes no smaller ones.
const DIGITS: u32 = 10;

impl Hetzner {
    /// What these machines would cost; what has no price is left out. Changes nothing.
    pub async fn costs(&self, wanted: &[(NodeName, MachineSpec)]) -> Result<Vec<Cost>, ProviderError> {
        let mut counts = BTreeMap::new();
        for kind in wanted.iter().filter_map(|(node, _)| self.inner.setup.server_types.get(node)) {
            *counts.entry(kind.as_str()).or_insert(0) += 1;
        }
        if counts.is_empty() {
            return Ok(Vec::new());
        }
        let until = Instant::now() + self.inner.caller.pace.look;
        let prices = self.inner.caller.get::<Prices>("/pricing", until).await;
        let prices = prices.map_err(|error: CallError| error.told(&self.inner.setup.host))?;
        let setup = &self.inner.setup;
        Ok(costs(&prices.pricing, &counts, &setup.hetzner.location, &setup.host))
    }
}

#[derive(Deserialize)]
struct Prices {
    pricing: Pricing,
}

fn costs(pricing: &Pricing, counts: &BTreeMap<&str, usize>, location: &str, host: &HostName) -> Vec<Cost> {
    let at = |priced: &Priced| priced.prices.iter().find(|price| price.location == location).cloned();
    let address = pricing.primary_ips.iter().find(|priced| priced.kind == "ipv4").and_then(at);
    let each = counts.iter().filter_map(|(kind, count)| {
        let server = pricing.server_types.iter().find(|priced| priced.name == *kind).and_then(at)?;
        let both = [Some(server), address.clone()];
        let sum = |part: fn(&Price) -> &Amount, side: fn(&Amount) -> &String| {
            let amounts = both.iter().flatten().map(|price| units(side(part(price))));
            let sum = amounts.sum::<Option<i128>>()?;
            sum.checked_mul(i128::try_from(*count).ok()?)
        };
        Some(Cost {
            host: host.clone(),
            what: format!("{kind} in {location}"),
            count: *count,
            monthly: written(sum(|price| &price.monthly, |amount| &amount.gross)?, 2),
            hourly: written(sum(|price| &price.hourly, |amount| &amount.gross)?, 4),
            monthly_net: written(sum(|price| &price.monthly, |amount| &amount.net)?, 2),
            currency: pricing.currency.clone(),
        })
    });
    each.collect()
}

/// An amount such as `3.2900000000`, counted in its smallest parts.
fn units(text: &str) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) || whole.len() > 18 {
        return None;
    }
    let digits: String = part.chars().chain(std::iter::repeat('0')).take(DIGITS as usize).collect();
    format!("{whole}{digits}").parse().ok()
}

/// An amount with so many digits behind the point, rounded.
fn written(units: i128, digits: u32) -> String {
    let unit = 10_i128.pow(DIGITS - digits);
    let rounded = (units + unit / 2) / unit;
    let scale = 10_i128.pow(digits);
    format!("{}.{:0width$}", rounded / scale, rounded % scale, width = digits as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pricing(tax: &str) -> Pricing {
        let amount =
            |net: &str, gross: &str| json!({ "net": net, "gross": if tax == "0" { net } else { gross } });
        let price = |location: &str, month: [&str; 2], hour: [&str; 2]| {
            json!({
                "location": location, "price_monthly": amount(month[0], month[1]),
                "price_hourly": amount(hour[0], hour[1]), "included_traffic": 1,
            })
        };
        let server = price("nbg1", ["3.2900000000", "3.9151000000"], ["0.0053000000", "0.0063070000"]);
        let address = price("nbg1", ["0.5000", "0.595"], ["0.0008", "0.00095200"]);
        serde_json::from_value(json!({
            "currency": "EUR", "vat_rate": "19.00", "volume": {},
            "server_types": [{ "id": 1, "name": "cx22", "prices": [server] }, { "id": 2, "name": "cx99", "prices": null }],
            "primary_ips": [{ "type": "ipv4", "prices": [address] }, { "type": "ipv7", "prices": [] }],
        }))
        .unwrap()
    }

    #[test]
    fn the_line_of_costs_is_what_the_prices_say_with_an_address_for_each() {
        let (counts, host) = (BTreeMap::from([("cx22", 3), ("cx99", 1)]), "cloud".parse().unwrap());
        let said = |tax| {
            costs(&pricing(tax), &counts, "nbg1", &host).iter().map(Cost::to_string).collect::<Vec<_>>()
        };
        let untaxed =
            "3 x cx22 in nbg1: 11.37 EUR a month (0.0183 an hour), as the prices of `cloud` say now";
        assert_eq!(said("0"), [untaxed]);
        let taxed = "3 x cx22 in nbg1: 13.53 EUR a month (0.0218 an hour), 11.37 without tax, as the prices of `cloud` say now";
        assert_eq!(said("19"), [taxed]);
        assert!(costs(&pricing("19"), &counts, "mars1", &host).is_empty());
    }

    #[test]
    fn what_is_no_amount_is_none() {
        for odd in ["", ".", "x", "-1", "1.x", "1e9"] {
            assert_eq!(units(odd), None, "{odd}");
        }
        assert_eq!(units("1"), Some(10_000_000_000));
        assert_eq!(written(units("0.999").unwrap(), 2), "1.00");
    }
}
