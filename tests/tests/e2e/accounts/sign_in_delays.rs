//! Limits on how fast a client can try passwords. Nobody can lock another user out.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use blockbase_tests::{Answer, Engine, Server, ServerBuilder, on_both_engines};
use serde_json::json;

const PASSWORD: &str = "correct horse battery";
/// Tries that are answered before the first wait. If hashing takes longer than the first waits, there are a few more.
const FREE_TRIES: RangeInclusive<usize> = 10..=13;

/// Signs in with this client address. The test is a trusted proxy.
async fn sign_in(server: &Server, email: &str, password: &str, address: &str) -> Answer {
    let request = server.request("POST", "/api/auth/sign-in/email").header("x-forwarded-for", address);
    server.send(request.json(&json!({ "email": email, "password": password }))).await
}

fn behind_proxy(engine: Engine) -> ServerBuilder {
    ServerBuilder::new(engine).env("SVC_TRUSTED_PROXIES", "127.0.0.1")
}

/// Sets the time of a network's last try and its number of failures, so that a test does not depend on the time of hashing.
async fn set_tries(server: &Server, network: &str, failures: u32, ago: Duration) {
    let last_at = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - ago).as_millis();
    let sql = format!("UPDATE svc_sign_in_tries SET failures = {failures}, last_at = {last_at} WHERE network = '{network}'");
    server.sql(&sql).await;
}

