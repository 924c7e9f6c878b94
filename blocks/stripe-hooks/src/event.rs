//! The part of an event that is stored.

use serde_json::{Value, json};

/// The record of an event. `None` if it lacks a member that every event has.
///
/// `amount` is in the currency's smallest unit, as in Stripe. It is the amount of a payment or charge, the total of a checkout session,
/// or the amount due of an invoice.
pub fn record(event: Value) -> Option<Value> {
    let id = event["id"].as_str()?;
    let kind = event["type"].as_str()?;
    let object = &event["data"]["object"];
    // Events of the second API contain no object, but name the object that they are about.
    let object_id = object["id"].as_str().or(event["related_object"]["id"].as_str());
    let amount = ["amount", "amount_total", "amount_due"].into_iter().find_map(|key| object[key].as_i64());
    let customer = object["customer"].as_str().or(object["customer"]["id"].as_str());
    let created = match &event["created"] {
        Value::Number(seconds) => seconds.as_i64().map(instant),
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    Some(json!({
        "stripe_id": id,
        "type": kind,
        "created": created,
        "livemode": event["livemode"].as_bool(),
        "object_id": object_id,
        "amount": amount,
        "currency": object["currency"].as_str(),
        "status": object["status"].as_str(),
        "customer": customer,
        "payload": event,
    }))
}

/// Seconds since 1970 as RFC 3339, by Howard Hinnant's algorithm `civil_from_days`.
fn instant(seconds: i64) -> String {
    let (days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Eras of 400 years that begin in March, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3_600, time / 60 % 60, time % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_an_instant() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_790_000_000, "2026-09-21T14:13:20Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(instant(seconds), expected);
        }
    }

    #[test]
    fn what_an_event_lacks_is_null() {
        let kept = record(json!({ "id": "evt_1", "type": "balance.available" })).expect("a record");
        assert_eq!((&kept["amount"], &kept["created"], &kept["customer"]), (&Value::Null, &Value::Null, &Value::Null));
        assert_eq!(record(json!({ "id": "evt_1" })), None);
        assert_eq!(record(json!(["evt_1"])), None);
    }

    #[test]
    fn a_customer_is_an_id_or_a_whole_one() {
        let with = |customer: Value| json!({ "id": "evt_1", "type": "x", "data": { "object": { "customer": customer } } });
        assert_eq!(record(with(json!("cus_1"))).expect("a record")["customer"], "cus_1");
        assert_eq!(record(with(json!({ "id": "cus_2" }))).expect("a record")["customer"], "cus_2");
    }

    #[test]
    fn an_event_of_the_second_api_tells_what_it_is_about() {
        let event = json!({
            "id": "evt_test_65", "object": "v2.core.event", "type": "v1.billing.meter.error_report_triggered",
            "created": "2026-11-21T16:46:22.134Z", "related_object": { "id": "mtr_1", "type": "billing.meter" },
        });
        let kept = record(event).expect("a record");
        assert_eq!((&kept["object_id"], &kept["created"]), (&json!("mtr_1"), &json!("2026-11-21T16:46:22.134Z")));
    }
}
