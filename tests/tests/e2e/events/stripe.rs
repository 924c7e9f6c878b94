//! The signature of webhooks, verified by Stripe's unmodified libraries. Stripe designed the scheme.

use std::path::PathBuf;

use blockbase_tests::{Engine, PIP_STEPS, Receiver, command_in, installed};
use serde_json::json;

use crate::events::webhooks::{make, quick};

/// The number of checks that a program makes for each secret, and the number of checks that it makes once.
const CHECKS_A_SECRET: usize = 8;
const CHECKS_OF_ALL: usize = 1;

const JAVASCRIPT: Library = Library {
    directory: "stripe-javascript",
    files: &[
        ("package-lock.json", include_str!("../../../clients/stripe/package-lock.json")),
        ("package.json", include_str!("../../../clients/stripe/package.json")),
        ("verify.mjs", include_str!("../../../clients/stripe/verify.mjs")),
        ("sign.mjs", include_str!("../../../clients/stripe/sign.mjs")),
    ],
    install: &["npm ci --ignore-scripts --no-audit --no-fund"],
    verify: "node verify.mjs",
};

const PYTHON: Library = Library {
    directory: "stripe-python",
    files: &[
        ("requirements.txt", include_str!("../../../clients/stripe/requirements.txt")),
        ("verify.py", include_str!("../../../clients/stripe/verify.py")),
    ],
    install: &PIP_STEPS,
    verify: "venv/bin/python verify.py",
};

/// A library, and a program that verifies a webhook with it.
struct Library {
    directory: &'static str,
    /// The first file pins the versions of the packages.
    files: &'static [(&'static str, &'static str)],
    install: &'static [&'static str],
    verify: &'static str,
}

impl Library {
    fn installed(&self) -> PathBuf {
        installed(self.directory, self.files, self.install)
    }

    /// Verifies a received webhook with the library. The webhook was signed with these secrets.
    fn verify(&self, signed: &Signed) {
        let directory = self.installed();
        let body = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(body.path(), &signed.body).unwrap();
        let mut command = command_in(self.verify, &directory);
        let ran = command.arg(body.path()).arg(&signed.header).args(&signed.secrets).output().expect("the program");
        let (checks, problem) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{}: after\n{checks}\n{problem}", self.verify);
        assert_eq!(checks.lines().count(), CHECKS_A_SECRET * signed.secrets.len() + CHECKS_OF_ALL, "{checks}");
    }
}

/// The header `Stripe-Signature` for a time `age_seconds` ago, made by Stripe's own library.
pub(crate) async fn signature_by_the_library(body: &'static str, secret: &'static str, age_seconds: u64) -> String {
    tokio::task::spawn_blocking(move || {
        let directory = JAVASCRIPT.installed();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), body).unwrap();
        let mut command = command_in("node sign.mjs", &directory);
        let ran = command.arg(file.path()).arg(secret).arg(age_seconds.to_string()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    })
    .await
    .unwrap()
}

/// A received webhook.
struct Signed {
    body: Vec<u8>,
    header: String,
    secrets: Vec<String>,
}

/// The webhooks that are sent before and during a rotation of the secret.
async fn received() -> [Signed; 2] {
    // Signing does not depend on the database, so one engine is enough.
    let server = quick(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let receiver = Receiver::start().await;
    let (id, first) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
    // A program that parses the body and writes it again would change this text.
    admin.post("/api/v1/data/task", json!({ "title": "é\u{2028}\"\\/ \u{1f600} 1.0" })).await.data();
    receiver.wait_for(1).await;
    let rotated = admin.post(&format!("/api/v1/webhooks/{id}/rotate-secret"), json!({})).await;
    let second = rotated.json()["secret"].as_str().unwrap().to_owned();
    admin.post("/api/v1/data/task", json!({ "title": "during the rotation" })).await.data();
    let received = receiver.wait_for(2).await;
    let signed = |place: usize, secrets: Vec<String>| {
        let header = received[place].header("x-svc-signature").to_owned();
        Signed { body: received[place].body.to_vec(), header, secrets }
    };
    [signed(0, vec![first.clone()]), signed(1, vec![second, first])]
}

async fn is_verified_by(library: &'static Library) {
    let all = received().await;
    tokio::task::spawn_blocking(move || all.iter().for_each(|signed| library.verify(signed))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stripes_javascript_library_verifies_the_signature_of_webhooks() {
    is_verified_by(&JAVASCRIPT).await;
}

#[ignore = "long: a further language of the same check"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stripes_python_library_verifies_the_signature_of_webhooks() {
    is_verified_by(&PYTHON).await;
}