/// Seconds until a refused try may be repeated.
fn wait_of(refused: &Answer) -> u64 {
    assert_eq!(refused.status, 429, "{}", refused.text);
    refused.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

/// Tries until the server refuses. Returns the number of tries before that.
async fn until_refused(server: &Server, email: &str, address: &str) -> (usize, Answer) {
    for number in 0..30 {
        let answer = sign_in(server, email, "a wrong password", address).await;
        if answer.status == 429 {
            return (number, answer);
        }
        assert_eq!((answer.status, &answer.json()["code"]), (401, &json!("INVALID_EMAIL_OR_PASSWORD")), "{}", answer.text);
    }
    panic!("thirty wrong passwords");
}

on_both_engines! {
    async fn a_network_that_guesses_waits_and_the_owner_does_not(engine: Engine) {
        let server = behind_proxy(engine).start().await;
        server.admin().await;
        let email = "admin@example.com";
        let (tries, refused) = until_refused(&server, email, "192.0.2.1").await;
        assert!(FREE_TRIES.contains(&tries), "{tries}");
        let json = refused.expect_error(429, "rate_limited");
        assert_eq!(json["code"], "rate_limited");
        assert_eq!(refused.headers["retry-after"], refused.headers["x-retry-after"]);
        // The wait is a second after ten failures, and doubles with each further one.
        let seconds = wait_of(&refused);
        assert!((1..=(1_u64 << (tries - 10)) + 1).contains(&seconds), "{seconds} s after {tries} tries");
        // The wait grows up to a minute.
        set_tries(&server, "192.0.2.1", 20, Duration::ZERO).await;
        let seconds = wait_of(&sign_in(&server, email, "a wrong password", "192.0.2.1").await);
        assert!((30..=61).contains(&seconds), "{seconds}");
        // The right password has to wait too. Otherwise the response would reveal that it is right.
        assert_eq!(sign_in(&server, email, PASSWORD, "192.0.2.1").await.status, 429);
        // From another network, the owner can sign in at once. A /64 counts as one network.
        assert_eq!(sign_in(&server, email, PASSWORD, "192.0.2.2").await.status, 200);
        assert!(FREE_TRIES.contains(&until_refused(&server, email, "2001:db8::1").await.0));
        set_tries(&server, "2001:db8::", 20, Duration::ZERO).await;
        assert_eq!(sign_in(&server, email, PASSWORD, "2001:db8::ffff").await.status, 429);
        assert_eq!(sign_in(&server, email, PASSWORD, "2001:db8:0:1::1").await.status, 200);
        // The responses for an account that does not exist are the same.
        assert!(FREE_TRIES.contains(&until_refused(&server, "nobody@example.com", "192.0.2.1").await.0));
        // After the wait one more try is answered.
        set_tries(&server, "192.0.2.1", 20, Duration::from_secs(61)).await;
        assert_eq!(sign_in(&server, email, "a wrong password", "192.0.2.1").await.status, 401);
        assert_eq!(sign_in(&server, email, "a wrong password", "192.0.2.1").await.status, 429);
        // The counts are in the database, so a restart keeps them.
        let server = server.restart().await;
        assert_eq!(sign_in(&server, email, "a wrong password", "192.0.2.1").await.status, 429);
        set_tries(&server, "192.0.2.1", 20, Duration::from_secs(61)).await;
        assert_eq!(sign_in(&server, email, PASSWORD, "192.0.2.1").await.status, 200);
        assert_eq!(sign_in(&server, email, "a wrong password", "192.0.2.1").await.status, 401);
        let log = server.log();
        assert!(log.contains("auth.account=\"admin@example.com\"") && log.contains("192.0.2.1"), "{log}");
        assert!(!log.contains("a wrong password"), "{log}");
    }

    async fn correct_sign_ins_at_once_are_all_let_in(engine: Engine) {
        let server = behind_proxy(engine).start().await;
        let admin = server.admin().await;
        // A few failed sign-ins before that make no difference.
        for _ in 0..5 {
            assert_eq!(sign_in(&server, "admin@example.com", "a wrong password", "192.0.2.1").await.status, 401);
        }
        let answers = futures_util::future::join_all((0..24).map(|_| sign_in(&server, "admin@example.com", PASSWORD, "192.0.2.1"))).await;
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200; 24]);
        // The same applies to another route: several clients of one session change the password.
        let change = || async {
            let body = json!({ "currentPassword": PASSWORD, "newPassword": "another correct horse" });
            let request = admin.request("POST", "/api/auth/change-password").header("x-forwarded-for", "192.0.2.1");
            server.send(request.json(&body)).await
        };
        let changes = futures_util::future::join_all((0..8).map(|_| change())).await;
        assert_eq!(changes.iter().filter(|answer| answer.status == 200).count(), 1);
        assert!(changes.iter().all(|answer| answer.status != 429), "{changes:?}");
    }

    async fn tries_at_once_count_each(engine: Engine) {
        let server = behind_proxy(engine).start().await;
        server.admin().await;
        let tries = (0..30).map(|_| sign_in(&server, "admin@example.com", "a wrong password", "192.0.2.1"));
        let answers = futures_util::future::join_all(tries).await;
        let guessed = answers.iter().filter(|answer| answer.status == 401).count();
        assert!(FREE_TRIES.contains(&guessed), "{guessed} guesses");
        assert!(answers.iter().all(|answer| [401, 429].contains(&answer.status)));
    }

    async fn guesses_count_over_sessions_and_instances(engine: Engine) {
        let server = behind_proxy(engine).start().await;
        server.admin().await;
        // On SQLite there is only one instance.
        let other = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(server.builder().start().await),
        };
        let instance = |number: usize| other.as_ref().filter(|_| number % 2 == 1).unwrap_or(&server);
        let email = "admin@example.com";
        // Nine failures are stored. The next one is added to them, on the other instance too.
        assert_eq!(sign_in(&server, email, "a wrong password", "192.0.2.1").await.status, 401);
        set_tries(&server, "192.0.2.1", 9, Duration::ZERO).await;
        assert_eq!(sign_in(instance(1), email, "a wrong password", "192.0.2.1").await.status, 401);
        let failures = "SELECT CAST(failures AS text) FROM svc_sign_in_tries WHERE network = '192.0.2.1'";
        assert_eq!(server.sql(failures).await, [["10"]]);
        // After a wait of a minute, one of many tries at once is answered. The next wait is a minute too, so the test does not
        // depend on the time of hashing.
        set_tries(&server, "192.0.2.1", 20, Duration::from_secs(61)).await;
        let tries = (0..30).map(|number| sign_in(instance(number), email, "a wrong password", "192.0.2.1"));
        let answers = futures_util::future::join_all(tries).await;
        let guessed = answers.iter().filter(|answer| answer.status == 401).count();
        assert_eq!(guessed, 1, "{answers:?}");
        assert!(answers.iter().all(|answer| [401, 429].contains(&answer.status)), "{answers:?}");
        // The correct sign-ins of another network are all let in, on both instances at once.
        let right = (0..24).map(|number| sign_in(instance(number), email, PASSWORD, "192.0.2.2"));
        let statuses: Vec<u16> = futures_util::future::join_all(right).await.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200; 24]);

        // Each guess has another session and comes from another network.
        server.sign_up("ann").await;
        let mut sessions = Vec::new();
        for number in 0..4 {
            let answer = sign_in(instance(number), "ann@example.com", PASSWORD, "198.51.100.1").await;
            sessions.push(answer.json()["token"].as_str().unwrap().to_owned());
        }
        let check = |number: usize, password: &str| {
            let server = instance(number / sessions.len());
            let request = server.request("POST", "/api/auth/verify-password").bearer_auth(&sessions[number % sessions.len()]);
            let request = request.header("x-forwarded-for", format!("203.0.113.{number}"));
            server.send(request.json(&json!({ "password": password })))
        };
        let answers = futures_util::future::join_all((0..20).map(|number| check(number, "a wrong password"))).await;
        let guessed = answers.iter().filter(|answer| answer.status == 400).count();
        assert_eq!(guessed, 10, "{answers:?}");
        assert!(answers.iter().all(|answer| [400, 429].contains(&answer.status)), "{answers:?}");
        for number in 20..24 {
            assert_eq!(check(number, PASSWORD).await.status, 429);
        }
    }

    async fn many_networks_make_an_account_slower_and_lock_nobody_out(engine: Engine) {
        let server = behind_proxy(engine).start().await;
        server.admin().await;
        let email = "admin@example.com";
        assert_eq!(sign_in(&server, email, PASSWORD, "198.51.100.1").await.status, 200);
        let tries = (0..80).map(async |number| sign_in(&server, email, "a wrong password", &format!("192.0.2.{number}")).await.status);
        assert!(futures_util::future::join_all(tries).await.iter().all(|status| *status == 401));
        // A sign-in from an address that the owner has used before is not delayed.
        let begun = Instant::now();
        assert_eq!(sign_in(&server, email, "a wrong password", "198.51.100.1").await.status, 401);
        let known = begun.elapsed();
        let begun = Instant::now();
        assert_eq!(sign_in(&server, email, PASSWORD, "203.0.113.9").await.status, 200);
        let unknown = begun.elapsed();
        assert!(unknown >= Duration::from_secs(3) && unknown < Duration::from_secs(10), "{unknown:?}");
        assert!(known < unknown, "{known:?} {unknown:?}");
    }

    async fn guesses_of_the_setup_token_wait_too(engine: Engine) {
        const TOKEN: &str = "of-the-operator-1";
        let server = behind_proxy(engine).env("SVC_SETUP_TOKEN", TOKEN).start().await;
        let sign_up = async |name: &str, token: Option<&str>, address: &str| {
            let body = json!({ "name": name, "email": format!("{name}@example.com"), "password": PASSWORD });
            let request = server.request("POST", "/api/auth/sign-up/email").header("x-forwarded-for", address).json(&body);
            server.send(match token {
                Some(token) => request.header("x-setup-token", token),
                None => request,
            })
            .await
        };
        // Each guess is for another account. All of them count together.
        for number in 0..10 {
            let refused = sign_up(&format!("eve{number}"), Some("of-the-operator-2"), "192.0.2.1").await;
            refused.expect_error(403, "setup_token_required");
        }
        let failures = server.sql("SELECT failures FROM svc_sign_in_tries WHERE network = '192.0.2.1'").await;
        assert_eq!(failures, [["10"]]);
        set_tries(&server, "192.0.2.1", 20, Duration::ZERO).await;
        // The right token has to wait too. Otherwise the response would reveal that it is right.
        for token in ["of-the-operator-2", TOKEN] {
            let refused = sign_up("ada", Some(token), "192.0.2.1").await;
            let seconds = wait_of(&refused);
            assert!((30..=61).contains(&seconds), "{seconds}");
            refused.expect_error(429, "rate_limited");
        }
        // A sign-up without a token does not count as a try, and other networks may still try.
        sign_up("ada", None, "192.0.2.1").await.expect_error(403, "setup_token_required");
        sign_up("ada", Some("of-the-operator-2"), "192.0.2.2").await.expect_error(403, "setup_token_required");
        assert_eq!(server.sql("SELECT count(*) FROM svc_users").await, [["0"]]);
        let log = server.log();
        assert!(!log.contains(TOKEN) && !log.contains("of-the-operator-2"), "{log}");
        // After the wait, the right token is accepted.
        set_tries(&server, "192.0.2.1", 20, Duration::from_secs(61)).await;
        let first = sign_up("ada", Some(TOKEN), "192.0.2.1").await;
        assert_eq!(first.status, 200, "{}", first.text);
        let ada = server.with_token(first.json()["token"].as_str().unwrap().to_owned());
        assert_eq!(ada.get("/api/v1/me").await.json()["roles"], json!(["admin"]));
        // From then on, sign-up needs no token and ignores it.
        assert_eq!(sign_up("bob", Some("of-the-operator-2"), "192.0.2.1").await.status, 200);
    }

    async fn guesses_of_the_current_password_count_too(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        let change = |current: &str| json!({ "currentPassword": current, "newPassword": "another one, long enough" });
        for number in 1..=10 {
            let answer = admin.post("/api/auth/change-password", change("a wrong password")).await;
            assert_eq!(answer.status, 400, "try {number}: {}", answer.text);
        }
        let failures = server.sql("SELECT failures FROM svc_sign_in_tries WHERE network = '127.0.0.1'").await;
        assert_eq!(failures, [["10"]]);
        set_tries(&server, "127.0.0.1", 20, Duration::ZERO).await;
        assert_eq!(admin.post("/api/auth/change-password", change(PASSWORD)).await.status, 429);
        // With a session there are ten wrong ones in a quarter of an hour, whatever the network.
        set_tries(&server, "127.0.0.1", 20, Duration::from_secs(61)).await;
        assert_eq!(admin.post("/api/auth/change-password", change(PASSWORD)).await.status, 429);
        server.sql("UPDATE svc_window_counts SET since = since - 900001").await;
        assert_eq!(admin.post("/api/auth/change-password", change(PASSWORD)).await.status, 200);
        assert!(server.log().contains("a change of the password failed"), "{}", server.log());
    }
}
