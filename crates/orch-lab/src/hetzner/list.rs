//! Collections as they are listed: chosen by name, label or state, in an order, and page by page.

use serde_json::{Value as Json, json};

use super::labels::Selector;
use super::refusal::Refusal;

/// What stands behind the `?`.
pub(super) type Query = Vec<(String, String)>;

/// Which parameters choose, in which collection. Others are not heeded, as the real API heeds none that it does not know.
fn choosers(collection: &str) -> &'static [&'static str] {
    match collection {
        "servers" | "volumes" => &["name", "status"],
        "ssh_keys" => &["name", "fingerprint"],
        "images" => &["name", "status", "type", "architecture", "bound_to"],
        "placement_groups" => &["name", "type"],
        "primary_ips" => &["name", "ip"],
        "isos" => &["name", "architecture"],
        "actions" => &["id", "status"],
        _ => &["name"],
    }
}

/// One page of a collection, with what is said about the pages.
pub(super) fn page(collection: &str, items: Vec<Json>, query: &Query) -> Result<Json, Refusal> {
    let items = sorted(chosen(collection, items, query)?, query)?;
    let page = number(query, "page", 1)?;
    let per_page = number(query, "per_page", 25)?.min(50);
    let total = items.len();
    let last = total.div_ceil(per_page).max(1);
    let skipped = (page - 1).saturating_mul(per_page);
    let items: Vec<Json> = items.into_iter().skip(skipped).take(per_page).collect();
    let pagination = json!({
        "page": page, "per_page": per_page, "last_page": last, "total_entries": total,
        "previous_page": (page > 1).then(|| page - 1), "next_page": (page < last).then(|| page + 1),
    });
    Ok(json!({collection: items, "meta": {"pagination": pagination}}))
}

fn chosen(collection: &str, mut items: Vec<Json>, query: &Query) -> Result<Vec<Json>, Refusal> {
    for field in choosers(collection) {
        let values = values(query, field);
        if !values.is_empty() {
            items.retain(|item| values.contains(&text(&item[*field]).as_str()));
        }
    }
    for selector in values(query, "label_selector").into_iter().filter(|text| !text.is_empty()) {
        let selector = Selector::parse(selector).map_err(|why| Refusal::invalid("label_selector", why))?;
        items.retain(|item| {
            let labels = item.get("labels").cloned().and_then(|labels| serde_json::from_value(labels).ok());
            selector.chooses(&labels.unwrap_or_default())
        });
    }
    Ok(items)
}

fn sorted(mut items: Vec<Json>, query: &Query) -> Result<Vec<Json>, Refusal> {
    // The last order is sorted by first, so that the first one decides.
    for order in values(query, "sort").into_iter().rev() {
        let (field, way) = order.split_once(':').unwrap_or((order, "asc"));
        let is_known = ["id", "name", "created", "command", "status", "started", "finished"].contains(&field);
        if !is_known || !["asc", "desc"].contains(&way) {
            return Err(Refusal::invalid("sort", format!("there is no order '{order}'")));
        }
        let key = |item: &Json| (item[field].as_u64(), text(&item[field]));
        items.sort_by(|one, other| {
            let ordering = key(one).cmp(&key(other));
            if way == "desc" { ordering.reverse() } else { ordering }
        });
    }
    Ok(items)
}

fn number(query: &Query, name: &str, default: usize) -> Result<usize, Refusal> {
    let Some(text) = values(query, name).pop() else { return Ok(default) };
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Refusal::invalid(name, "must be a number from 1 on"))
}

pub(super) fn values<'a>(query: &'a Query, name: &str) -> Vec<&'a str> {
    query.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
